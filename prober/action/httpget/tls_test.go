// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// greeted serves site over TLS, with a configuration that change has changed. It returns the
// address and the hellos of the clients so far.
func greeted(t *testing.T, p *http.Protocols, change func(*tls.Config)) (address string, hellos func() []*tls.ClientHelloInfo) {
	t.Helper()
	var mu sync.Mutex
	var seen []*tls.ClientHelloInfo
	s := httptest.NewUnstartedServer(actiontest.Site())
	s.Config.Protocols = p
	s.EnableHTTP2 = p.HTTP2()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, h)
		return nil, nil
	}}
	change(s.TLS)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String(), func() (hellos []*tls.ClientHelloInfo) {
		mu.Lock()
		defer mu.Unlock()
		hellos, seen = seen, nil
		return hellos
	}
}

// A server gets the same hello as from net/http: name, protocols, key exchanges and all.
func TestTLSHello(t *testing.T) {
	h1, h2 := (*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2
	for _, disabled := range []string{"", "true"} {
		t.Setenv("DISABLE_HTTP2", disabled)
		for _, host := range []string{"127.0.0.1", "localhost"} {
			address, hellos := greeted(t, actiontest.Protocols(h1, h2), func(*tls.Config) {})
			_, port := actiontest.Split(address)
			get := &config.HTTPGet{Path: "/h", Scheme: "HTTPS", Host: host, Port: config.PortRef{Number: port}}
			probe := &config.Probe{HTTPGet: get, Timeout: 10 * time.Second}
			reference := &httpGet{target: &config.Target{}, probe: probe, http2: disabled == ""}
			reference.plan.Store(&plan{})

			got := actiontest.Attempt(t, New(&config.Target{}, probe))
			want := actiontest.Attempt(t, reference.attempt)
			if !got.Success || got != want {
				t.Errorf("%s: got %+v, want %+v", host, got, want)
			}
			seen := hellos()
			if len(seen) != 2 {
				t.Fatalf("%s: %d connections, want 2", host, len(seen))
			}
			same := func(h *tls.ClientHelloInfo) []any {
				return []any{h.ServerName, h.SupportedProtos, h.SupportedVersions, h.SupportedCurves, h.CipherSuites, h.SignatureSchemes, h.SupportedPoints, h.Extensions}
			}
			if ours, theirs := same(seen[0]), same(seen[1]); !reflect.DeepEqual(ours, theirs) {
				t.Errorf("%s: hello %v, want %v", host, ours, theirs)
			}
		}
	}
}

// halting is a server's end of a connection that fails a handshake in another way than package
// tls: with the given alert, or by closing the connection if alert is 0.
type halting struct {
	net.Conn
	alert byte
}

func (h halting) Write(p []byte) (int, error) {
	const record, description = 21, 6
	if p[0] == record {
		if h.alert == 0 {
			return 0, h.Close()
		}
		p = bytes.Clone(p)
		p[description] = h.alert
	}
	return h.Conn.Write(p)
}

// A server is restarted with another key exchange, the only one it can do. The next attempt
// succeeds at once, on one connection, however the server refuses other key exchanges: the
// probe remembers nothing of the server before.
func TestTLSRestartedServer(t *testing.T) {
	certificates := actiontest.WebServer(t, nil, actiontest.Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates
	for name, alert := range map[string]byte{"hangs up": 0, "internal error": 80, "handshake failure": 40} {
		var tries, only atomic.Int64 // only is the key exchange that the server can do
		f := httpProbe(actiontest.Raw(t, func(conn net.Conn) {
			tries.Add(1)
			config := &tls.Config{Certificates: certificates, CurvePreferences: []tls.CurveID{tls.CurveID(only.Load())}}
			server := tls.Server(halting{conn, alert}, config)
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			server.Close()
		}), 10*time.Second, config.HTTPGet{Path: "/", Scheme: "HTTPS"})
		for i, curve := range []tls.CurveID{tls.CurveP256, tls.X25519, tls.X25519MLKEM768, tls.CurveP521, tls.X25519} {
			only.Store(int64(curve))
			if got := actiontest.Attempt(t, f); !got.Success || tries.Load() != int64(i+1) {
				t.Errorf("%s, %v: got %+v after %d connections, want %d", name, curve, got, tries.Load(), i+1)
			}
		}
	}
}

// A server that refuses every hello fails the probe, with net/http's text.
func TestTLSRefused(t *testing.T) {
	address, hellos := greeted(t, actiontest.Protocols((*http.Protocols).SetHTTP1), func(c *tls.Config) {
		c.MaxVersion = tls.VersionTLS12
		c.CipherSuites = []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}
	})
	direct, library := bothWays(address, 10*time.Second, config.HTTPGet{Path: "/", Scheme: "HTTPS"})
	want := actiontest.Attempt(t, library)
	hellos()
	if got := actiontest.Attempt(t, direct); got != want || got.Reason != action.TLS || !strings.Contains(got.Output, "handshake failure") {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if seen := hellos(); len(seen) != 1 {
		t.Errorf("%d tries, want 1", len(seen))
	}
}

// A server that wants a client certificate fails the probe with the reason tls, however late
// the server says so: a probe has no certificate.
func TestTLSWantsCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		address, _ := greeted(t, actiontest.Protocols((*http.Protocols).SetHTTP1), func(c *tls.Config) {
			c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, version
		})
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/", Scheme: "HTTPS"}))
		if got.Success || got.Reason != action.TLS || !strings.Contains(got.Output, "remote error: tls: ") {
			t.Errorf("%x: got %+v", version, got)
		}
	}
}

// The probe uses the connection on which a server has chosen HTTP/2. A server may choose
// another protocol from one attempt to the next.
func TestTLSHandsOverHTTP2(t *testing.T) {
	h1, h2 := (*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2
	var only1 atomic.Bool
	certificates := actiontest.WebServer(t, nil, actiontest.Protocols(h1), true).TLS.Certificates
	address, hellos := greeted(t, actiontest.Protocols(h1, h2), func(c *tls.Config) {
		next := c.GetConfigForClient
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			_, _ = next(h)
			if !only1.Load() {
				return nil, nil
			}
			return &tls.Config{Certificates: certificates, NextProtos: []string{"http/1.1"}}, nil
		}
	})
	f := httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/h", Scheme: "HTTPS"})
	loop, reference := bothWays(address, 10*time.Second, config.HTTPGet{Path: "/loop?n=3", Scheme: "HTTPS"})
	for _, want := range []string{"HTTP/2.0", "HTTP/1.1", "HTTP/2.0"} {
		only1.Store(want == "HTTP/1.1")
		if got := actiontest.Attempt(t, f); !got.Success || !strings.Contains(got.Output, "|"+want+"|") {
			t.Errorf("got %+v, want %s", got, want)
		}
		if seen := hellos(); len(seen) != 1 {
			t.Errorf("%s: %d connections, want 1", want, len(seen))
		}
		got, ours := actiontest.Attempt(t, loop), len(hellos())
		if want, theirs := actiontest.Attempt(t, reference), len(hellos()); got != want || !got.Success || ours != theirs {
			t.Errorf("3 redirects: got %+v on %d connections, want %+v on %d", got, ours, want, theirs)
		}
	}
}

// A server may accept a connection and then say nothing of TLS, or speak a byte at a time. The
// attempt ends at its timeout, and a stop ends it at once.
func TestTLSSlow(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silent": actiontest.Mute,
		"a byte at a time": func(conn net.Conn) {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for _, b := range []byte("\x16\x03\x03\x40\x00" + strings.Repeat("x", 1<<10)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				<-pace.C
			}
			io.Copy(io.Discard, conn)
		},
	} {
		address := actiontest.Raw(t, serve)
		began := time.Now()
		got, err := httpProbe(address, 300*time.Millisecond, config.HTTPGet{Path: "/", Scheme: "HTTPS"})(t.Context())
		if took := time.Since(began); took < 300*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		want := fmt.Sprintf("Get %q: context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "https://"+address+"/")
		// On a very busy machine this process hardly runs, and nobody knows whose fault
		// the timeout is.
		if (got != action.Outcome{Reason: action.Timeout, Output: want} || err != nil) && got.Reason != action.AgentLate {
			t.Errorf("%s: got %+v, error %v, want %s", name, got, err, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		began = time.Now()
		_, err = httpProbe(actiontest.Raw(t, serve), time.Minute, config.HTTPGet{Path: "/", Scheme: "HTTPS"})(ctx)
		if took := time.Since(began); err == nil || took > 2*time.Second {
			t.Errorf("%s: stopped after %v, error %v", name, took, err)
		}
		cancel()
	}
}
