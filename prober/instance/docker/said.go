// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"io"
	"strings"
)

// said passes on what is written to it and keeps how it began.
type said struct {
	io.Writer
	kept []byte
}

func (b *said) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), 512-len(b.kept))]...)
	return b.Writer.Write(p)
}

func (b *said) String() string { return string(b.kept) }

// runtimeRefused reports whether this is what a daemon sends where a command could not be
// started, with exit code 126 or 127. A command may say and do the same by itself: a
// Docker Engine then knows the process that it had, Podman remembers none.
func (b *said) runtimeRefused() bool {
	said := b.String()
	podman := strings.HasPrefix(said, "Error: ") && strings.Contains(said, ": OCI ")
	return podman || strings.HasPrefix(said, "OCI runtime exec failed")
}
