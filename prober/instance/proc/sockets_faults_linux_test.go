// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// If the kernel refuses sock_diag, the reader asks again only after 10 minutes and reads
// /proc/net/tcp meanwhile. IDs from /proc/net/tcp equal none of sock_diag's. How says which way
// served last.
func TestSocketsRefused(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	for _, errno := range []error{unix.EPERM, unix.ENOENT, unix.EINVAL} {
		asked, refuse := 0, errno
		s := &Sockets{Dial: func() (*netlink.Conn, error) {
			asked++
			if refuse != nil {
				return nil, refuse
			}
			return dialDiag()
		}}
		defer s.Close()
		byInode := at(t, s, addrOf(l))
		at(t, s, addrOf(l))
		if asked != 1 || s.How() != ByProcNet || byInode[0].ID != inodeID|inodeOf(t, l) {
			t.Errorf("%v: asked %d times, %s, %+v", errno, asked, s.How(), byInode)
		}
		s.tryDiag, refuse = time.Now(), nil
		byCookie := at(t, s, addrOf(l))
		if asked != 2 || s.How() != BySockDiag || byCookie[0].ID&inodeID != 0 || byCookie[0].Inode != byInode[0].Inode {
			t.Errorf("%v: asked %d times, %s, %+v after %+v", errno, asked, s.How(), byCookie, byInode)
		}
	}
}

// fakeDiag plays sock_diag. It answers dump n with answer n, and all later dumps with the last
// answer.
type fakeDiag struct {
	netlink.Socket
	answers []fakeAnswer
	asked   netlink.Message
	n       int
}

// fakeAnswer is the answer to a dump: sockets with flags, or an error.
type fakeAnswer struct {
	flags   netlink.HeaderFlags
	late    uint32 // how far the sequence number is off
	sockets [][]byte
	err     error
}

func (f *fakeDiag) Close() error { return nil }

func (f *fakeDiag) SetDeadline(time.Time) error      { return nil }
func (f *fakeDiag) SetReadDeadline(time.Time) error  { return nil }
func (f *fakeDiag) SetWriteDeadline(time.Time) error { return nil }

func (f *fakeDiag) Send(m netlink.Message) error {
	f.asked = m
	f.n++
	return nil
}

func (f *fakeDiag) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		a := f.answers[min(f.n, len(f.answers))-1]
		if a.err != nil {
			yield(netlink.Message{}, a.err)
			return
		}
		m := netlink.Message{Header: f.asked.Header}
		m.Header.Sequence += a.late
		m.Header.Flags = netlink.Multi | a.flags
		for _, m.Data = range a.sockets {
			if !yield(m, nil) {
				return
			}
		}
		m.Header.Type, m.Data = netlink.Done, make([]byte, 4)
		yield(m, nil)
	}
}

// answers returns a reader that reads from a fakeDiag.
func answers(a ...fakeAnswer) *Sockets {
	return &Sockets{Dial: func() (*netlink.Conn, error) { return netlink.NewConn(&fakeDiag{answers: a}, 1), nil }}
}

// diagMsg returns the message of a socket at 10.1.2.3:258 with a cookie.
func diagMsg(cookie byte) []byte {
	b := make([]byte, 72)
	b[0], b[4], b[5], b[44] = unix.AF_INET, 1, 2, cookie
	copy(b[8:], []byte{10, 1, 2, 3})
	return b
}

// If the kernel calls a dump interrupted, the reader tries again, five times at most. Then the
// reader uses the other way, if sock_diag has never worked before.
func TestSocketsInterrupted(t *testing.T) {
	torn := fakeAnswer{flags: netlink.DumpInterrupted, sockets: [][]byte{diagMsg(1)}}
	s := answers(torn, torn, fakeAnswer{sockets: [][]byte{diagMsg(2)}}, fakeAnswer{})
	got, err := s.Read(nil)
	if err != nil || len(got) != 1 || got[0].ID != 2 || got[0].Local.String() != "10.1.2.3:258" {
		t.Errorf("got %+v, %v, want only the sockets of the whole dump", got, err)
	}
	s = answers(torn)
	if _, err := s.Read(nil); err != nil || s.How() != ByProcNet {
		t.Errorf("read by %s, %v, want the other way", s.How(), err)
	}
	s.worked, s.tryDiag = true, time.Time{}
	if got, err := s.Read(nil); !errors.Is(err, errTorn) || len(got) != 0 {
		t.Errorf("got %+v, %v, want %v", got, err, errTorn)
	}
}

// If a kernel has no IPv6, the reader reads IPv4 alone.
func TestSocketsNoIPv6(t *testing.T) {
	s := answers(fakeAnswer{sockets: [][]byte{diagMsg(1)}}, fakeAnswer{err: unix.ENOENT})
	if got, err := s.Read(nil); err != nil || len(got) != 1 || s.How() != BySockDiag {
		t.Errorf("got %+v, %v by %s, want one by sock_diag", got, err, s.How())
	}
	s = &Sockets{proc: procWith(t, map[string]string{"tcp": procHeader + procLine("0100007F:0016", "0A", "55")}), tryDiag: time.Now().Add(time.Hour)}
	if got, err := s.Read(nil); err != nil || len(got) != 1 || got[0].Local.String() != "127.0.0.1:22" {
		t.Errorf("got %+v, %v, want one at 127.0.0.1:22", got, err)
	}
}

// A message that is too short, of an unknown family, or an answer to another question is an
// error, and yields no socket.
func TestSocketsNonsense(t *testing.T) {
	unknown := diagMsg(1)
	unknown[0] = 99
	for want, a := range map[string]fakeAnswer{
		"has 71 bytes":      {sockets: [][]byte{diagMsg(1)[:71]}},
		"unknown family 99": {sockets: [][]byte{unknown}},
		"answer":            {sockets: [][]byte{diagMsg(1)}, late: 1},
		"message too long":  {err: unix.EMSGSIZE},
	} {
		s := answers(a)
		s.worked = true
		if got, err := s.Read(nil); err == nil || !strings.Contains(err.Error(), want) || len(got) != 0 {
			t.Errorf("got %+v, %v, want an error with %q", got, err, want)
		}
		if s.conn != nil {
			t.Errorf("%s: the reader keeps a connection that may hold more of the answer", want)
		}
	}
}

const procHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func procLine(local, state, inode string) string {
	return "   0: " + local + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1\n"
}

// procWith returns a proc file system whose net directory has these files.
func procWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "net", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A bad file of /proc/net is an error: a line that is cut short or has no end, a port beyond
// 65535, a bad address, or no file of IPv4.
func TestSocketsProcNonsense(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cut":  {"tcp": procHeader + "   0: 0100007F:0016 00000000:0000 0A"},
		"port": {"tcp": procHeader + procLine("0100007F:1FFFF", "0A", "55")},
		"none": {"tcp6": procHeader},
		"hex":  {"tcp": procHeader + procLine("0100007G:0016", "0A", "55")},
		"ip":   {"tcp": procHeader + procLine("0100007F0100007F:0016", "0A", "55")},
		"long": {"tcp": procHeader + strings.Repeat("x", 1<<17)},
	} {
		s := &Sockets{proc: procWith(t, files), tryDiag: time.Now().Add(time.Hour)}
		if got, err := s.Read(nil); err == nil || len(got) != 0 {
			t.Errorf("%s: got %+v, %v, want an error", name, got, err)
		}
	}
}
