// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"

	"github.com/prometheus/common/version"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/config/frompod"
)

// Restarts returns who may restart the containers of a rewritten manifest, the default first.
func Restarts() []string { return frompod.Restarts() }

// DefaultImage returns the agent's image, tagged with this binary's version if known.
func DefaultImage() string {
	if version.Version == "" {
		return "prober-exporter"
	}
	return "prober-exporter:" + version.Version
}

// FromPod prints the configuration made from a manifest, or the manifest with the agent added.
// FromPod prints notices, and the error that it returns, to stderr.
func FromPod(o FromPodOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	out, notices, err := convert(o, stdin)
	for _, n := range notices {
		_, _ = fmt.Fprintf(stderr, "%v: %v\n", n.Level, n)
	}
	if err == nil {
		_, err = stdout.Write(out)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
	}
	return err
}

func convert(o FromPodOptions, stdin io.Reader) ([]byte, []config.Notice, error) {
	name := o.File
	var data []byte
	var err error
	if name == "-" {
		name = "stdin"
		if data, err = config.ReadFrom(stdin); err != nil {
			err = fmt.Errorf("read stdin: %w", err)
		}
	} else {
		data, err = config.Read(name)
		err = naming("config.from-pod", err)
	}
	if err != nil {
		return nil, nil, err
	}
	return frompod.Convert(name, data, frompod.Options{
		Rewrite: o.Rewrite, Restart: frompod.Restart(o.Restart), Image: o.Image, HealthPort: o.HealthPort, MetricsPort: o.MetricsPort,
	})
}
