// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// client measures the CPU time of a whole process that asks for a verdict as in the
// application's container, and of one that takes the ordinary way.
func client(b *bench, r row) error {
	address, err := freeLoopback()
	if err != nil {
		return err
	}
	a, err := b.ship(b.targets(3, time.Hour, "readiness"), "--health.listen-address="+address)
	if err != nil {
		return err
	}
	defer a.stop()
	if err := a.untilReady(b.ctx, 10*time.Second); err != nil {
		return err
	}
	args := []string{"--health.check=http://" + address + "/live", "--health.check.fail-open"}
	const processes = 100
	l := line{title: r.title, unit: "ms", goal: r.goal, goalUnit: " ms"}
	for range b.rounds {
		for _, side := range []struct {
			args []string
			into *[]float64
		}{{append(args, "--log.level=info"), &l.usual}, {args, &l.ours}} {
			each := make([]float64, processes)
			for i := range each {
				cmd := exec.CommandContext(b.ctx, b.binary, side.args...)
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("run the client: %w: %s", err, out)
				}
				each[i] = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / 1e3
			}
			*side.into = append(*side.into, median(each))
		}
	}
	l.reach = l.ours
	b.table.add(l)
	return nil
}

// freeLoopback finds a port of 127.0.0.1, which is the address that the client asks.
func freeLoopback() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
