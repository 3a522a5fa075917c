// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The app command is an application for probes: an HTTP server that misbehaves on demand and,
// with arguments, commands for exec probes.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(command(os.Args[1:]))
	}
	var ill, deaf atomic.Bool
	// The first process of a container has no default handling of signals.
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		for range term {
			if !deaf.Load() {
				os.Exit(0)
			}
		}
	}()
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/ill", func(http.ResponseWriter, *http.Request) { ill.Store(true) })
	http.HandleFunc("/deaf", func(http.ResponseWriter, *http.Request) { deaf.Store(true) })
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	http.HandleFunc("/eat", func(http.ResponseWriter, *http.Request) { eat() })
	http.ListenAndServe(":8080", nil)
}

// eat eats memory until the kernel kills the process.
func eat() {
	var eaten [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		eaten = append(eaten, b)
		_ = eaten
	}
}

// command runs the command of an exec probe. "ask PATH" makes a request to the application.
func command(args []string) int {
	switch args[0] {
	case "exit":
		for _, text := range args[2:] {
			fmt.Println(text)
		}
		code, _ := strconv.Atoi(args[1])
		return code
	case "turns":
		for i := range 3 {
			fmt.Fprintf(os.Stdout, "out%d ", i)
			time.Sleep(50 * time.Millisecond) // only a pause keeps the order of two pipes
			fmt.Fprintf(os.Stderr, "err%d ", i)
			time.Sleep(50 * time.Millisecond)
		}
		return 0
	case "env":
		fmt.Print(os.Getenv(args[1]))
		return 0
	case "flood":
		for range 1 << 14 {
			fmt.Println("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde")
		}
		return 0
	case "hang":
		time.Sleep(time.Hour)
	case "crash":
		code, _ := strconv.Atoi(args[1])
		time.Sleep(200 * time.Millisecond)
		return code
	case "eat":
		eat()
	case "ask":
		resp, err := http.Get("http://127.0.0.1:8080" + args[1])
		if err != nil {
			fmt.Println(err)
			return 2
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			fmt.Println(resp.Status)
			return 1
		}
		return 0
	}
	return 64
}
