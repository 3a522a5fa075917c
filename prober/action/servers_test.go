// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// hang holds a server's handler until its client has gone.
func hang(r *http.Request) { <-r.Context().Done() }

// site is the server of the recorded cases; any other path is echoed.
func site() http.Handler {
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
		io.WriteString(w, strings.Repeat("a", maxOutput))
		w.(http.Flusher).Flush()
		hang(r)
	})
	mux.HandleFunc("/slowbody", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		hang(r)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { hang(r) })
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

// protocols is a set of protocols for a server.
func protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	for _, add := range set {
		add(p, true)
	}
	return p
}

// web serves h over HTTP/1, and returns the address.
func web(t testing.TB, h http.Handler) string {
	t.Helper()
	return webServer(t, h, protocols((*http.Protocols).SetHTTP1), false).Listener.Addr().String()
}

func webServer(t testing.TB, h http.Handler, p *http.Protocols, encrypted bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
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

// raw serves each connection with a function, and returns the address.
func raw(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return rawOn(t, l, serve)
}

// rawOn is raw on a listener of the caller's, which it closes.
func rawOn(t testing.TB, l net.Listener, serve func(net.Conn)) string {
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
	return l.Addr().String()
}

// say is a raw server that reads what comes first, answers with text and hangs up.
func say(text string) func(net.Conn) {
	return func(conn net.Conn) {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, text)
	}
}

// mute is a raw server that never says anything.
func mute(conn net.Conn) { io.Copy(io.Discard, conn) }

// health is a health service whose answer depends on the name it is asked for.
type health struct {
	healthpb.UnimplementedHealthServer
}

func (health) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	answer := healthpb.HealthCheckResponse_SERVING
	switch r.GetService() {
	case "bad":
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	case "unk":
		answer = healthpb.HealthCheckResponse_UNKNOWN
	case "nosuch":
		return nil, status.Error(codes.NotFound, "unknown service")
	case "unavail":
		return nil, status.Error(codes.Unavailable, "un")
	case "plainerr":
		return nil, errors.New("plain")
	case "long":
		return nil, status.Error(codes.Internal, strings.Repeat("l", 30<<10))
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}

// rpc starts a gRPC server, by default a plaintext one with the health service.
func rpc(t testing.TB, encrypted, healthy bool) string {
	t.Helper()
	var options []grpc.ServerOption
	if encrypted {
		certificate := webServer(t, nil, protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates[0]
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}})))
	}
	s := grpc.NewServer(options...)
	if healthy {
		healthpb.RegisterHealthServer(s, health{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// serveApart serves HTTP, HTTPS and bare TCP, says where, and ends with its input.
func serveApart([]string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	plain := httptest.NewServer(answer)
	secure := httptest.NewUnstartedServer(answer)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := bare.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				mute(conn)
			}()
		}
	}()
	fmt.Println(plain.Listener.Addr(), secure.Listener.Addr(), bare.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// closedPort is an address where nobody listens.
func closedPort(t testing.TB) string { return "127.0.0.1:" + testutil.Port(t) }

func split(address string) (host string, port int) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, _ = strconv.Atoi(number)
	return host, port
}

// httpProbe is an httpGet action; the address is that of the target.
func httpProbe(address string, timeout time.Duration, h config.HTTPGet) Func {
	host, port := split(address)
	if h.Port.Number == 0 {
		h.Port.Number = port
	}
	return New(&config.Target{Host: host}, &config.Probe{HTTPGet: &h, Timeout: timeout})
}

func tcpProbe(address string, timeout time.Duration) Func {
	host, port := split(address)
	p := &config.TCPSocket{Port: config.PortRef{Number: port}}
	return New(&config.Target{Host: host}, &config.Probe{TCPSocket: p, Timeout: timeout})
}

func grpcProbe(address string, timeout time.Duration, service, mode string) Func {
	host, port := split(address)
	p := &config.GRPC{Port: port, Service: service, Mode: mode}
	return New(&config.Target{Host: host}, &config.Probe{GRPC: p, Timeout: timeout})
}
