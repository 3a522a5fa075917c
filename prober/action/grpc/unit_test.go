// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// The version that servers see is the version of grpc-go in the module graph.
func TestGRPCVersion(t *testing.T) {
	if version != grpc.Version {
		t.Errorf("%s, but the reference is %s", version, grpc.Version)
	}
}

// The authority is written as in a URL.
func TestGRPCAuthority(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80":       "127.0.0.1:80",
		"[::1]:80":           "[::1]:80",
		"[fe80::1%eth0]:80":  "[fe80::1%25eth0]:80",
		":80":                "localhost:80",
		"a b/ü:1":            "a%20b%2F%C3%BC:1",
		"app.example.com:99": "app.example.com:99",
	} {
		if got := authorityOf(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

// The timeout field has eight digits at most, and never says less than the timeout.
func TestGRPCTimeoutField(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		1:                      "1m",
		time.Millisecond:       "1m",
		time.Millisecond + 1:   "2m",
		99_999_999_000_000:     "99999999m",
		99_999_999_000_000 + 1: "99999999m",
		math.MaxInt32 * 1e9:    "99999999m",
	} {
		if got := timeoutField(timeout).Value; got != want {
			t.Errorf("%v: got %s, want %s", timeout, got, want)
		}
	}
}

// After failed tries the action waits for 1 s, then 1.6 times as long each time, give or take a
// fifth, and never more than 2 minutes and a fifth.
func TestGRPCPauses(t *testing.T) {
	if got := pauseAfter(0); got != time.Second {
		t.Errorf("after the first: %v", got)
	}
	for failures := 1; failures < 100; failures++ {
		want := min(math.Pow(1.6, float64(failures)), 120)
		if got := pauseAfter(failures).Seconds(); got < want*0.799 || got > want*1.201 {
			t.Errorf("after %d: %v s, want about %v", failures+1, got, want)
		}
	}
}

// Over TLS, too, a server sees the same as from grpc-go.
func TestGRPCHello(t *testing.T) {
	certificate := actiontest.WebServer(t, nil, actiontest.Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates[0]
	hellos := make(chan string, 10)
	address := actiontest.Raw(t, func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{
			Certificates: []tls.Certificate{certificate},
			GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				hellos <- fmt.Sprint(h.CipherSuites, h.ServerName, h.SupportedCurves, h.SignatureSchemes, h.SupportedProtos, h.SupportedVersions, h.Extensions)
				return nil, nil
			},
			NextProtos: []string{"h2"},
		}).Handshake() // then hangs up
	})
	_, port := actiontest.Split(address)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		probe := grpcOf(port, 10*time.Second, "", "TLS")
		var seen []string
		for _, f := range []action.Func{newUsual(targetOf(host), probe), New(targetOf(host), probe)} {
			ctx, cancel := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			ended.Go(func() { _, _ = f(ctx) })
			seen = append(seen, <-hellos)
			cancel()
			ended.Wait()
		}
		if seen[0] != seen[1] {
			t.Errorf("%s: the usual way:\n%s\nthis way:\n%s", host, seen[0], seen[1])
		}
	}
}

// The call does not acknowledge again what the glance has acknowledged.
func TestGRPCAcknowledgesOnce(t *testing.T) {
	acks := make(chan [2]int, 1)
	address := actiontest.Raw(t, script(func(p *peer) {
		id := p.begin()
		p.WritePing(false, [8]byte{1})
		p.well(id, "x-bin", "AA") // not plain
		var n [2]int              // of SETTINGS, of PING
		for {
			frame, err := p.ReadFrame()
			if err != nil {
				acks <- n
				return
			}
			switch frame.(type) {
			case *http2.SettingsFrame:
				n[0]++
			case *http2.PingFrame:
				n[1]++
				p.WriteData(id, false, servingMessage)
				p.head(id, true, "grpc-status", "0")
			}
		}
	}))
	if got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, "", "")); !got.Success {
		t.Errorf("got %+v", got)
	}
	if n := <-acks; n != [2]int{1, 1} {
		t.Errorf("the client acknowledged %d SETTINGS and %d PING, want one each", n[0], n[1])
	}
}

// If a server cancels when the time is up, the attempt has timed out. If it cancels earlier,
// the call has failed.
func TestGRPCCanceled(t *testing.T) {
	for _, c := range []struct {
		code     http2.ErrCode
		timeIsUp bool
		want     action.Reason
	}{
		{http2.ErrCodeCancel, true, action.Timeout},
		{http2.ErrCodeCancel, false, action.GRPCStatus},
		{http2.ErrCodeInternal, true, action.GRPCStatus},
	} {
		s := &stream{check: checkOf(time.Second)}
		if s.reset(c.code, c.timeIsUp); !s.ended || s.outcome.Reason != c.want {
			t.Errorf("%+v: got %+v", c, s.outcome)
		}
	}
}

// If a server has no stream for a request, the action repeats the request at once, but three
// times at most. After each failure in a row the next try waits longer.
func TestGRPCConnections(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		serve   func(net.Conn)
		want    int32
	}{
		"sent away": {900 * time.Millisecond, script(func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams})
			p.WriteGoAway(0, http2.ErrCodeNo, nil)
		}), 5}, // the first request came too early
		"resets": {3200 * time.Millisecond, actiontest.ResetBy(""), 3}, // after 1 s and 2.6 s
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			address := actiontest.Raw(t, func(conn net.Conn) { n.Add(1); c.serve(conn) })
			got := actiontest.Attempt(t, grpcProbe(address, c.timeout, "", ""))
			if got.Success || n.Load() != c.want {
				t.Errorf("%d connections, want %d; got %+v", n.Load(), c.want, got)
			}
		})
	}
}
