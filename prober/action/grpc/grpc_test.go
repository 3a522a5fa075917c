// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// Every answer but SERVING is a failure and no error, with the kubelet's text.
func TestGRPC(t *testing.T) {
	healthy := actiontest.RPC(t, false, true)
	for service, want := range map[string]action.Outcome{
		"":         {Success: true, Output: "service healthy"},
		"bad":      {Reason: action.GRPCNotServing, Output: `service unhealthy (responded with "NOT_SERVING")`},
		"unk":      {Reason: action.GRPCNotServing, Output: `service unhealthy (responded with "UNKNOWN")`},
		"nosuch":   {Reason: action.GRPCStatus, Output: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
		"unavail":  {Reason: action.GRPCStatus, Output: "error: health rpc probe failed: rpc error: code = Unavailable desc = un"},
		"plainerr": {Reason: action.GRPCStatus, Output: "error: health rpc probe failed: rpc error: code = Unknown desc = plain"},
		"slow":     {Reason: action.Timeout, Output: "timeout: health rpc did not complete within 300ms"},
	} {
		timeout := 10 * time.Second
		if want.Reason == action.Timeout {
			timeout = 300 * time.Millisecond
		}
		if got := actiontest.Attempt(t, grpcProbe(healthy, timeout, service, "")); got != want {
			t.Errorf("%q: got %+v, want %+v", service, got, want)
		}
	}
	want := action.Outcome{
		Reason: action.GRPCUnimplemented,
		Output: "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health",
	}
	if got := actiontest.Attempt(t, grpcProbe(actiontest.RPC(t, false, false), 10*time.Second, "", "")); got != want {
		t.Errorf("no health service: got %+v, want %+v", got, want)
	}
	if got := actiontest.Attempt(t, grpcProbe(healthy, 10*time.Second, "long", "")); len(got.Output) != action.MaxOutput {
		t.Errorf("a status of 30 KiB gives %d bytes of output", len(got.Output))
	}
}

// Each mode succeeds with its own kind of server and with no other.
func TestGRPCModes(t *testing.T) {
	servers := map[string]string{"Plaintext": actiontest.RPC(t, false, true), "TLS": actiontest.RPC(t, true, true)}
	var all sync.WaitGroup
	for server, address := range servers {
		for _, mode := range []string{"", "Plaintext", "TLS"} {
			timeout, fits := 700*time.Millisecond, server == mode || server == "Plaintext" && mode == ""
			if fits {
				timeout = 10 * time.Second
			}
			all.Go(func() {
				got, err := actiontest.Tried(t, grpcProbe(address, timeout, "", mode))
				text := fmt.Sprintf("timeout: failed to connect service %q within %v: context deadline exceeded", address, timeout)
				if err != nil || got.Success != fits || !fits && got.Output != text {
					t.Errorf("mode %q, server %s: got %+v, error %v", mode, server, got, err)
				}
				if mode == "TLS" && !fits && got.Reason != action.TLS {
					t.Errorf("mode %q, server %s: reason %s, want tls", mode, server, got.Reason)
				}
			})
		}
	}
	all.Wait()
}

// If no connection comes about, the output is the kubelet's, and the reason says what the
// server did.
func TestGRPCUnconnected(t *testing.T) {
	const timeout = 700 * time.Millisecond
	var all sync.WaitGroup
	for _, c := range []struct {
		name, address, mode string
		want                action.Reason
	}{
		{"closed", actiontest.ClosedPort(t), "", action.ConnectionRefused},
		{"closed, TLS", actiontest.ClosedPort(t), "TLS", action.ConnectionRefused},
		{"mute", actiontest.Raw(t, actiontest.Mute), "", action.Timeout},
		{"mute, TLS", actiontest.Raw(t, actiontest.Mute), "TLS", action.Timeout},
		{"hangs up", actiontest.Raw(t, actiontest.Say("")), "", action.ConnectionReset},
		{"hangs up, TLS", actiontest.Raw(t, actiontest.Say("")), "TLS", action.TLS},
		{"resets", actiontest.Raw(t, actiontest.ResetBy("")), "", action.ConnectionReset},
		{"TLS alert", actiontest.Raw(t, actiontest.Say("\x15\x03\x01\x00\x02\x02\x46")), "", action.TLS},
		{"HTTP/1", actiontest.Web(t, actiontest.Site()), "", action.HTTPProtocol},
		{"HTTP/1, TLS", actiontest.Web(t, actiontest.Site()), "TLS", action.TLS},
		{"HTTPS without h2", actiontest.WebServer(t, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), true).Listener.Addr().String(), "TLS", action.TLS},
		{"garbage", actiontest.Raw(t, actiontest.Say("garbage garbage garbage")), "", action.HTTPProtocol},
		{"no such host", "no such host.invalid:80", "", action.DNS},
		{"no host", ":" + strings.TrimPrefix(actiontest.ClosedPort(t), "127.0.0.1:"), "", action.ConnectionRefused},
	} {
		all.Go(func() {
			began := time.Now()
			got, err := actiontest.Tried(t, grpcProbe(c.address, timeout, "", c.mode))
			if took := time.Since(began); took < timeout {
				t.Errorf("%s: the attempt ended after %v, not at the deadline", c.name, took)
			}
			want := action.Outcome{
				Reason: c.want,
				Output: fmt.Sprintf("timeout: failed to connect service %q within %v: context deadline exceeded", c.address, timeout),
			}
			if got != want || err != nil {
				t.Errorf("%s: got %+v, error %v, want %+v", c.name, got, err, want)
			}
		})
	}
	all.Wait()
	certificates := actiontest.WebServer(t, nil, actiontest.Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates
	var once atomic.Bool
	for _, c := range []struct {
		name, mode string
		serve      func(net.Conn)
		want       action.Reason
	}{
		{"TLS without ALPN", "TLS", func(conn net.Conn) {
			script(func(p *peer) { p.rest(p.begin()) })(tls.Server(conn, &tls.Config{Certificates: certificates}))
		}, action.TLS},
		{"TLS, then mute", "TLS", func(conn net.Conn) {
			actiontest.Mute(tls.Server(conn, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}}))
		}, action.Timeout},
		{"resets, then mute", "TLS", func(conn net.Conn) {
			if once.Swap(true) {
				actiontest.Mute(conn)
				return
			}
			actiontest.ResetBy("")(conn)
		}, action.TLS},
	} {
		if got, _ := grpcProbe(actiontest.Raw(t, c.serve), 1400*time.Millisecond, "", c.mode)(t.Context()); got.Success || got.Reason != c.want && got.Reason != action.AgentLate {
			t.Errorf("%s: got %+v, want %s", c.name, got, c.want)
		}
	}
	// A server may also begin well. The outcome then depends on how far the client has
	// come.
	settings := string([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // an empty SETTINGS frame
	for _, then := range []string{"", strings.Repeat("nonsense", 10)} {
		f := grpcProbe(actiontest.Raw(t, func(conn net.Conn) { actiontest.Say(settings + then)(conn); actiontest.Mute(conn) }), 300*time.Millisecond, "", "")
		if got := actiontest.Attempt(t, f); got.Success || got.Reason == action.Other {
			t.Errorf("SETTINGS and %q: got %+v", then, got)
		}
	}
}

// If a connection is refused at first, the action tries again until the deadline, like the
// kubelet.
func TestGRPCTriesAgain(t *testing.T) {
	address := actiontest.ClosedPort(t)
	time.AfterFunc(200*time.Millisecond, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return
		}
		s := grpc.NewServer()
		t.Cleanup(s.Stop)
		go s.Serve(l)
	})
	if got := actiontest.Attempt(t, grpcProbe(address, 8*time.Second, "", "")); got.Reason != action.GRPCUnimplemented {
		t.Errorf("got %+v", got)
	}
}

// A request tells a server who asks for what, and nothing else. An answer of more than 32 KiB
// is a failure.
func TestGRPCRequest(t *testing.T) {
	seen := make(chan metadata.MD, 1)
	size := 0
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		seen <- md
		return stream.SendMsg(answerOf(size))
	}), grpc.ForceServerCodecV2(rawCodec{}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Stop()
	address := l.Addr().String()

	got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, "", ""))
	md := <-seen
	if !got.Success {
		t.Errorf("got %+v", got)
	}
	if agent := strings.Join(md["user-agent"], ""); !strings.HasPrefix(agent, action.UserAgent+" grpc-go/") {
		t.Errorf("user agent %q", agent)
	}
	delete(md, "user-agent")
	if len(md) != 2 || strings.Join(md[":authority"], "") != address || strings.Join(md["content-type"], "") != "application/grpc" {
		t.Errorf("the server saw %v", md)
	}

	size = 1 << 20
	if got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, "", "")); got.Reason != action.GRPCStatus || !strings.Contains(got.Output, "more than 32768") {
		t.Errorf("got %+v", got)
	}
	<-seen
}

// The action does not use a proxy of the environment.
func TestGRPCIgnoresProxy(t *testing.T) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+actiontest.ClosedPort(t))
	}
	_, port := actiontest.Split(actiontest.RPC(t, false, true))
	f := New(&config.Target{Host: "localhost.localdomain"}, &config.Probe{GRPC: &config.GRPC{Port: port}, Timeout: 10 * time.Second})
	if _, err := net.LookupHost("localhost.localdomain"); err != nil {
		// A client would ask a proxy for this host; without a proxy, the host is this
		// machine.
		f = grpcProbe(dial.HostPort("0.0.0.0", port), 10*time.Second, "", "")
	}
	if got := actiontest.Attempt(t, f); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// A stop ends an attempt at once with an error, in the dial and in the call.
func TestGRPCStop(t *testing.T) {
	for name, f := range map[string]action.Func{
		"dial": grpcProbe(actiontest.Raw(t, actiontest.Mute), time.Minute, "", ""),
		"call": grpcProbe(actiontest.RPC(t, false, true), time.Minute, "slow", ""),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		began := time.Now()
		got, err := f(ctx)
		if took := time.Since(began); err == nil || took > 5*time.Second {
			t.Errorf("%s: got %+v, error %v after %v; want an error after 50ms", name, got, err, took)
		}
	}
}

// answerOf returns a HealthCheckResponse that says SERVING and has an unknown field of the
// given size.
func answerOf(size int) []byte {
	answer := []byte{1 << 3, 1}
	if size > 0 {
		answer = append(answer, 15<<3|2)
		answer = binary.AppendUvarint(answer, uint64(size))
		answer = append(answer, make([]byte, size)...)
	}
	return answer
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return "raw" }

// grpcProbe returns a grpc action.
func grpcProbe(address string, timeout time.Duration, service, mode string) action.Func {
	return New(actiontest.GRPC(address, timeout, service, mode))
}
