// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package logqueue keeps whoever logs from waiting for whoever reads the log.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxPending bounds what waits to be written. It holds what a start has to tell in one
	// go, the mistakes of a large file say, until the writer has had its turn.
	maxPending = 1 << 20
	// keptPending is how much room for it is kept once it has been written.
	keptPending = 16 << 10
)

// Queue is a log's writer that never waits. One goroutine, which it owns, passes the
// lines on in their order. What comes while the queue is full is dropped and counted;
// once writing works again, a line in the place of the lost ones says how many they were.
type Queue struct {
	out  io.Writer
	tell func(lost uint64) []byte
	wake chan struct{} // tells the writer that there is something to do
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	pending []byte
	full    uint64 // lines lost since the queue is full, after the pending ones
	failed  uint64 // lines lost because writing failed, and not told of
	dropped uint64 // all lost lines
	closed  bool
}

// New returns a queue in front of out. tell makes the line that tells of lost ones. The
// caller must Close it.
func New(out io.Writer, tell func(lost uint64) []byte) *Queue {
	q := &Queue{out: out, tell: tell, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes over whole lines. It fails for nobody: what is lost is counted.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	// Nothing that comes after a lost line may overtake the line that tells of the loss.
	if q.closed || q.full > 0 || len(q.pending)+len(lines) > maxPending {
		q.full += q.lose(lines)
	} else {
		q.pending = append(q.pending, lines...)
	}
	q.mu.Unlock()
	q.poke()
	return len(lines), nil
}

// Dropped returns how many lines were lost: the queue was full, or they could not be
// written.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close takes no more lines, and waits no longer than patience for the pending ones to be
// written. A writer that is still stuck then ends with the process, or when its line is
// read after all.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.poke()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}

func (q *Queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// lose counts lines as lost, with mu held, and returns how many they are.
func (q *Queue) lose(lines []byte) uint64 {
	n := uint64(bytes.Count(lines, []byte("\n")))
	q.dropped += n
	return n
}

// run writes until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	var spare []byte
	for range q.wake {
		for {
			lines, lost, closed := q.take(spare)
			if spare = lines[:0]; cap(spare) > keptPending {
				spare = nil
			}
			idle := len(lines) == 0 && lost == 0
			if !idle && q.write(lines, lost) {
				continue
			}
			if closed {
				return
			}
			// After an error the next line tries again: a full disk must not make this spin.
			break
		}
	}
}

// take returns what is pending, and how many lines were lost that nobody has been told
// of. The next ones go into spare.
func (q *Queue) take(spare []byte) (lines []byte, lost uint64, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, lost = q.pending, q.full+q.failed
	q.pending, q.full, q.failed = spare, 0, 0
	return lines, lost, q.closed
}

// write writes lines, and then how many were lost. It reports whether it could.
func (q *Queue) write(lines []byte, lost uint64) bool {
	n, err := 0, error(nil)
	if len(lines) > 0 {
		n, err = q.out.Write(lines)
	}
	if err == nil && lost > 0 {
		if _, err = q.out.Write(q.tell(lost)); err == nil {
			lost = 0
		}
	}
	if err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.failed += lost + q.lose(lines[min(max(n, 0), len(lines)):])
	}
	return err == nil
}
