// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// pair returns a connection to a server of this process.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	served := make(chan net.Conn, 1)
	address := actiontest.Raw(t, func(conn net.Conn) {
		served <- conn
		<-t.Context().Done()
	})
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, <-served
}

// After the end of an attempt, reads return up to 128 KiB that have arrived, and the end of the
// stream. They do not wait for more.
func TestTimedConnLooks(t *testing.T) {
	client, server := pair(t)
	s := NewStopwatch(time.Hour)
	conn := &TimedConn{Conn: client, Watch: s}
	s.spent = s.timeout
	s.Tick()
	past := conn.SetDeadline(time.Time{})
	buffer := make([]byte, 300<<10)
	if n, err := conn.Read(buffer); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || past != nil {
		t.Errorf("read %d bytes, error %v, from a silent server", n, err)
	}
	if n, err := conn.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
	go func() {
		server.Write([]byte("answer"))
		server.(*net.TCPConn).CloseWrite()
	}()
	var heard []byte
	testutil.Until(t, "the client has read the answer and its end", func() bool {
		n, err := conn.Read(buffer)
		heard = append(heard, buffer[:n]...)
		return errors.Is(err, io.EOF)
	})
	if string(heard) != "answer" {
		t.Errorf("read %q", heard)
	}

	client, flood := pair(t)
	conn = &TimedConn{Conn: client, Watch: s}
	_ = conn.SetDeadline(time.Time{})
	go func() { _, _ = flood.Write(make([]byte, 1<<20)) }()
	read := len(heard)
	testutil.Until(t, "the client reads no more", func() bool {
		n, err := conn.Read(buffer)
		read += n
		return n == 0 && read == lateBytes && errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// After the end of an attempt, an answer does not end with its first part, and a reset is a reset.
func TestTimedConnLooksWithoutAnEnd(t *testing.T) {
	client, server := pair(t)
	s := NewStopwatch(time.Hour)
	conn := &TimedConn{Conn: client, Watch: s}
	s.spent = s.timeout
	s.Tick()
	_ = conn.SetDeadline(time.Time{})
	if _, err := server.Write([]byte("part")); err != nil {
		t.Fatal(err)
	}
	testutil.Until(t, "the client has read a part", func() bool {
		n, err := conn.Read(make([]byte, 10))
		if n > 0 && err != nil {
			t.Errorf("read %d bytes, error %v", n, err)
		}
		return n > 0
	})
	_ = server.(*net.TCPConn).SetLinger(0)
	server.Close()
	testutil.Until(t, "the client sees the reset", func() bool {
		_, err := conn.Read(make([]byte, 10))
		if errors.Is(err, io.EOF) {
			t.Fatal("the reset looks like an end")
		}
		return errors.Is(err, syscall.ECONNRESET)
	})
}

// A write that sends nothing does not count as something sent.
func TestTimedConnWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for read, want := range map[int]bool{0: false, 1: true} {
			client, server := net.Pipe()
			conn := &TimedConn{Conn: client, Watch: NewStopwatch(time.Second)}
			_ = conn.SetDeadline(time.Time{})
			go server.Read(make([]byte, read))
			n, err := conn.Write([]byte("xx"))
			if n != read || !errors.Is(err, os.ErrDeadlineExceeded) || conn.Watch.asked != want {
				t.Errorf("wrote %d bytes, error %v, asked %t; want %d and %t", n, err, conn.Watch.asked, read, want)
			}
			server.Close()
		}
	})
}

// A deadline of the user's own holds, however long the attempt may take.
func TestTimedConnDeadline(t *testing.T) {
	client, _ := pair(t)
	conn := &TimedConn{Conn: client, Watch: NewStopwatch(time.Hour)}
	_ = conn.SetDeadline(time.Time{})
	_ = conn.SetReadDeadline(time.Now().Add(20 * ms))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || conn.Watch.Over() {
		t.Errorf("error %v", err)
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Errorf("error %v of a write", err)
	}
}
