// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"io"
	"strings"
)

// said is a writer that passes its input on and keeps the beginning.
type said struct {
	io.Writer
	kept []byte
}

func (b *said) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), 512-len(b.kept))]...)
	return b.Writer.Write(p)
}

func (b *said) String() string { return string(b.kept) }

// runtimeRefused reports whether the output, with exit code 126 or 127, is what a daemon sends
// for a command that could not be started. A command may print and return the same: a Docker
// Engine then knows the command's process; Podman remembers none.
func (b *said) runtimeRefused() bool {
	said := b.String()
	podman := strings.HasPrefix(said, "Error: ") && strings.Contains(said, ": OCI ")
	return podman || strings.HasPrefix(said, "OCI runtime exec failed")
}
