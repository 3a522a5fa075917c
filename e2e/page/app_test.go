// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// app is an application for probes. It answers a path with the status that the test has set, or
// 200. /slow/50ms takes that long, and /every/7 fails one time in seven. A process of its own
// has the socket and passes requests on: if this process closed a socket, the agent would see
// that the process still runs.
type app struct {
	t        *testing.T
	port     string
	statuses sync.Map // by path
	asked    atomic.Int64

	answers *httptest.Server
	front   *exec.Cmd
}

// frontOf is the variable that makes this program the process in front of an app. Its value is
// the address to listen on and the URL to ask.
const frontOf = "E2E_PAGE_FRONT_OF"

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{t: t, port: testutil.Port(t)}
	a.answers = httptest.NewServer(a)
	a.start()
	t.Cleanup(func() {
		a.stop()
		a.answers.Close()
	})
	return a
}

// start opens a socket, which is a new instance for the agent.
func (a *app) start() {
	a.t.Helper()
	self, err := os.Executable()
	if err != nil {
		a.t.Fatal(err)
	}
	address := "127.0.0.1:" + a.port
	a.front = exec.CommandContext(context.Background(), self)
	a.front.Env = append(os.Environ(), frontOf+"="+address+" "+a.answers.URL)
	a.front.Stderr = os.Stderr
	a.front.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.front.Start(); err != nil {
		a.t.Fatal(err)
	}
	testutil.Eventually(a.t, "the application listens", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// stop ends the process, if it runs.
func (a *app) stop() {
	_ = a.front.Process.Kill()
	_ = a.front.Wait()
}

// beFront is the process in front of an app.
func beFront(what string) error {
	address, answers, _ := strings.Cut(what, " ")
	to, err := url.Parse(answers)
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, httputil.NewSingleHostReverseProxy(to))
}

func (a *app) set(path string, status int) { a.statuses.Store(path, status) }

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if took, ok := strings.CutPrefix(r.URL.Path, "/slow/"); ok {
		d, err := time.ParseDuration(took)
		if err != nil {
			a.t.Error(err)
		}
		timer := time.NewTimer(d + time.Duration(a.asked.Add(1)%5)*d/10)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	status, ok := a.statuses.Load(r.URL.Path)
	var n int64
	if _, err := fmt.Sscanf(r.URL.Path, "/every/%d", &n); err == nil && a.asked.Add(1)%n == 0 {
		status, ok = 503, true
	}
	if ok {
		w.WriteHeader(status.(int))
	}
	fmt.Fprintln(w, "state of", r.URL.Path)
}

// agent is the shipped binary as a process.
type agent struct {
	t    *testing.T
	url  string
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer // a test may read it after the end of the agent
	file string
}

// ship starts an agent with a configuration in which PORT stands for the app's port.
func ship(t *testing.T, configuration string, args ...string) *agent {
	t.Helper()
	address := "127.0.0.1:" + testutil.Port(t)
	a := &agent{t: t, url: "http://" + address, file: filepath.Join(t.TempDir(), "prober.yml")}
	a.args = append([]string{"--config.file=" + a.file, "--web.listen-address=" + address}, args...)
	a.write(configuration)
	a.start()
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			t.Logf("the agent's log:\n%s", &a.log)
		}
	})
	return a
}

func (a *agent) write(configuration string) {
	a.t.Helper()
	testutil.Rewrite(a.t, a.file, configuration)
}

func (a *agent) start() {
	a.t.Helper()
	a.cmd = exec.CommandContext(context.Background(), binary, a.args...)
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	testutil.Eventually(a.t, "the agent serves", func() error {
		resp, err := http.Get(a.url + "/-/healthy")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
}

func (a *agent) stop() {
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // the agent may have ended
	_ = a.cmd.Wait()
}
