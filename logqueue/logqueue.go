// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package logqueue decouples the writers of a log from its reader: no writer waits.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxPending bounds the bytes that wait to be written. It has room for the lines of a
	// start, for example the mistakes of a large file.
	maxPending = 1 << 20
	// keptPending is the size of the buffer that is kept once everything is written.
	keptPending = 16 << 10
)

// Queue is an io.Writer that never waits. Its own goroutine passes the lines on in order. A
// full queue drops and counts lines. Once writing works again, a line in the place of the lost
// lines says how many were lost.
type Queue struct {
	out  io.Writer
	tell func(lost uint64) []byte
	wake chan struct{} // tells the writer that there is something to do
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	pending []byte
	full    uint64 // lines lost since the queue is full, after the pending ones
	failed  uint64 // lines lost because writing failed, and not reported yet
	dropped uint64 // all lost lines
	closed  bool
}

// New returns a queue in front of out. tell makes the line that reports lost lines. The
// caller must Close the queue.
func New(out io.Writer, tell func(lost uint64) []byte) *Queue {
	q := &Queue{out: out, tell: tell, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes over whole lines. It never fails: lost lines are counted.
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

// Dropped returns how many lines were lost because the queue was full or writing failed.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close takes no more lines, and waits at most patience for the pending lines to be
// written. A writer that is still stuck then ends with the process, or when somebody
// reads its line after all.
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

// lose counts the lines as lost and returns their number. mu is held.
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
			// After an error the next line tries again: a full disk must not make the loop spin.
			break
		}
	}
}

// take returns the pending lines, and the number of lost lines that no line has reported yet.
// The next lines go into spare.
func (q *Queue) take(spare []byte) (lines []byte, lost uint64, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, lost = q.pending, q.full+q.failed
	q.pending, q.full, q.failed = spare, 0, 0
	return lines, lost, q.closed
}

// write writes lines, and then how many were lost. It reports whether writing worked.
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
