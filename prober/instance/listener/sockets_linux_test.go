// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// sharing listens on an address that others may listen on as well.
func sharing(t testing.TB, address string) net.Listener {
	t.Helper()
	return testutil.Listen(t, "tcp", address, true)
}

// watchingPorts returns a running listener of the kernel's sockets that watches app at these
// ports. look takes a fresh look and returns the instance.
func watchingPorts(t *testing.T, ports ...int) (l *Source, look func() gate.Instance) {
	t.Helper()
	l = New(slog.New(slog.DiscardHandler))
	l.witness = nil // this process holds the sockets, and runs on
	c := &config.Target{Name: "app", Instance: watch}
	c.Instance.Listeners = nil
	for _, p := range ports {
		c.Instance.Listeners = append(c.Instance.Listeners, config.Listener{Host: "127.0.0.1", Port: p})
	}
	l.Watch(c)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := l.Run(ctx, func(string) {}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return l, func() gate.Instance {
		l.AttemptFailed("app")
		l.Look(ctx)
		return l.Instance("app")
	}
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// If a socket is closed and opened again on the same port, it is another instance. Between the
// two there is no instance.
func TestListenerSeesARestart(t *testing.T) {
	s := sharing(t, "127.0.0.1:"+testutil.Port(t))
	_, look := watchingPorts(t, port(s))
	first := look()
	if first.Phase != gate.Running || !first.StartedAt.IsZero() {
		t.Fatalf("a socket from before the agent: %+v", first)
	}
	_ = s.Close()
	if ended := look(); ended.Phase != gate.Terminated || ended.ID != first.ID {
		t.Errorf("closed: %+v", ended)
	}
	sharing(t, s.Addr().String())
	if second := look(); second.Phase != gate.Running || second.ID == first.ID || second.StartedAt.IsZero() {
		t.Errorf("a socket opened again: %+v", second)
	}
}

// Two sockets share a port by SO_REUSEPORT. While one of the earlier sockets is left, the
// instance is the same.
func TestListenerSeesWorkersComeAndGo(t *testing.T) {
	one := sharing(t, "127.0.0.1:"+testutil.Port(t))
	address := one.Addr().String()
	_, look := watchingPorts(t, port(one))
	first := look().ID
	for range 5 {
		two := sharing(t, address)
		if got := look(); got.ID != first {
			t.Fatalf("a worker came: %+v", got)
		}
		_ = one.Close()
		if got := look(); got.ID != first || got.Phase != gate.Running {
			t.Fatalf("a worker went: %+v", got)
		}
		one = two
	}
}

// A socket that another process takes over is the same instance.
func TestListenerSeesAHandOver(t *testing.T) {
	s := sharing(t, "127.0.0.1:"+testutil.Port(t))
	_, look := watchingPorts(t, port(s))
	first := look().ID
	f, err := s.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	heir := exec.Command("sleep", "60")
	heir.ExtraFiles = []*os.File{f}
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if got := look(); got.ID != first || got.Phase != gate.Running {
		t.Errorf("after the hand-over: %+v", got)
	}
	_ = heir.Process.Kill()
	_ = heir.Wait()
	if got := look(); got.Phase != gate.Terminated {
		t.Errorf("after the heir's end: %+v", got)
	}
}

// An instance with three ports lives while one of the ports listens.
func TestListenerSeesThreePortsAsOne(t *testing.T) {
	a, b, c := sharing(t, "127.0.0.1:"+testutil.Port(t)), sharing(t, "[::]:"+testutil.Port(t)), sharing(t, "0.0.0.0:"+testutil.Port(t))
	_, look := watchingPorts(t, port(a), port(b), port(c))
	first := look().ID
	for _, s := range []net.Listener{a, b} {
		_ = s.Close()
		if got := look(); got.ID != first || got.Phase != gate.Running {
			t.Errorf("%v closed: %+v", s.Addr(), got)
		}
	}
	_ = c.Close()
	if got := look(); got.Phase != gate.Terminated {
		t.Errorf("all closed: %+v", got)
	}
	sharing(t, ":"+strconv.Itoa(port(b)))
	second := look()
	if second.Phase != gate.Running || second.ID == first {
		t.Errorf("after one listens again: %+v", second)
	}
	sharing(t, ":"+strconv.Itoa(port(c)))
	if got := look(); got.ID != second.ID {
		t.Errorf("after another listens again: %+v", got)
	}
}

// Connections to the socket, open or half closed, are not listeners.
func TestListenerIgnoresConnections(t *testing.T) {
	s := sharing(t, "127.0.0.1:"+testutil.Port(t))
	_, look := watchingPorts(t, port(s))
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_ = s.Close()
	if got := look(); got.Phase != gate.Terminated {
		t.Errorf("with only a connection left: %+v", got)
	}
}

// This benchmark measures a second of watching 100 targets: one read and its conclusions.
func BenchmarkListener100Targets(b *testing.B) {
	l := New(slog.New(slog.DiscardHandler))
	for i := range 100 {
		s, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		c := &config.Target{Name: strconv.Itoa(i), Instance: watch}
		c.Instance.Listeners = []config.Listener{{Host: "127.0.0.1", Port: port(s)}}
		l.Watch(c)
	}
	b.ReportAllocs()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for b.Loop() {
		l.reading.Lock()
		l.read(l.readAt)
		l.reading.Unlock()
	}
	if err := l.Run(ctx, func(string) {}); err != nil {
		b.Fatal(err)
	}
}
