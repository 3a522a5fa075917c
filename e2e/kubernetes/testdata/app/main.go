// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The app command is an application to be probed on port 8080. It boots for 5 s and is
// well then. It can be told what to answer, and ends 8 s after a SIGTERM, as one that has
// requests to finish.
//
// LIVES says what it does in one life after the other, separated by commas, the last of
// them again and again: it listens after a time such as 50s and is well then, it hangs, or
// after exit=50s it ends with status 1, or it is well at once and ends with status 0 after
// done=50s. Its lives are counted in the folder /lives. With DRAIN=40s it takes so long to
// end, and is ill meanwhile. `app sleep 65s` does just that.
package main

import (
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	boot  = 5 * time.Second
	drain = 8 * time.Second
)

// app is what it answers by path; a path without a status is well after the boot.
type app struct {
	began    time.Time
	boot     time.Duration
	mu       sync.Mutex // whoever dead-locks the application keeps it
	statuses map[string]int
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "sleep" {
		wait(os.Args[2])
		return
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	a := &app{began: time.Now(), boot: boot, statuses: map[string]int{}}
	if lives := os.Getenv("LIVES"); lives != "" {
		a.boot = 0
		life, ends := strings.CutPrefix(next(strings.Split(lives, ",")), "exit=")
		if after, done := strings.CutPrefix(life, "done="); done {
			go func() {
				wait(after)
				os.Exit(0)
			}()
			life = "0s"
		}
		if life == "hang" {
			<-term
			return
		}
		booted := make(chan struct{})
		go func() {
			defer close(booted)
			wait(life)
		}()
		select {
		case <-booted:
		case <-term:
			return
		}
		if ends {
			os.Exit(1)
		}
	}
	http.HandleFunc("/be", a.be)
	http.HandleFunc("/", a.answer)
	go func() {
		http.ListenAndServe(":8080", nil)
		os.Exit(1)
	}()
	<-term
	if !a.mu.TryLock() {
		os.Exit(3) // dead-locked
	}
	a.statuses["/readyz"] = http.StatusServiceUnavailable
	ends := os.Getenv("DRAIN")
	if ends != "" {
		a.statuses["/healthz"] = http.StatusInternalServerError
	} else {
		ends = drain.String()
	}
	a.mu.Unlock()
	wait(ends)
}

// next counts this life and returns what it is to be.
func next(lives []string) string {
	const file = "/lives/count"
	text, _ := os.ReadFile(file) // none is the first
	n, _ := strconv.Atoi(string(text))
	if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		panic(err)
	}
	return lives[min(n, len(lives)-1)]
}

// wait takes as long as the text says.
func wait(text string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	timer := time.NewTimer(d)
	<-timer.C
}

// be takes statuses for paths, /be?/healthz=503; dead-lock=1 is the end of all answers.
func (a *app) be(_ http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	for key, values := range r.URL.Query() {
		if key == "dead-lock" {
			return
		}
		a.statuses[key], _ = strconv.Atoi(values[0])
	}
	a.mu.Unlock()
}

func (a *app) answer(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, told := a.statuses[r.URL.Path]
	if !told && time.Since(a.began) < a.boot {
		status = http.StatusServiceUnavailable
	}
	if status != 0 {
		w.WriteHeader(status)
	}
}
