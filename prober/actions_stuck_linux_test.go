// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// stuffed is a raw HTTP/2 server that lets its client get stuck. The server answers the first
// request with a header if begin is true. Then the server sends pings and does not read the
// client's replies. Once both sides' buffers are full, the client waits in a write and reads
// nothing more: then full is closed.
func stuffed(begin bool) (serve func(net.Conn), full <-chan struct{}) {
	stuck := make(chan struct{})
	return func(conn net.Conn) {
		if !hearRequest(conn) {
			return
		}
		if begin {
			var block bytes.Buffer
			hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			http2.NewFramer(conn, nil).WriteHeaders(http2.HeadersFrameParam{
				StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true,
			})
		}
		var pings bytes.Buffer
		framer := http2.NewFramer(&pings, nil)
		for range 1000 {
			framer.WritePing(false, [8]byte{})
		}
		tell := sync.OnceFunc(func() { close(stuck) })
		for rest := pings.Bytes(); ; {
			conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			n, err := conn.Write(rest)
			if rest = rest[n:]; len(rest) == 0 {
				rest = pings.Bytes()
			}
			switch {
			case err != nil && !os.IsTimeout(err):
				return // the client is gone
			case n == 0:
				tell()
			}
		}
	}, stuck
}

// narrow is a listener whose connections have small buffers at both ends. The size of a
// segment, by default 64 KiB on loopback, decides the client's buffers.
func narrow(t *testing.T) net.Listener {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1), // the kernel's minimum
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 16<<10),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 536),
			)
		})
		return errors.Join(err, failure)
	}}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hearRequest reads up to a client's first request and reports whether the request came.
func hearRequest(conn net.Conn) bool {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return false
	}
	framer := http2.NewFramer(conn, conn)
	if framer.WriteSettings() != nil {
		return false
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return false
		}
		if _, ok := frame.(*http2.HeadersFrame); ok {
			return true
		}
	}
}

// stuckProbes are the probes whose libraries can get stuck in a write.
var stuckProbes = map[string]struct {
	begin bool
	probe func(address string, timeout time.Duration) action.Func
}{
	"httpGet, no header": {false, h2cProbe},
	"httpGet, no body":   {true, h2cProbe},
	"grpc":               {false, func(address string, timeout time.Duration) action.Func { return grpcProbe(address, timeout, "", "") }},
}

func h2cProbe(address string, timeout time.Duration) action.Func {
	return httpProbe(address, timeout, config.HTTPGet{Path: "/", Protocol: "HTTP2"})
}

// A server that never reads keeps no attempt beyond its timeout, and the reason is always a
// timeout.
func TestStuckInWriteTimesOut(t *testing.T) {
	const timeout = 900 * time.Millisecond
	for name, c := range stuckProbes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve, full := stuffed(c.begin)
			began := time.Now()
			got, _ := c.probe(actiontest.RawOn(t, narrow(t), serve), timeout)(t.Context())
			took := time.Since(began)
			select {
			case <-full:
			default:
				t.Error("the client was not stuck at its timeout")
			}
			if got.Success || got.Reason != action.Timeout {
				t.Errorf("got %+v, want a timeout", got)
			}
			if took < timeout || took > timeout+time.Second {
				t.Errorf("took %v, timeout %v", took, timeout)
			}
		})
	}
}

// A server that never reads does not hold up a stop.
func TestStuckInWriteStops(t *testing.T) {
	for name, c := range stuckProbes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve, full := stuffed(c.begin)
			f := c.probe(actiontest.RawOn(t, narrow(t), serve), time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := f(ctx)
				ended <- err
			}()
			<-full
			cancel()
			began := time.Now()
			if err := <-ended; err == nil {
				t.Error("no error")
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("ended %v after the stop", took)
			}
		})
	}
}
