// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package logqueue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reader reads the log. It does not read before the test allows it, nor while it fails.
type reader struct {
	let chan struct{} // once closed, the reader reads everything

	mu    sync.Mutex
	text  strings.Builder
	fails error
	tried int
}

func (r *reader) Write(p []byte) (int, error) {
	<-r.let
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried++
	if r.fails != nil {
		return 0, r.fails
	}
	return r.text.Write(p)
}

func (r *reader) read() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = err
}

func newReader(t *testing.T) (*reader, *Queue) {
	t.Helper()
	r := &reader{let: make(chan struct{})}
	return r, New(r, func(n uint64) []byte { return fmt.Appendf(nil, "lost %d\n", n) })
}

// Without a reader, 300,000 lines take no time and one MiB. Once somebody reads, a line in the
// place of the lost lines counts them, and the lines come in the order of the writes.
func TestNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := newReader(t)
		begin := time.Now()
		const lines = 300_000
		for i := range lines {
			if i == 1 {
				synctest.Wait() // the writer is stuck with the first line
			}
			fmt.Fprintf(q, "line %d\n", i)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("writing waited %v", took)
		}
		dropped := q.Dropped()
		close(r.let)
		synctest.Wait()
		fmt.Fprintf(q, "line %d\n", lines)
		synctest.Wait()

		var want strings.Builder
		for i := range lines - int(dropped) {
			fmt.Fprintf(&want, "line %d\n", i)
		}
		if size := want.Len(); size <= maxPending-len("line 300000\n") || size > maxPending+len("line 0\n") {
			t.Errorf("%d bytes were kept, want %d", size, maxPending)
		}
		fmt.Fprintf(&want, "lost %d\nline %d\n", dropped, lines)
		if got := r.read(); got != want.String() {
			t.Errorf("got %d bytes that end in %q, want %d that end in %q", len(got), got[max(0, len(got)-50):], want.Len(), want.String()[want.Len()-50:])
		}
		q.Close(time.Second)
		if again := q.Dropped(); again != dropped || time.Since(begin) != 0 {
			t.Errorf("%d lines dropped at the end, %d before, after %v", again, dropped, time.Since(begin))
		}
	})
}

// Close waits for a slow reader. For a reader that does not read, Close waits no longer than it
// may. The queue takes no line after Close.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := newReader(t)
		q.Write([]byte("last words\n"))
		time.AfterFunc(600*time.Millisecond, func() { close(r.let) })
		begin := time.Now()
		q.Close(time.Second)
		if got := r.read(); got != "last words\n" || time.Since(begin) != 600*time.Millisecond {
			t.Errorf("got %q after %v, want the last words after 600 ms", got, time.Since(begin))
		}
		if q.Write([]byte("too late\n")); q.Dropped() != 1 || r.read() != "last words\n" {
			t.Errorf("%d dropped, read %q: a line after the end", q.Dropped(), r.read())
		}

		r, q = newReader(t)
		q.Write([]byte("last words\n"))
		begin = time.Now()
		q.Close(time.Second)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close took %v without a reader, want 1 s", took)
		}
		close(r.let)
	})
}

// A line that cannot be written is lost, and the queue reports the loss after the next line
// that can be written. The queue does not try the lost line again.
func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := newReader(t)
		close(r.let)
		r.fail(errors.New("no space left on device"))
		for range 3 {
			q.Write([]byte("one\n"))
			synctest.Wait()
		}
		if r.tried != 3 || q.Dropped() != 3 {
			t.Errorf("tried %d times, dropped %d, want 3 and 3", r.tried, q.Dropped())
		}
		r.fail(nil)
		q.Write([]byte("two\n"))
		synctest.Wait()
		if got, want := r.read(), "two\nlost 3\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		r.fail(errors.New("closed pipe"))
		q.Write([]byte("three\n"))
		q.Close(time.Second)
		if q.Dropped() != 4 {
			t.Errorf("%d dropped, want the last line, too: 4", q.Dropped())
		}
	})
}

// Lines of many concurrent writers come whole and in each writer's order, or the queue counts
// them as dropped.
func TestManyWriters(t *testing.T) {
	r, q := newReader(t)
	close(r.let)
	const writers, lines = 8, 2000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				fmt.Fprintf(q, "%d %d\n", w, i)
			}
		})
	}
	all.Wait()
	q.Close(time.Minute)
	next := make([]int, writers)
	read := 0
	for line := range strings.Lines(r.read()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &w, &i); err != nil {
			if strings.HasPrefix(line, "lost ") {
				continue
			}
			t.Fatalf("%q: %v", line, err)
		}
		if i < next[w] {
			t.Fatalf("line %d of writer %d after line %d", i, w, next[w])
		}
		next[w] = i + 1
		read++
	}
	if read+int(q.Dropped()) != writers*lines {
		t.Errorf("%d lines read, %d dropped, of %d", read, q.Dropped(), writers*lines)
	}
}
