// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// dockerSaid passes on what is written to it and keeps how it began.
type dockerSaid struct {
	io.Writer
	kept []byte
}

func (b *dockerSaid) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), 512-len(b.kept))]...)
	return b.Writer.Write(p)
}

func (b *dockerSaid) String() string { return string(b.kept) }

// runtimeRefused reports whether this is what a daemon sends where a command could not be
// started, with exit code 126 or 127. A command may say and do the same by itself: a
// Docker Engine then knows the process that it had, Podman remembers none.
func (b *dockerSaid) runtimeRefused() bool {
	said := b.String()
	podman := strings.HasPrefix(said, "Error: ") && strings.Contains(said, ": OCI ")
	return podman || strings.HasPrefix(said, "OCI runtime exec failed")
}

// dockerDemux copies a stream of frames, each with a header of eight bytes: where it
// comes from, and how long it is.
func dockerDemux(output io.Writer, stream io.Reader) error {
	const daemon = 3 // stdin, stdout, stderr, and an error of the daemon's
	var header [8]byte
	for {
		_, err := io.ReadFull(stream, header[:])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read the output: %w", err)
		case header[0] > daemon || header[1]|header[2]|header[3] != 0:
			return errors.New("read the output: it is not in frames")
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		if header[0] == daemon {
			text, err := io.ReadAll(io.LimitReader(stream, min(size, maxDockerError)))
			if err != nil {
				return fmt.Errorf("read the output: %w", err)
			}
			return fmt.Errorf("the daemon says: %s", dockerLine(string(text)))
		}
		if _, err := io.CopyN(output, stream, size); err != nil {
			return fmt.Errorf("read the output: %w", err)
		}
	}
}
