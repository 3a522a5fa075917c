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

// ReapOrphans reaps the processes that the agent inherits when it is PID 1, as in a
// container: descendants of commands that have left their group, whose parent has
// died. Without it each stays a zombie for ever, until the pids run out. It returns
// when ctx is done; main runs it if os.Getpid() is 1, and stops it last.
//
// It never takes the exit status of a command that an attempt waits for.
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

// reapOrphan reaps one orphan and reports whether to look for another. One of our
// own dead ends the search, as the kernel would go on showing the same one: whoever
// waits for it reaps it within moments and then sets off the next search.
func reapOrphan() bool {
	pid, ok := orphan()
	if !ok {
		return pid != 0
	}
	// It is dead, so this does not wait, and the pid is its own until this returns.
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && reaped == pid
}

// orphan returns a dead child that is not ours, without reaping it. If there is none
// ok is false, and pid is 0 if there is nothing to look for at the moment.
//
// A child can die before startChild has entered it in own. So one that is not there
// is only suspected, until every start that was under way when it was seen has ended
// without claiming it; later ones cannot claim it, since the pid is taken as long as
// it is a zombie. A start that hangs in the kernel (an executable on a dead NFS
// server) makes orphans wait, but no other start: with a plain lock between starts
// and searches it would stop every exec probe of the agent.
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
