// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Shop is a small application to probe. After a boot of three seconds it listens on port
// 8080 and answers /healthz and /readyz with 200. Two requests make it fail, so that you can
// watch what happens then:
//
//	/deadlock   no request is answered any more
//	/crash      the process ends
package main

import (
	"context"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// boot is long enough that nobody can miss a restart.
const boot = 3 * time.Second

func main() {
	// The first process of a container ends at SIGTERM only if it asks for the signal.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	booted := time.NewTimer(boot)
	defer booted.Stop()
	select {
	case <-ctx.Done():
		return
	case <-booted.C:
	}

	var mu sync.RWMutex
	well := func(http.ResponseWriter, *http.Request) {
		mu.RLock()
		defer mu.RUnlock()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", well)
	mux.HandleFunc("/readyz", well)
	mux.HandleFunc("/deadlock", func(http.ResponseWriter, *http.Request) { mu.Lock() })
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { go panic("asked to crash") })

	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case <-ctx.Done():
	case err := <-ended:
		panic(err)
	}
}
