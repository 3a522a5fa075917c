// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/config/frompod"
)

// defaultImage is the agent's image, of this very version if it is known.
func defaultImage() string {
	if version.Version == "" {
		return "prober-exporter"
	}
	return "prober-exporter:" + version.Version
}

// fromPod prints the configuration that a manifest comes to, or the manifest with the
// agent in it, and returns the exit code. What there is to say goes to stderr.
func fromPod(o *options, stdin io.Reader, stdout, stderr io.Writer) int {
	out, notices, err := convert(o, stdin)
	for _, n := range notices {
		_, _ = fmt.Fprintf(stderr, "%v: %v\n", n.Level, n)
	}
	if err == nil {
		_, err = stdout.Write(out)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitError
	}
	return exitOK
}

func convert(o *options, stdin io.Reader) ([]byte, []config.Notice, error) {
	name := o.fromPod
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
		Rewrite: o.fromPodRewrite, Image: o.fromPodImage, HealthPort: o.fromPodHealth, MetricsPort: o.fromPodMetrics,
	})
}

// stdinArgument joins the flag and a - of its own, which kingpin takes for the
// beginning of a flag.
func stdinArgument(args []string) []string {
	args = slices.Clone(args)
	for i := range len(args) - 1 {
		if strings.TrimLeft(args[i], "-") == "config.from-pod" && args[i+1] == "-" {
			args[i] += "=-"
			return slices.Delete(args, i+1, i+2)
		}
	}
	return args
}

// tasks counts what this process is asked to do and end, instead of serving.
func (o *options) tasks() (n int) {
	for _, asked := range []bool{o.isFromPod, o.configCheck, o.isHealthCheck, o.terminating} {
		if asked {
			n++
		}
	}
	return n
}

// checkFromPod says which flag of the conversion, or of what else ends at once, cannot be.
func (o *options) checkFromPod() error {
	switch {
	case o.isFromPod && o.fromPod == "":
		return errors.New("--config.from-pod needs a file, or - for stdin")
	case o.tasks() > 1:
		return errors.New("--config.from-pod, --config.check, --health.check and --terminating exclude each other")
	case !o.isFromPod && o.fromPodRewrite:
		return errors.New("--config.from-pod.rewrite needs --config.from-pod")
	case o.fromPodImage == "":
		return errors.New("--config.from-pod.image must not be empty")
	case !isPort(o.fromPodHealth):
		return fmt.Errorf("--config.from-pod.health-port must be between 1 and 65535, is %d", o.fromPodHealth)
	case !isPort(o.fromPodMetrics):
		return fmt.Errorf("--config.from-pod.metrics-port must be between 1 and 65535, is %d", o.fromPodMetrics)
	case o.fromPodHealth == o.fromPodMetrics:
		return fmt.Errorf("--config.from-pod.health-port and --config.from-pod.metrics-port must differ, are both %d", o.fromPodHealth)
	}
	return nil
}

func isPort(n int) bool { return 1 <= n && n <= 65535 }
