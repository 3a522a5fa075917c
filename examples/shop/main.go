// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// shop is an application to be probed, with a fault: after a request to /deadlock it
// answers nothing; to /crash, it ends.
package main

import (
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

func main() {
	// As the first process of a container it has no default for signals.
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		os.Exit(0)
	}()
	var mu sync.RWMutex
	well := func(http.ResponseWriter, *http.Request) {
		mu.RLock()
		defer mu.RUnlock()
	}
	http.HandleFunc("/healthz", well)
	http.HandleFunc("/readyz", well)
	http.HandleFunc("/deadlock", func(http.ResponseWriter, *http.Request) { mu.Lock() }) //nolint:govet // it is never unlocked
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	log.Fatal(http.ListenAndServe(":8080", nil))
}
