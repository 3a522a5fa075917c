// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile is the size beyond which a file is refused. Ten thousand targets need a
// tenth of it, and a wrong path (a log, a device) must not fill the memory.
const maxFile = 16 << 20

// Read returns the whole content of the file. A directory, a file that cannot be
// read and one beyond 16 MiB are errors, never a part of it.
func Read(path string) ([]byte, error) {
	data, err := read(path)
	if err != nil {
		// The message already has the path.
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("read config %q: %w", path, err)
	}
	return data, nil
}

func read(path string) ([]byte, error) {
	// Opening a pipe would wait for its writer for ever.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return nil, errors.New("is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	// The size from stat is no use: it is 0 for devices, and a file may grow.
	return ReadFrom(f)
}

// ReadFrom returns all that can be read. More than 16 MiB is an error.
func ReadFrom(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errors.New("larger than 16 MiB")
	}
	return data, nil
}

// LoadFile reads the file and loads it with the environment of this process.
func LoadFile(path string) (*Config, []Notice, error) {
	data, err := Read(path)
	if err != nil {
		return nil, nil, err
	}
	return Load(path, data, os.LookupEnv)
}

// Load decodes, defaults and validates the content of a file. Either the whole file
// is valid and the configuration is complete, or there is no configuration and the
// error, of type Errors, has every mistake of the file. Notices come in both cases.
// Messages call the file name. lookupEnv returns the values for ${NAME}.
func Load(name string, data []byte, lookupEnv func(string) (string, bool)) (*Config, []Notice, error) {
	d := &decoder{
		findings:    findings{file: name},
		lookupEnv:   lookupEnv,
		shared:      newShared(),
		commands:    map[command]error{},
		probeFields: probeFields(),
	}
	var cfg *Config
	if root := d.parse(data); root != nil {
		cfg = d.config(root)
	}
	errs, notices := d.sorted()
	if d.failed() {
		return nil, notices, errs
	}
	return cfg, notices, nil
}
