// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// dockerExecs plays the commands in a daemon's containers: each exec gets the same.
type dockerExecs struct {
	mu      sync.Mutex
	created []map[string]any
	running map[string]bool
	pid     int
	exit    any // null, or a number

	output string        // frames
	after  chan struct{} // the output ends once this is closed
}

// frame is output of a command as the daemon sends it.
func frame(from byte, text string) string {
	return string([]byte{from, 0, 0, 0, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
}

// newDockerExecs makes the daemon know commands that end with that code after output.
func newDockerExecs(f *dockerDaemon, exit any, output string) *dockerExecs {
	e := &dockerExecs{running: make(map[string]bool), pid: 4711, exit: exit, output: output, after: make(chan struct{})}
	close(e.after)
	f.fault("/containers/"+dockerID(1)+"/exec", func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			f.t.Error(err)
		}
		e.created = append(e.created, asked)
		fmt.Fprintf(w, `{"Id":"e%d"}`, len(e.created))
	})
	f.fault("/exec/", func(w http.ResponseWriter, r *http.Request) {
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
			f.t.Errorf("started with %v", how)
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
func (e *dockerExecs) hang(ids ...string) (release func()) {
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

func (e *dockerExecs) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.created)
}

// dockerRunning is a source that sees its container run, and the daemon.
func dockerRunning(t *testing.T) (*dockerTest, *dockerDaemon) {
	t.Helper()
	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	f.set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.await("app", dockerLife(1, 1, gate.Running))
	s.until("up", s.Up)
	return s, f
}

// in runs a command with a timeout.
func (s *dockerTest) in(timeout time.Duration, command ...string) (code int, output string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	var b bytes.Buffer
	code, err = s.Exec(ctx, "app", command, []string{"A=b"}, &b)
	return code, b.String(), err
}

// isNotStarted reports how another package would see an error.
func isNotStarted(err error) bool {
	var not interface{ NotStarted() bool }
	return errors.As(err, &not) && not.NotStarted()
}

// A command runs with its variables; its output comes in order and its exit code is the
// daemon's: 127 too, if there was a process.
func TestDockerExec(t *testing.T) {
	s, f := dockerRunning(t)
	for _, exit := range []int{0, 3, 127, 137} {
		e := newDockerExecs(f, exit, frame(1, "out ")+frame(2, "err ")+frame(1, "")+frame(1, strings.Repeat("x", 60000)))
		code, output, err := s.in(10*time.Second, "check", "$HOME")
		if want := "out err " + strings.Repeat("x", 60000); code != exit || output != want || err != nil {
			t.Errorf("got %d, %.20q, %v; want %d", code, output, err, exit)
		}
		got, _ := json.Marshal(e.created)
		if want := `[{"AttachStderr":true,"AttachStdout":true,"Cmd":["check","$HOME"],"Env":["A=b"]}]`; string(got) != want {
			t.Errorf("created %s, want %s", got, want)
		}
	}
}

// A daemon that forgets processes does not turn exit code 127 into something else.
func TestDockerExecForgottenProcess(t *testing.T) {
	s, f := dockerRunning(t)
	for _, output := range []string{frame(2, "sh: curl: not found\n"), frame(1, "Error: x"), ""} {
		newDockerExecs(f, 127, output).pid = 0
		if code, _, err := s.in(10*time.Second, "sh"); code != 127 || err != nil {
			t.Errorf("%q: got %d, %v; want 127", output, code, err)
		}
	}
}

// A command that has closed its output ends when it ends.
func TestDockerExecClosesOutput(t *testing.T) {
	s, f := dockerRunning(t)
	e := newDockerExecs(f, 5, "")
	e.mu.Lock()
	e.running["e1"] = true
	e.mu.Unlock()
	done := make(chan int, 1)
	go func() {
		code, _, err := s.in(10*time.Second, "check")
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	s.until("it was looked at 3 times", func() bool { return f.count("GET /v1.41/exec/e1/json") >= 3 })
	e.mu.Lock()
	e.running["e1"] = false
	e.mu.Unlock()
	if code := <-done; code != 5 {
		t.Errorf("got %d, want 5", code)
	}
}

// What could not be started says so, with the daemon's words, and is never a timeout.
func TestDockerExecNotStarted(t *testing.T) {
	s, f := dockerRunning(t)
	for name, c := range map[string]struct {
		prepare func()
		want    string
	}{
		"no such file": {func() {
			newDockerExecs(f, 127, frame(1, "OCI runtime exec failed: no such file\r\n")).pid = 0
		}, "OCI runtime exec failed: no such file"},
		"cannot be executed": {func() { newDockerExecs(f, 126, frame(1, "OCI runtime exec failed: denied\r\n")).pid = 0 }, "denied"},
		"of podman": {func() {
			newDockerExecs(f, 126, frame(2, "Error: runc: exec failed: denied: OCI permission denied\r\n")).pid = 0
		}, "OCI permission denied"},
		"refused": {func() {
			f.fault("/containers/"+dockerID(1)+"/exec", says(409, `{"message":"Container is paused"}`))
		}, "create the exec: status 409: Container is paused"},
		"no ID": {func() { f.fault("/containers/"+dockerID(1)+"/exec", says(201, `{}`)) }, "no ID"},
		"not started": {func() {
			newDockerExecs(f, 0, "")
			f.fault("/exec/", says(400, `{"message":"OCI: nope"}`))
		}, "start the exec: status 400: OCI: nope"},
		"hangs at create": {func() { f.fault("/containers/"+dockerID(1)+"/exec", hangs) }, "deadline"},
		"hangs at start": {func() {
			newDockerExecs(f, 0, "")
			f.fault("/exec/", hangs)
		}, "deadline"},
	} {
		c.prepare()
		_, _, err := s.in(50*time.Millisecond, name)
		if err == nil || !strings.Contains(err.Error(), c.want) || !isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v; want %q, not started", name, err, c.want)
		}
	}
}

// Where no container runs, nothing is started, and the daemon is not asked.
func TestDockerExecNoContainer(t *testing.T) {
	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	e := newDockerExecs(f, 0, "")
	check := func(want string) {
		t.Helper()
		if _, _, err := s.in(time.Second, "check"); err == nil || !strings.Contains(err.Error(), want) || !isNotStarted(err) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check("no container")
	f.set("app", 1, "paused", 1)
	s.watch("app")
	s.run()
	s.await("app", dockerLife(1, 1, gate.PhaseUnknown))
	s.until("up", s.Up)
	check("paused")
	f.set("app", 1, "restarting", 1)
	f.event("die", 1)
	s.await("app", dockerLife(1, 1, gate.Waiting))
	check("does not run")
	if n := e.count(); n != 0 {
		t.Errorf("%d created, want 0", n)
	}
}

// A command that hangs is a timeout in each of 3 attempts, and runs 1 time; once it has
// ended, or its container's life has, the next one is started.
func TestDockerExecHangs(t *testing.T) {
	s, f := dockerRunning(t)
	e := newDockerExecs(f, 0, frame(1, "begun"))
	release := e.hang("e1", "e2")
	for range 3 {
		if _, _, err := s.in(30*time.Millisecond, "check"); !errors.Is(err, context.DeadlineExceeded) || isNotStarted(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		if n := e.count(); n != 1 {
			t.Errorf("%d run, want 1", n)
		}
	}
	if _, _, err := s.in(30*time.Millisecond, "other"); !errors.Is(err, context.DeadlineExceeded) || e.count() != 2 {
		t.Errorf("another command: got %v and %d runs, want a timeout and 2", err, e.count())
	}
	release()
	if _, output, err := s.in(10*time.Second, "check"); output != "begun" || err != nil || e.count() != 3 {
		t.Errorf("once it has ended: got %q, %v and %d runs; want 3", output, err, e.count())
	}

	defer e.hang("e4", "e5")()
	s.in(30*time.Millisecond, "check")
	f.set("app", 1, "running", 2)
	f.event("start", 1)
	s.await("app", dockerLife(1, 2, gate.Running))
	s.in(30*time.Millisecond, "check")
	if n := e.count(); n != 5 {
		t.Errorf("%d run, want a fifth in the next life", n)
	}
}

// A command that had to wait for an earlier one, and then runs out of time, has not had
// its time: that says nothing. With time enough it counts.
func TestDockerExecAwaitsEarlier(t *testing.T) {
	s, f := dockerRunning(t)
	e := newDockerExecs(f, 0, "")
	release := e.hang("e1", "e2")
	defer release()
	s.in(30*time.Millisecond, "check")
	seen := f.count("GET /v1.41/exec/e1/json")
	done := make(chan error, 1)
	go func() {
		_, _, err := s.in(time.Second, "check")
		done <- err
	}()
	s.until("it is awaited", func() bool { return f.count("GET /v1.41/exec/e1/json") > seen })
	e.mu.Lock()
	e.running["e1"] = false
	e.mu.Unlock()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "less than its time") {
		t.Errorf("got %v, want that it had less than its time", err)
	}
	if n := e.count(); n != 2 {
		t.Errorf("%d run, want 2", n)
	}
	release()
	if code, _, err := s.in(10*time.Second, "check"); code != 0 || err != nil {
		t.Errorf("got %d, %v; want success", code, err)
	}
}

// An earlier one that the daemon cannot tell of, or has never started, is no timeout.
func TestDockerExecEarlierUnknown(t *testing.T) {
	s, f := dockerRunning(t)
	e := newDockerExecs(f, 0, "")
	e.pid = 0
	defer e.hang("e1")()
	for range 2 {
		if _, _, err := s.in(30*time.Millisecond, "check"); !isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("never started: got %v, want an error that it was not", err)
		}
	}
	f.fault("/exec/", says(500, `{"message":"sick"}`))
	if _, _, err := s.in(time.Second, "check"); !isNotStarted(err) || !strings.Contains(err.Error(), "sick") {
		t.Errorf("no answer: got %v, want the daemon's", err)
	}
	next := newDockerExecs(f, 0, "")
	next.created = e.created
	f.fault("/exec/e1/json", says(404, ""))
	if _, _, err := s.in(10*time.Second, "check"); err != nil || next.count() != 2 {
		t.Errorf("forgotten by the daemon: got %v and %d runs, want 2", err, next.count())
	}
}

// At the deadline a command that has ended counts by its exit code; a container that is
// frozen, restarted or gone, and a daemon that does not answer, are no timeout.
func TestDockerExecDeadline(t *testing.T) {
	s, f := dockerRunning(t)
	s.execGrace = 100 * time.Millisecond
	e := newDockerExecs(f, 6, "")
	release := e.hang() // the output stays open, and nothing runs
	if code, _, err := s.in(30*time.Millisecond, "ended"); code != 6 || err != nil {
		t.Errorf("ended in time: got %d, %v; want 6", code, err)
	}
	release()
	for name, harm := range map[string]func(){
		"paused":    func() { f.set("app", 1, "paused", 1) },
		"restarted": func() { f.set("app", 1, "running", 2) },
		"exited":    func() { f.set("app", 1, "exited", 1) },
		"gone":      func() { f.remove("app") },
		"no answer": func() { f.fault("/exec/", hangs) },
		"sick":      func() { f.fault("/exec/", says(500, "")) },
	} {
		f.set("app", 1, "running", 1)
		e := newDockerExecs(f, 0, "")
		release := e.hang("e1", "e2", "e3", "e4", "e5", "e6")
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := s.Exec(ctx, "app", []string{name}, nil, new(bytes.Buffer))
			done <- err
		}()
		s.until("it runs", func() bool { return f.count("POST /v1.41/exec/e1/start") > 0 && e.count() == 1 })
		harm()
		if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want an error that is no timeout", name, err)
		}
		cancel()
		release()
	}
}

// An agent that stops cuts a command short: the error is the stop.
func TestDockerExecCancelled(t *testing.T) {
	s, f := dockerRunning(t)
	defer newDockerExecs(f, 0, "").hang("e1")()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(ctx, "app", []string{"check"}, nil, new(bytes.Buffer))
		done <- err
	}()
	s.until("it runs", func() bool { return f.count("POST /v1.41/exec/e1/start") == 1 })
	cancel()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// Output that is cut, or is not in frames, and an exit code that the daemon does not
// know, are errors that say nothing of the target.
func TestDockerExecBroken(t *testing.T) {
	s, f := dockerRunning(t)
	for name, output := range map[string]string{
		"half a header": "\x01\x00\x00",
		"half a frame":  frame(1, "whole")[:10],
		"nonsense":      "HTTP/1.1 200 OK",
		"fifth stream":  frame(5, "x"),
		"the daemon's":  frame(3, "lost the container"),
		"half of that":  frame(3, "lost the container")[:12],
	} {
		newDockerExecs(f, 0, output)
		_, _, err := s.in(10*time.Second, name)
		if err == nil || isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	newDockerExecs(f, nil, "")
	if _, _, err := s.in(10*time.Second, "no code"); err == nil || !strings.Contains(err.Error(), "exit code") {
		t.Errorf("got %v, want that there is no exit code", err)
	}
}

// A hung command is killed where the agent sees its process, and is then not awaited; a
// process that is not the command's lives, and so does one whose command has ended.
func TestDockerExecKills(t *testing.T) {
	s, f := dockerRunning(t)
	s.execGrace = 2 * time.Second
	s.proc = t.TempDir()
	start := func(cgroup string) (*exec.Cmd, <-chan error) {
		t.Helper()
		child := exec.CommandContext(t.Context(), "sleep", "600")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.proc, strconv.Itoa(child.Process.Pid))
		os.Mkdir(dir, 0o700)
		os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/docker/"+cgroup+"\n"), 0o600)
		os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tsleep\nNSpid:\t4711\t12\n"), 0o600)
		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()
		t.Cleanup(func() { child.Process.Kill() })
		return child, ended
	}

	child, ended := start(dockerID(1))
	e := newDockerExecs(f, 137, "")
	e.pid = child.Process.Pid
	release := e.hang("e1")
	died := make(chan struct{})
	go func() {
		defer close(died)
		<-ended
		release()
	}()
	if _, _, err := s.in(30*time.Millisecond, "check"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	<-died
	if got := s.targets["app"].unfinished; len(got) != 0 {
		t.Errorf("%d are awaited, want 0", len(got))
	}

	other, alive := start(dockerID(2))
	e = newDockerExecs(f, 137, "")
	e.pid = other.Process.Pid
	release = e.hang("e1")
	s.in(30*time.Millisecond, "other container")
	release()
	run := &dockerRun{d: s.Docker, target: s.targets["app"], container: dockerID(2), id: "e1"}
	run.kill(t.Context(), other.Process.Pid) // its command has ended
	run.kill(t.Context(), 1)
	select {
	case err := <-alive:
		t.Errorf("somebody else's process was killed: %v", err)
	default:
	}
}

// A command that timed out under an instance that is no longer in view is not awaited.
func TestDockerExecOutlived(t *testing.T) {
	s, f := dockerRunning(t)
	release := newDockerExecs(f, 0, "").hang("e1")
	defer release()
	done := make(chan error, 1)
	go func() {
		_, _, err := s.in(500*time.Millisecond, "check")
		done <- err
	}()
	s.until("it runs", func() bool { return f.count("POST /v1.41/exec/e1/start") == 1 })
	s.Forget("app")
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	s.watch("app")
	s.await("app", dockerLife(1, 1, gate.Running))
	if n := len(s.targets["app"].unfinished); n != 0 {
		t.Errorf("%d are awaited, want 0", n)
	}
}

// A process counts as the container's own only if it is in its cgroup, in a namespace one
// below, and its first one where that is asked: never by its number alone.
func TestDockerProcess(t *testing.T) {
	if containerPID("/proc", os.Getpid(), "no such container", false) || containerPID("/proc", 0, "", true) || containerPID("/proc", 1<<30, "x", true) {
		t.Error("a process of nobody's is taken for a container's")
	}
	for _, c := range []struct {
		status string
		first  bool
		want   bool
	}{
		{"Name:\tapp\nNSpid:\t4711\t1\nX:\n", true, true},
		{"NSpid:\t4711\t1\n", false, false},
		{"NSpid:\t4711\t27\n", false, true},
		{"NSpid:\t4711\t27\n", true, false},
		{"NSpid:\t27\n", false, false},
		{"NSpid:\t9\t4711\t27\n", false, false},
		{"Name:\tapp\n", false, false},
	} {
		if got := nestedPID(c.status, c.first); got != c.want {
			t.Errorf("%q, first %v: got %v", c.status, c.first, got)
		}
	}
}
