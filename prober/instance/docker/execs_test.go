// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// execs plays the commands in a daemon's containers. Each command has the same output and end.
type execs struct {
	mu      sync.Mutex
	created []map[string]any
	running map[string]bool
	pid     int
	exit    any // null, or a number

	output string        // frames
	after  chan struct{} // the output ends when after is closed
}

// frame returns output of a command as the daemon sends it.
func frame(from byte, text string) string {
	return string([]byte{from, 0, 0, 0, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
}

// newExecs makes the daemon's commands write output and end with code exit.
func newExecs(t testing.TB, f *dockerd.Daemon, exit any, output string) *execs {
	e := &execs{running: make(map[string]bool), pid: 4711, exit: exit, output: output, after: make(chan struct{})}
	close(e.after)
	f.Fault("/containers/"+dockerd.ID(1)+"/exec", func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		e.created = append(e.created, asked)
		fmt.Fprintf(w, `{"Id":"e%d"}`, len(e.created))
	})
	f.Fault("/exec/", func(w http.ResponseWriter, r *http.Request) {
		id := strings.Split(r.URL.Path, "/")[3]
		e.mu.Lock()
		defer e.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/json") {
			exit := e.exit
			if e.running[id] {
				exit = nil
			}
			json.NewEncoder(w).Encode(map[string]any{"Running": e.running[id], "ExitCode": exit, "Pid": e.pid})
			return
		}
		var how map[string]bool
		json.NewDecoder(r.Body).Decode(&how)
		if len(how) != 2 || how["Detach"] || how["Tty"] {
			t.Errorf("started with %v", how)
		}
		fmt.Fprint(w, e.output)
		w.(http.Flusher).Flush()
		after := e.after
		e.mu.Unlock()
		select {
		case <-after:
		case <-r.Context().Done():
		}
		e.mu.Lock()
	})
	return e
}

// hang makes commands run until release is called.
func (e *execs) hang(ids ...string) (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	after := make(chan struct{})
	e.after = after
	for _, id := range ids {
		e.running[id] = true
	}
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		clear(e.running)
		close(after)
	})
}

func (e *execs) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.created)
}

// running returns a source that sees its container run, and the daemon.
func running(t *testing.T) (*world, *dockerd.Daemon) {
	t.Helper()
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.await("app", life(1, 1, gate.Running))
	s.until("up", s.Up)
	return s, f
}

// soon is the timeout of a command that hangs. It leaves enough time for everything before
// that, on a busy machine too.
const soon = 500 * time.Millisecond

// in runs a command with a timeout.
func (s *world) in(timeout time.Duration, command ...string) (code int, output string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	var b bytes.Buffer
	code, err = s.Exec(ctx, "app", command, []string{"A=b"}, &b)
	return code, b.String(), err
}

// isNotStarted reports whether other packages take err as the error of a command that has not
// started.
func isNotStarted(err error) bool {
	var not interface{ NotStarted() bool }
	return errors.As(err, &not) && not.NotStarted()
}
