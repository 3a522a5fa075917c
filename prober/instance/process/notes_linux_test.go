// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// A log that asks the source something does not hold up the source, which writes the log
// without the token.
func TestProcessLogsWithoutTheToken(t *testing.T) {
	logged := make(chan string, 10)
	var p *Source
	p = New(slog.New(testutil.LogFunc(func(line string) {
		p.Look(t.Context()) // takes the token
		logged <- line
	})))
	t.Cleanup(func() { p.eyes.sockets.Close() })
	p.Watch(byFile("app", pidFile(t, filepath.Join(t.TempDir(), "pid"), "nonsense")))
	run(t, p)
	if got, want := <-logged, "cannot look up the process of the target: the last view stays"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
