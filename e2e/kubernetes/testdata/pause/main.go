// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The pause command holds the namespaces of a pod, and reaps what nobody waits for where
// it is the first process of all containers.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
}
