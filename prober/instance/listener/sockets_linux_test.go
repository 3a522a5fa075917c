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

// watchingPorts is a listener of the kernel's sockets that watches app at these ports, and
// runs. It returns how to see the instance after a fresh look.
func watchingPorts(t *testing.T, ports ...int) (l *Source, look func() gate.Instance) {
	t.Helper()
	l = New(slog.New(slog.DiscardHandler))
	l.witness = nil // the sockets are this process', which runs on
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

// A socket of the kernel's that is closed and made again on the same port is another
// instance; in between there is none.
func TestListenerSeesARestart(t *testing.T) {
	s := sharing(t, "127.0.0.1:"+testutil.Port(t))
	_, look := watchingPorts(t, port(s))
	first := look()
	if first.Phase != gate.Running || !first.StartedAt.IsZero() {
		t.Fatalf("there before the agent: %+v", first)
	}
	_ = s.Close()
	if ended := look(); ended.Phase != gate.Terminated || ended.ID != first.ID {
		t.Errorf("closed: %+v", ended)
	}
	sharing(t, s.Addr().String())
	if second := look(); second.Phase != gate.Running || second.ID == first.ID || second.StartedAt.IsZero() {
		t.Errorf("made again: %+v", second)
	}
}

// Two sockets share a port by SO_REUSEPORT; as long as one of those that were there
// before is left, it is the same instance.
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

// A socket that is handed over to another process is the same instance.
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
		t.Errorf("handed over: %+v", got)
	}
	_ = heir.Process.Kill()
	_ = heir.Wait()
	if got := look(); got.Phase != gate.Terminated {
		t.Errorf("the heir is dead: %+v", got)
	}
}

// Of three ports, the instance lives as long as one listens.
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
		t.Errorf("one is back: %+v", second)
	}
	sharing(t, ":"+strconv.Itoa(port(c)))
	if got := look(); got.ID != second.ID {
		t.Errorf("another is back: %+v", got)
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
		t.Errorf("only a connection is left: %+v", got)
	}
}

// What a second of watching 100 targets costs, as one read and its conclusions.
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
