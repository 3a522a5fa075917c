// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package actiontest has servers, probes and attempts that the tests of several actions share.
// Only tests import this package.
package actiontest

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Hang holds a server's handler until its client has gone.
func Hang(r *http.Request) { <-r.Context().Done() }

// Site is the server of the recorded cases. It echoes the request for any other path.
func Site() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/code", func(w http.ResponseWriter, r *http.Request) {
		if loc := r.FormValue("loc"); loc != "" {
			w.Header().Set("Location", loc)
		}
		code, _ := strconv.Atoi(r.FormValue("c"))
		w.WriteHeader(code)
		io.WriteString(w, "body")
	})
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/bigslow", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("a", action.MaxOutput))
		w.(http.Flusher).Flush()
		Hang(r)
	})
	mux.HandleFunc("/slowbody", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		Hang(r)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { Hang(r) })
	mux.HandleFunc("/len", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		io.WriteString(w, strings.Repeat("a", n))
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.FormValue("n")); n > 0 {
			w.Header().Set("Location", fmt.Sprintf("/loop?n=%d", n-1))
			w.WriteHeader(http.StatusFound)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%v", r.Method, r.Host, r.RequestURI, r.Proto, r.Header)
	})
	return mux
}

// Protocols returns a set of protocols for a server.
func Protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	for _, add := range set {
		add(p, true)
	}
	return p
}

// Web serves h over HTTP/1 and returns the address.
func Web(t testing.TB, h http.Handler) string {
	t.Helper()
	return WebServer(t, h, Protocols((*http.Protocols).SetHTTP1), false).Listener.Addr().String()
}

// WebServer serves h over p, and over TLS if encrypted.
func WebServer(t testing.TB, h http.Handler, p *http.Protocols, encrypted bool) *httptest.Server {
	t.Helper()
	return WebServerOn(t, nil, h, p, encrypted)
}

// WebServerOn is like WebServer, but on a listener of the caller, unless that is nil.
func WebServerOn(t testing.TB, l net.Listener, h http.Handler, p *http.Protocols, encrypted bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	if l != nil {
		s.Listener.Close()
		s.Listener = l
	}
	s.Config.Protocols = p
	s.EnableHTTP2 = p.HTTP2()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if encrypted {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Raw serves each connection with serve and returns the address.
func Raw(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return RawOn(t, l, serve)
}

// RawOn is like Raw, but on a listener of the caller, which RawOn closes.
func RawOn(t testing.TB, l net.Listener, serve func(net.Conn)) string {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return Address(l)
}

// Say returns a raw server that reads the client's first bytes, answers with text and hangs up.
func Say(text string) func(net.Conn) {
	return func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, text)
	}
}

// Mute is a raw server that never says anything.
func Mute(conn net.Conn) { io.Copy(io.Discard, conn) }

// ClosedPort returns an address where nobody listens.
func ClosedPort(t testing.TB) string { return "127.0.0.1:" + testutil.Port(t) }

// Split splits an address into host and port; a Unix socket has no port.
func Split(address string) (host string, port int) {
	if strings.HasPrefix(address, "unix:") {
		return address, 0
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, _ = strconv.Atoi(number)
	return host, port
}

// Forever returns a raw server that reads the client's first bytes, says begin and then repeats
// again until the client hangs up.
func Forever(begin, again string) func(net.Conn) {
	return func(conn net.Conn) {
		Say(begin)(conn)
		for text := []byte(again); ; {
			if _, err := conn.Write(text); err != nil {
				return
			}
		}
	}
}

// ResetBy returns a raw server that says text and then resets its connection.
func ResetBy(text string) func(net.Conn) {
	return func(conn net.Conn) {
		Say(text)(conn)
		conn.(*net.TCPConn).SetLinger(0)
	}
}
