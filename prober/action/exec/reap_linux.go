// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// ReapOrphans reaps the processes that the agent inherits as PID 1 of a container: descendants of
// commands that have left their group and whose parent has died. Otherwise each would stay a
// zombie, until the pids run out. ReapOrphans returns when ctx is done; the agent runs it if
// os.Getpid() is 1, and stops it last.
//
// ReapOrphans never takes the exit status of a command for which an attempt waits.
func ReapOrphans(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		for reapOrphan() {
		}
		select {
		case <-died:
		case <-children.reaped:
		case <-ctx.Done():
			return
		}
	}
}

// reapOrphan reaps one orphan and reports whether to look for another. A dead child in own ends
// the search, because the kernel would show the same child again: waitChild reaps it within
// moments and then starts the next search.
func reapOrphan() bool {
	pid, ok := orphan()
	if !ok {
		return pid != 0
	}
	// The orphan is dead, so this does not wait, and it keeps its pid until this returns.
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && reaped == pid
}

// orphan returns a dead child that is not in own, without reaping it. If there is none, ok is
// false, and pid is 0 if there is nothing to look for at the moment.
//
// A child can die before startChild has added it to own. So a dead child that is not in own is
// only a suspect, until every start that was under way has ended without claiming it; later starts
// cannot claim it, because a zombie keeps its pid. A start that hangs in the kernel (an executable
// on a dead NFS server) makes orphans wait, but no other start: a plain lock between starts and
// searches would stop every exec probe of the agent.
func orphan() (pid int, ok bool) {
	children.mu.Lock()
	pid, err := exited(unix.P_ALL, 0, unix.WNOHANG)
	if err != nil || pid == 0 || children.own[pid] != nil {
		children.mu.Unlock()
		return 0, false
	}
	children.suspect = pid
	starting := children.starting
	children.starting = new(sync.WaitGroup)
	children.mu.Unlock()

	starting.Wait()

	children.mu.Lock()
	defer children.mu.Unlock()
	return pid, children.suspect == pid
}
