// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// nameserver is a DNS server on loopback that this process asks for all names.
type nameserver struct {
	t    *testing.T
	conn net.PacketConn

	mu      sync.Mutex
	address map[string]string // addresses of names; the server does not answer for other names
	asked   []nameQuestion
	sockets []net.Conn // the look-ups' connections
}

// nameQuestion is a question without an answer so far, because its name has no address.
type nameQuestion struct {
	name string
	from net.Addr
	dnsmessage.Message
}

func newNameserver(t *testing.T, address map[string]string) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameserver{t: t, conn: conn, address: address}
	var serving sync.WaitGroup
	serving.Go(s.serve)
	reach := func(ctx context.Context, _, _ string) (net.Conn, error) {
		socket, err := new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
		if err == nil {
			s.mu.Lock()
			s.sockets = append(s.sockets, socket)
			s.mu.Unlock()
		}
		return socket, err
	}
	set := func(to dialFunc) {
		resolving.mu.Lock()
		defer resolving.mu.Unlock()
		resolving.reach = to
	}
	set(reach)
	t.Cleanup(func() {
		set(nil)
		conn.Close()
		serving.Wait()
	})
	return s
}

func (s *nameserver) serve() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		q := nameQuestion{from: from}
		if q.Unpack(buf[:n]) != nil || len(q.Questions) != 1 {
			continue
		}
		q.name = strings.TrimSuffix(q.Questions[0].Name.String(), ".")
		s.mu.Lock()
		s.asked = append(s.asked, q)
		s.answer(q)
		s.mu.Unlock()
	}
}

// answer answers a question if it can. The caller holds mu.
func (s *nameserver) answer(q nameQuestion) {
	ip := net.ParseIP(s.address[q.name]).To4()
	if ip == nil {
		return
	}
	q.Response, q.RecursionAvailable, q.Additionals = true, true, nil
	if q.Questions[0].Type == dnsmessage.TypeA {
		q.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 3600},
			Body:   &dnsmessage.AResource{A: [4]byte(ip)},
		}}
	}
	if packet, err := q.Pack(); err == nil {
		_, _ = s.conn.WriteTo(packet, q.from)
	}
}

// means gives a name an address from now on, also for earlier questions.
func (s *nameserver) means(name, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address[name] = address
	for _, q := range s.asked {
		if q.name == name {
			s.answer(q)
		}
	}
}

// questions returns how many questions for a name have come.
func (s *nameserver) questions(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.name == name {
			n++
		}
	}
	return n
}

// open returns how many sockets of look-ups are open.
func (s *nameserver) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, socket := range s.sockets {
		if err := socket.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			n++
		}
	}
	return n
}

// waysTo returns attempts to connect to a host in each of the actions' ways: to the first
// address that answers; to each address in turn, each with all the time; and through net/http.
func waysTo(host string, port int, timeout time.Duration) map[string]action.Func {
	address := HostPort(host, port)
	try := func(connect func(ctx context.Context, watch *Stopwatch) error) action.Func {
		return func(ctx context.Context) (action.Outcome, error) {
			watch := NewStopwatch(timeout)
			if err := connect(ctx, watch); err != nil {
				return watch.Judge(action.Failed(ctx, err, err.Error()))
			}
			return action.Outcome{Success: true}, nil
		}
	}
	byName := func(share bool) action.Func {
		return try(func(ctx context.Context, watch *Stopwatch) error {
			conn, err := Name(ctx, NewDialer(), address, watch, share)
			if err == nil {
				LetGo(conn)
			}
			return err
		})
	}
	return map[string]action.Func{
		"shared": byName(true),
		"whole":  byName(false),
		"net/http": try(func(ctx context.Context, watch *Stopwatch) error {
			c := NewConns(ctx, watch)
			defer c.Close()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", http.NoBody)
			if err != nil {
				return err
			}
			transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return c.Dial(ctx, network, address)
			}}
			response, err := transport.RoundTrip(request)
			if err == nil {
				response.Body.Close()
			}
			return err
		}),
	}
}

// When an attempt at a name without an answer ends, its look-up ends, too, and leaves no
// socket.
func TestLookupEndsWithItsAttempt(t *testing.T) {
	s := newNameserver(t, nil)
	for name, f := range waysTo("silent.test.", 80, 100*time.Millisecond) {
		before := s.questions("silent.test")
		if got := actiontest.Attempt(t, f); got.Success || got.Reason != action.Timeout {
			t.Errorf("%s: got %+v, want a timeout", name, got)
		}
		if open, asked := s.open(), s.questions("silent.test")-before; open != 0 || asked == 0 {
			t.Errorf("%s: %d sockets of %d questions are left, want none", name, open, asked)
		}
	}
	if len(resolving.young) != 0 {
		t.Errorf("the process still holds %d look-ups", len(resolving.young))
	}
}

// Fifty attempts that ask for the same name at the same time share one look-up. The look-up
// goes on when the attempt that began it leaves, and all attempts get the first answer.
func TestLookupsAreShared(t *testing.T) {
	s := newNameserver(t, map[string]string{})
	shared := resolving.join("shared.test.")
	defer shared.leave()
	shared.began = time.Now().Add(time.Hour) // a slow machine may need a while to begin all attempts
	wanted := func(n int) func() bool {
		return func() bool {
			resolving.mu.Lock()
			defer resolving.mu.Unlock()
			return shared.wanted == 1+n
		}
	}
	_, port := actiontest.Split(actiontest.Raw(t, actiontest.Mute))
	probe := waysTo("shared.test.", port, time.Minute)["shared"]
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := probe(ctx)
		left <- err
	}()
	testutil.Until(t, "the first attempt asks for both kinds of address", func() bool { return s.questions("shared.test") == 2 })

	const attempts = 50
	outcomes := make(chan action.Outcome, attempts)
	for range attempts {
		go func() {
			got, err := probe(t.Context())
			if err != nil {
				got.Output = err.Error()
			}
			outcomes <- got
		}()
	}
	testutil.Until(t, "all attempts wait for the look-up", wanted(1+attempts))
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the first attempt ended with %v", err)
	}
	s.means("shared.test", "127.0.0.1")
	for range attempts {
		if got := <-outcomes; !got.Success {
			t.Errorf("got %+v", got)
		}
	}
	// An attempt that has joined but had not asked when the answer came asks again.
	if asked := s.questions("shared.test"); asked > (1+attempts)/2 {
		t.Errorf("%d questions for %d attempts, want 2, or a few more", asked, 1+attempts)
	}
}

// If a name gets another address, the very next attempt uses that address, whatever DNS said
// about the life of the answer.
func TestLookupsAreNotRemembered(t *testing.T) {
	s := newNameserver(t, map[string]string{"moves.test": "127.0.0.1"})
	host, port := actiontest.Split(actiontest.Raw(t, actiontest.Mute))
	probes := waysTo("moves.test.", port, 10*time.Second)
	for range 3 {
		for address, want := range map[string]bool{host: true, "127.0.0.77": false} {
			s.means("moves.test", address)
			if got := actiontest.Attempt(t, probes["shared"]); got.Success != want {
				t.Errorf("at %s: got %+v, want %v", address, got, want)
			}
		}
	}
}

// Only a look-up that has just begun accepts another attempt, so a lost packet costs a target
// one attempt and never two.
func TestLookupsAreJoinedYoung(t *testing.T) {
	var n names
	first := n.join("app.test")
	if same := n.join("app.test"); same != first {
		t.Error("a look-up that has just begun is not shared")
	}
	if n.join("other.test") == first {
		t.Error("two names share a look-up")
	}
	first.began = time.Now().Add(-joinable)
	second := n.join("app.test")
	if second == first {
		t.Errorf("a look-up accepts attempts after %v", joinable)
	}
	first.leave()
	if first.ctx.Err() != nil {
		t.Error("a look-up ended although an attempt wants it")
	}
	first.leave()
	if first.ctx.Err() == nil || second.ctx.Err() != nil {
		t.Error("the first look-up goes on, or the second ended with it")
	}
	if n.young["app.test"] != second {
		t.Error("the end of the first look-up has removed the second")
	}
	second.leave()
	if _, err := second.dial(t.Context(), "udp", "127.0.0.1:53"); err == nil {
		t.Error("a look-up that is over opens a socket")
	}
}

// Nobody looks up an address, with a zone or without.
func TestLookupsOfNamesOnly(t *testing.T) {
	s := newNameserver(t, nil)
	for _, host := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1%lo", ""} {
		if isName(host) {
			t.Errorf("%q is a name", host)
		}
		for what, f := range waysTo(host, 1, 100*time.Millisecond) {
			if got, err := f(t.Context()); err == nil && got.Success {
				t.Errorf("%s of %q: %+v", what, host, got)
			}
		}
	}
	// localhost is in the system's file, which comes before DNS.
	if got := actiontest.Attempt(t, waysTo("localhost", 1, time.Second)["shared"]); got.Reason != action.ConnectionRefused {
		t.Errorf("localhost: %+v, want a refused connection", got)
	}
	if n := len(s.asked); n != 0 {
		t.Errorf("%d questions, want none", n)
	}
}
