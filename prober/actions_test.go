// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

func TestMain(m *testing.M) { actiontest.Main(m) }

// Each action that the file can have has an implementation, and no other action has.
func TestActionsAreThoseOfTheFile(t *testing.T) {
	names := config.ActionNames()
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(actions)); !slices.Equal(got, names) {
		t.Errorf("actions %q, in the file %q", got, names)
	}
}

// The address of a probe contains no secrets.
func TestAddress(t *testing.T) {
	target := &config.Target{Host: "::1"}
	port := config.PortRef{Number: 8080}
	for want, p := range map[string]*config.Probe{
		"http://[::1]:8080/healthz?a=b":      {HTTPGet: &config.HTTPGet{Path: "/healthz?a=b", Port: port, Scheme: "HTTP"}},
		"https://shop:8080/%2F":              {HTTPGet: &config.HTTPGet{Path: "/%2F", Port: port, Scheme: "HTTPS", Host: "shop"}},
		"http://<redacted>@[::1]:8080/x%20y": {HTTPGet: &config.HTTPGet{Path: "http://user:pass@h/x y", Port: port, Scheme: "HTTP"}},
		"http://<redacted>@[::1]:8080/":      {HTTPGet: &config.HTTPGet{Path: "//token@h/", Port: port}},
		"[::1]:8080":                         {TCPSocket: &config.TCPSocket{Port: port}},
		"db:8080":                            {TCPSocket: &config.TCPSocket{Port: port, Host: "db"}},
		"[::1]:9000":                         {GRPC: &config.GRPC{Port: 9000}},
		"":                                   {Exec: &config.Exec{Command: []string{"true"}}},
		"http://<redacted>@localhost/x over unix:///run/a.sock": {HTTPGet: &config.HTTPGet{Path: "//u:p@h/x", Scheme: "HTTP", Host: "unix:///run/a.sock"}},
		"unix:///run/a.sock": {TCPSocket: &config.TCPSocket{Host: "unix:///run/a.sock"}},
	} {
		if got := addressOf(target, p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	socket := &config.Target{Host: "unix:///run/a.sock"}
	if got := addressOf(socket, &config.Probe{GRPC: &config.GRPC{}}); got != socket.Host {
		t.Errorf("got %q, want %q", got, socket.Host)
	}
}

// A stopped attempt returns an error, whatever the action.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, f := range map[string]action.Func{
		"httpGet":   httpProbe(actiontest.Web(t, actiontest.Site()), 10*time.Second, config.HTTPGet{Path: "/"}),
		"tcpSocket": tcpProbe(actiontest.Raw(t, actiontest.Mute), 10*time.Second),
		"grpc":      grpcProbe(actiontest.RPC(t, false, true), 10*time.Second, "", ""),
	} {
		if got, err := f(ctx); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

// URLs, texts and authorities have IPv6 addresses in brackets.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		needs.Missing(t, "IPv6: ", err)
	}
	s := httptest.NewUnstartedServer(actiontest.Site())
	s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	address := l.Addr().String()
	if got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/h"})); !strings.Contains(got.Output, "|"+address+"|") {
		t.Errorf("httpGet: got %+v", got)
	}
	if got := actiontest.Attempt(t, tcpProbe(address, 10*time.Second)); !got.Success {
		t.Errorf("tcpSocket: got %+v", got)
	}
	want := fmt.Sprintf("timeout: failed to connect service %q within 50ms: context deadline exceeded", address)
	if got := actiontest.Attempt(t, grpcProbe(address, 50*time.Millisecond, "", "")); got.Output != want {
		t.Errorf("grpc: got %+v, want %s", got, want)
	}
}

// A zone says which interface leads to an address. Every action connects through that interface.
func TestZone(t *testing.T) {
	for name, f := range map[string]action.Func{
		"httpGet":   httpProbe(linkLocal(t, actiontest.Web(t, actiontest.Site())), 10*time.Second, config.HTTPGet{Path: "/"}),
		"tcpSocket": tcpProbe(linkLocal(t, actiontest.Raw(t, actiontest.Mute)), 10*time.Second),
		"grpc":      grpcProbe(linkLocal(t, actiontest.RPC(t, false, true)), 10*time.Second, "", ""),
	} {
		if got := actiontest.Attempt(t, f); !got.Success {
			t.Errorf("%s: got %+v, want success", name, got)
		}
	}
}

// linkLocal returns a link-local address with its zone. Connections to the address end at server.
func linkLocal(t *testing.T, server string) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			ip, ok := a.(*net.IPNet)
			if !ok || ip.IP.To4() != nil || !ip.IP.IsLinkLocalUnicast() {
				continue
			}
			host := ip.IP.String() + "%" + i.Name
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				continue
			}
			_, port := actiontest.Split(actiontest.RawOn(t, l, func(conn net.Conn) {
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, conn)
				io.Copy(conn, to)
			}))
			return dial.HostPort(host, port)
		}
	}
	t.Skip("no interface has a link-local address") //nolint:forbidigo // no right would help: a machine may have loopback alone
	return ""
}

// httpProbe returns an httpGet action.
func httpProbe(address string, timeout time.Duration, h config.HTTPGet) action.Func {
	return newAction(actiontest.HTTPGet(address, timeout, h))
}

// tcpProbe returns a tcpSocket action.
func tcpProbe(address string, timeout time.Duration) action.Func {
	return newAction(actiontest.TCPSocket(address, timeout))
}

// grpcProbe returns a grpc action.
func grpcProbe(address string, timeout time.Duration, service, mode string) action.Func {
	return newAction(actiontest.GRPC(address, timeout, service, mode))
}
