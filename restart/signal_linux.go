// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// endPoll is the time between two looks at a process that has got a signal.
	endPoll = 20 * time.Millisecond
	// killTime is how long a process that has got SIGKILL may take to end.
	killTime = 10 * time.Second
)

// signalProcess sends the stop signal to the process of a request, and SIGKILL after the grace
// period. Whoever supervises the process starts the next one. When the agent stops, the process
// keeps its signal and gets no SIGKILL.
func signalProcess(ctx context.Context, q *request) (string, error) {
	who, ok := proc.OfLife(q.instance)
	switch {
	case !ok:
		return "", stale("the instance is no process")
	case who.PID == os.Getpid():
		return "", errors.New("the process is the agent's own")
	}
	p, err := hold(who)
	if err != nil {
		return "", err
	}
	defer p.close()

	if err := q.begin(); err != nil {
		return "", err
	}
	name := q.target.Restart.Signal.StopSignal
	began := time.Now()
	if err := p.send(name); err != nil {
		return "", err
	}
	did := fmt.Sprintf("process %d has got %s", who.PID, name)
	if p.awaitEnd(ctx, q.grace) {
		return fmt.Sprintf("%s, and ended after %v", did, since(began)), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s, and no SIGKILL follows, because the agent is stopping", did)
	}
	if err := p.send("SIGKILL"); err != nil && !p.ended() {
		return "", fmt.Errorf("%s, but no SIGKILL: %w", did, err)
	}
	if !p.awaitEnd(ctx, killTime) {
		return "", fmt.Errorf("%s and SIGKILL, and has not ended after %v", did, since(began))
	}
	return fmt.Sprintf("%s, and SIGKILL after %v", did, q.grace), nil
}

// since returns the time since began, for a message.
func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// held is one process, which no other can take the place of: a pidfd stands for the process
// itself, and not for whoever has its number.
type held struct {
	proc.Process
	fd int
}

// hold returns the process, if it still runs. The order matters: the pidfd is that of whoever has
// the number when it is opened, so if that process runs afterwards, the pidfd is its own.
func hold(who proc.Process) (*held, error) {
	fd, err := unix.PidfdOpen(who.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, stale("the process has ended")
	case errors.Is(err, unix.ENOSYS):
		return nil, errors.New("signal needs Linux 5.3: this kernel has no pidfd_open")
	case err != nil:
		return nil, fmt.Errorf("open process %d: %w", who.PID, err)
	}
	p := &held{Process: who, fd: fd}
	files := proc.FS{Root: "/proc"}
	runs, err := files.Runs(who)
	switch {
	case err != nil:
		p.close()
		return nil, fmt.Errorf("look at process %d: %w", who.PID, err)
	case !runs:
		p.close()
		return nil, stale("the process has ended")
	}
	return p, nil
}

func (p *held) close() { _ = unix.Close(p.fd) } // a pidfd has no data to lose

// send sends a signal to the process. A process that has ended is stale.
func (p *held) send(name string) error {
	number, ok := config.RealTimeSignal(name)
	if !ok {
		number = int(unix.SignalNum(name))
	}
	if number == 0 {
		return fmt.Errorf("this system has no %s", name)
	}
	switch err := unix.PidfdSendSignal(p.fd, unix.Signal(number), nil, 0); {
	case errors.Is(err, unix.ESRCH):
		return stale("the process has ended")
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("send %s to process %d: %w: run the agent as the user of the process, or with CAP_KILL", name, p.PID, err)
	case err != nil:
		return fmt.Errorf("send %s to process %d: %w", name, p.PID, err)
	}
	return nil
}

// awaitEnd waits until the process has ended, at most for limit, and reports whether it has. It
// returns early when ctx is done.
func (p *held) awaitEnd(ctx context.Context, limit time.Duration) bool {
	ticker := time.NewTicker(endPoll)
	defer ticker.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		if p.ended() {
			return true
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return p.ended()
		case <-ctx.Done():
			return p.ended()
		}
	}
}

// ended reports whether the process has ended; its parent may not have reaped it yet.
func (p *held) ended() bool {
	poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0
}
