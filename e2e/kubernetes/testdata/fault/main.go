// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The fault command is an application on port 8080 that fails at an exact moment. It writes
// to stdout when it failed, and when each SIGTERM came, in nanoseconds of Unix time:
//
//	fault 1795339200000000000
//	SIGTERM 1795339212000000000
//
// GET /fault?kind=hang&after=/healthz&phase=3.2s makes it fail 3.2 s after the next question
// for /healthz. It hangs, answers 500, or refuses: its listener is closed, and it lives on.
// GET /fault?kind=hog&n=2 starts two processes beside it that take all the CPU time they get.
//
// From the first SIGTERM on it answers 500, and it ends after the time in END, or never.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// app is what the application is like.
type app struct {
	listener net.Listener
	hogs     sync.Once

	mu    sync.Mutex
	fault string // "" while it is well
	asked map[string]chan struct{}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "hog" {
		for {
			_ = 0
		}
	}
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGTERM)
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		panic(err)
	}
	a := &app{listener: listener, asked: map[string]chan struct{}{}}
	http.HandleFunc("/fault", a.be)
	http.HandleFunc("/", a.answer)
	go http.Serve(listener, nil) // until the listener is closed
	for range told {
		write("SIGTERM")
		a.fail("500")
		if end, err := time.ParseDuration(os.Getenv("END")); err == nil {
			time.AfterFunc(end, func() { os.Exit(0) })
		}
	}
}

// write writes down that something happens now.
func write(what string) {
	now := time.Now().UnixNano()
	fmt.Println(what, now)
}

func (a *app) be(_ http.ResponseWriter, r *http.Request) {
	kind, phase := r.FormValue("kind"), time.Duration(0)
	if kind == "hog" {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			panic(err)
		}
		go a.hogs.Do(func() { hog(n) }) // the answer comes first
		return
	}
	if text := r.FormValue("phase"); text != "" {
		var err error
		if phase, err = time.ParseDuration(text); err != nil {
			panic(err)
		}
	}
	asked := make(chan struct{})
	a.mu.Lock()
	a.asked[r.FormValue("after")] = asked
	a.mu.Unlock()
	go func() {
		<-asked
		timer := time.NewTimer(phase)
		<-timer.C
		a.fail(kind)
		write("fault")
	}()
}

// hog starts processes that take all they get.
func hog(n int) {
	for range n {
		if err := exec.Command("/proc/self/exe", "hog").Start(); err != nil {
			panic(err)
		}
	}
	write("hogs")
}

// fail makes the application fail from now on.
func (a *app) fail(kind string) {
	if kind == "refuse" {
		a.listener.Close()
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = kind
}

func (a *app) answer(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	if asked, ok := a.asked[r.URL.Path]; ok {
		delete(a.asked, r.URL.Path)
		close(asked)
	}
	fault := a.fault
	a.mu.Unlock()
	switch fault {
	case "hang":
		<-r.Context().Done()
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
	}
}
