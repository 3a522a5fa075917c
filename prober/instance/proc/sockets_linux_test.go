// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"golang.org/x/sys/unix"
)

// listen opens a listening socket for the rest of the test.
func listen(t testing.TB, network, address string, shared ...bool) net.Listener {
	t.Helper()
	if network == "mapped" {
		return listenMapped(t)
	}
	return testutil.Listen(t, network, address, len(shared) > 0)
}

// listenMapped opens an IPv6 socket that listens at the IPv4 loopback.
func listenMapped(t testing.TB) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "mapped")
	defer f.Close()
	addr := &unix.SockaddrInet6{Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	if err := errors.Join(unix.Bind(fd, addr), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func addrOf(l net.Listener) netip.AddrPort {
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// ways returns both ways of reading, each with its own reader.
func ways(t testing.TB) map[string]*Sockets {
	diag, proc := &Sockets{}, &Sockets{Dial: func() (*netlink.Conn, error) { return nil, unix.EPERM }}
	t.Cleanup(diag.Close)
	t.Cleanup(proc.Close)
	return map[string]*Sockets{BySockDiag: diag, ByProcNet: proc}
}

// at reads and returns the sockets that listen at an address.
func at(t testing.TB, s *Sockets, where netip.AddrPort) []Socket {
	t.Helper()
	all, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(one Socket) bool { return one.Local != where })
}

// inodeOf returns the inode of a listener's socket as its holder sees it.
func inodeOf(t *testing.T, l net.Listener) uint64 {
	t.Helper()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := raw.Control(func(fd uintptr) { unix.Fstat(int(fd), &stat) }); err != nil {
		t.Fatal(err)
	}
	return stat.Ino
}

// The reader sees a listener where it listens, on IPv4, IPv6 or both, with the inode that its
// holder sees. Two reads of a listener are equal.
func TestSocketsWhere(t *testing.T) {
	for how, s := range ways(t) {
		for _, tc := range []struct{ network, listen, seen string }{
			{"tcp4", "127.0.0.1:0", "127.0.0.1"},
			{"tcp4", "127.0.0.2:0", "127.0.0.2"},
			{"tcp4", "0.0.0.0:0", "0.0.0.0"},
			{"tcp6", "[::1]:0", "::1"},
			{"tcp6", "[::]:0", "::"},
			{"tcp", ":0", "::"},
			{"mapped", "", "127.0.0.1"},
		} {
			l := listen(t, tc.network, tc.listen)
			want := netip.AddrPortFrom(netip.MustParseAddr(tc.seen), addrOf(l).Port())
			got := at(t, s, want)
			if len(got) != 1 || got[0].Local != want || got[0].Inode != inodeOf(t, l) || got[0].ID == 0 {
				t.Errorf("%s: %s %s: got %+v, want one at %v with inode %d", how, tc.network, tc.listen, got, want, inodeOf(t, l))
			}
			if again := at(t, s, want); !slices.Equal(again, got) {
				t.Errorf("%s: %s: read %+v, then %+v", how, tc.listen, got, again)
			}
		}
		if s.How() != how {
			t.Errorf("read by %s, want %s", s.How(), how)
		}
	}
}

// If a port is closed and opened again, its socket has a new ID. Two sockets that share a port
// with SO_REUSEPORT also differ: three sockets have three IDs.
func TestSocketsIdentity(t *testing.T) {
	for how, s := range ways(t) {
		first := listen(t, "tcp4", "127.0.0.1:0", true)
		where := addrOf(first)
		listen(t, "tcp4", addrOf(first).String(), true)
		pair := at(t, s, where)
		if len(pair) != 2 || pair[0].ID == pair[1].ID || pair[0].Inode == pair[1].Inode {
			t.Fatalf("%s: got %+v, want two that differ", how, pair)
		}
		gone := inodeOf(t, first)
		first.Close()
		left := at(t, s, where)
		if len(left) != 1 || !slices.Contains(pair, left[0]) || left[0].Inode == gone {
			t.Fatalf("%s: got %+v, want the other socket of %+v", how, left, pair)
		}
		listen(t, "tcp4", addrOf(first).String(), true)
		for _, one := range at(t, s, where) {
			if one != left[0] && (one.ID == pair[0].ID || one.ID == pair[1].ID) {
				t.Errorf("%s: %+v has the ID of a socket that has gone", how, one)
			}
		}
	}
}

// Connections are no listeners. With an open connection on a port there is still one listener.
func TestSocketsConnections(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for how, s := range ways(t) {
		if got := at(t, s, addrOf(l)); len(got) != 1 {
			t.Errorf("%s: got %+v, want the listener alone", how, got)
		}
		if got := at(t, s, c.LocalAddr().(*net.TCPAddr).AddrPort()); len(got) != 0 {
			t.Errorf("%s: got %+v, want none at the client's port", how, got)
		}
	}
}

// Both ways read each of 2,000 listeners once, while other sockets come and go.
func TestSocketsMany(t *testing.T) {
	want := make(map[uint64]netip.AddrPort)
	for i := range 2000 {
		network, address := "tcp4", "127.0.0.1:0"
		if i%2 == 1 {
			network, address = "tcp6", "[::1]:0"
		}
		l := listen(t, network, address)
		want[inodeOf(t, l)] = addrOf(l)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // a churn in the same table
		defer close(done)
		for ctx.Err() == nil {
			if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0"); err == nil {
				l.Close()
			}
		}
	}()
	defer func() { stop(); <-done }()
	for how, s := range ways(t) {
		for range 3 {
			all, err := s.Read(nil)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			seen := 0
			for _, one := range all {
				if at, ours := want[one.Inode]; ours {
					seen++
					if at != one.Local {
						t.Errorf("%s: inode %d at %v, want %v", how, one.Inode, one.Local, at)
					}
				}
			}
			if seen != len(want) {
				t.Errorf("%s: %d of %d", how, seen, len(want))
			}
		}
	}
}

// Read appends to a slice. After an error the slice has only its former content.
func TestSocketsAppends(t *testing.T) {
	listen(t, "tcp4", "127.0.0.1:0")
	mine := []Socket{{ID: 7}}
	for how, s := range ways(t) {
		if got, err := s.Read(mine); err != nil || len(got) < 2 || got[0] != mine[0] {
			t.Errorf("%s: got %+v, %v, want id 7 and one more", how, got, err)
		}
		s.tryDiag, s.proc = time.Now().Add(time.Hour), filepath.Join(t.TempDir(), "none")
		if got, err := s.Read(mine); !slices.Equal(got, mine) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %+v, %v, want id 7 and an error about the missing directory", how, got, err)
		}
	}
}

// BenchmarkSockets reads 3 and 1,000 listeners by both ways.
func BenchmarkSockets(b *testing.B) {
	for name, n := range map[string]int{"3": 3, "1000": 1000} {
		b.Run(name, func(b *testing.B) {
			for range n {
				listen(b, "tcp4", "127.0.0.1:0")
			}
			for how, s := range ways(b) {
				b.Run(strings.ReplaceAll(strings.Trim(how, "/"), "/", "_"), func(b *testing.B) {
					var found []Socket
					b.ReportAllocs()
					for b.Loop() {
						var err error
						if found, err = s.Read(found[:0]); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
