// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// restarter is the loop of examples/systemd/prober-restart@.service, outside systemd: its
// sleep is short, and its systemctl only notes what it is told.
type restarter struct {
	t   *testing.T
	dir string
}

// restart runs the loop for a target of an agent until the test ends.
func restart(t *testing.T, target, health string) *restarter {
	t.Helper()
	unit, err := os.ReadFile("examples/systemd/prober-restart@.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)\nExecStart=/bin/sh -c '(.*?)'\n`).FindSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit runs no shell:\n%s", unit)
	}
	script := strings.NewReplacer("\\\n", " ", "%i", target, "/usr/local/bin/prober_exporter", agenttest.Binary(t), "http://127.0.0.1:9708", health).Replace(string(m[1]))
	r := &restarter{t, t.TempDir()}
	for name, does := range map[string]string{
		"sleep":     `echo round >>rounds; [ ! -e end ] && exec /bin/sleep 0.02`,
		"systemctl": `echo "$@" >>told`,
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte("#!/bin/sh\ncd "+r.dir+"\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	loop := exec.Command("/bin/sh", "-c", script)
	loop.Env = append(os.Environ(), "PATH="+r.dir+":"+os.Getenv("PATH"))
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(r.dir, "end"), nil, 0o600); err != nil {
			t.Error(err)
		}
		if err := loop.Wait(); err != nil {
			t.Errorf("the loop: %v", err)
		}
	})
	return r
}

// lines are those that one of the commands has written.
func (r *restarter) lines(file string) []string {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil && !os.IsNotExist(err) {
		r.t.Error(err)
	}
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
}

// rounds waits until the loop has asked so often once more.
func (r *restarter) rounds(n int) {
	r.t.Helper()
	before := len(r.lines("rounds"))
	testutil.Eventually(r.t, "the loop goes on", func() error {
		if now := len(r.lines("rounds")); now <= before+n {
			return fmt.Errorf("%d rounds", now-before)
		}
		return nil
	})
}

// The loop restarts a service when the agent says that it is not live, and neither when it
// is, nor when the agent does not know it, nor without an agent.
func TestSystemdLoop(t *testing.T) {
	app := agenttest.NewApp(t)
	a := start(t, agenttest.Flags(testutil.Write(t, "targets:"+app.Target("app", "    instance: {source: static}")))...)
	a.Says(a.Health+"/ready/app", 200, "ok")
	known, unknown := restart(t, "app", a.Health), restart(t, "nosuch", a.Health)
	known.rounds(5)
	if told := known.lines("told"); len(told) > 0 {
		t.Errorf("a live service: %q", told)
	}
	app.Broken.Store(true)
	testutil.Eventually(t, "a service that is not live is restarted", func() error {
		if told := known.lines("told"); len(told) == 0 || told[0] != "--no-block restart app.service" {
			return fmt.Errorf("systemctl was told %q", told)
		}
		return nil
	})
	app.Broken.Store(false)
	a.Says(a.Health+"/live", 200, "ok")
	a.Stop()
	known.rounds(1)
	before := len(known.lines("told"))
	known.rounds(5)
	if told := known.lines("told"); len(told) != before {
		t.Errorf("without an agent: %q", told[before:])
	}
	if told := unknown.lines("told"); len(told) > 0 {
		t.Errorf("a service that the agent does not know: %q", told)
	}
}

// It is the status 503 that it acts on, whatever the body says.
func TestSystemdLoopStatus(t *testing.T) {
	for status, restarts := range map[int]bool{200: false, 301: false, 401: false, 404: false, 500: false, 502: false, 503: true, 504: false} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "[-]app answers 503 \nlive check failed\n")
			}))
			t.Cleanup(server.Close)
			r := restart(t, "app", server.URL)
			r.rounds(3)
			if told := r.lines("told"); (len(told) > 0) != restarts {
				t.Errorf("systemctl was told %q", told)
			}
		})
	}
}
