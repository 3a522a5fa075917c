// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package prometheus

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// app is an application in a process of its own. The test decides whether it is ready. /slow
// takes its time.
type app struct {
	w       *world
	name    string
	port    string
	process *process
}

// slow is how long /slow takes.
const slow = 60 * time.Millisecond

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "app" {
		serveApp(os.Args[2])
	}
	os.Exit(m.Run())
}

// serveApp is the application's process.
func serveApp(port string) {
	var ill atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		<-timer.C
	})
	mux.HandleFunc("/ill", func(http.ResponseWriter, *http.Request) { ill.Store(true) })
	mux.HandleFunc("/well", func(http.ResponseWriter, *http.Request) { ill.Store(false) })
	mux.HandleFunc("/{$}", func(http.ResponseWriter, *http.Request) {})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, mux))
	os.Exit(1)
}

func (w *world) newApp(t *testing.T, name string) *app {
	t.Helper()
	a := &app{w: w, name: name, port: testutil.Port(w.t)}
	a.start(t)
	return a
}

func (a *app) start(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a.process = a.w.run(t, a.name, self, "app", a.port)
	testutil.Within(t, time.Minute, a.name+" serves", func() bool { return get(a.url("/")) == nil })
}

func (a *app) url(path string) string { return "http://127.0.0.1:" + a.port + path }

// is makes the application ill or well.
func (a *app) is(t *testing.T, how string) {
	t.Helper()
	if err := get(a.url("/" + how)); err != nil {
		t.Fatal(err)
	}
}

// stop ends the application as a crash would.
func (a *app) stop() { a.process.stop(syscall.SIGKILL) }
