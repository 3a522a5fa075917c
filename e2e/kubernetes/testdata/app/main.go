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

// The app command is an application to be probed on port 8080. It boots for 5 s and is
// well then. It can be told what to answer, and ends 8 s after a SIGTERM, as one that has
// requests to finish.
package main

import (
	"net/http"
	"os"
	"os/signal"
	"strconv"
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
	mu       sync.Mutex // whoever dead-locks the application keeps it
	statuses map[string]int
}

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	a := &app{began: time.Now(), statuses: map[string]int{}}
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
	a.mu.Unlock()
	timer := time.NewTimer(drain)
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
	if !told && time.Since(a.began) < boot {
		status = http.StatusServiceUnavailable
	}
	if status != 0 {
		w.WriteHeader(status)
	}
}
