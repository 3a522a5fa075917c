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
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// A server is told the version that the module graph has for the tests.
func TestGRPCVersion(t *testing.T) {
	if version != grpc.Version {
		t.Errorf("%s, but the reference is %s", version, grpc.Version)
	}
}

// What stands in the place of the authority is as in a URL.
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

// A server is told the timeout in eight digits at most, and never less than there is.
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

// After a failed try the next one waits: 1 s, then 1.6 times as long each time, give
// or take a fifth, and never more than 2 minutes and a fifth.
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

// Over TLS, too, a server sees the same as of grpc-go.
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
		}).Handshake() // and hangs up
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
			t.Errorf("%s: the usual way:\n%s\nthis one:\n%s", host, seen[0], seen[1])
		}
	}
}
