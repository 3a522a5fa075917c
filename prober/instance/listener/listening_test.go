// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// watch is a listener's configuration for port 80, with a hold of 5 s at most.
var watch = config.Instance{
	Source:    config.SourceListener,
	Listeners: []config.Listener{{Host: "127.0.0.1", Port: 80}},
	MaxHold:   5 * time.Second,
	Refresh:   time.Second,
}

// there returns sockets with these IDs at a port.
func there(port uint16, ids ...uint64) *places {
	found := make([]proc.Socket, len(ids))
	for i, id := range ids {
		found[i] = proc.Socket{ID: id, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	}
	return &places{byPort: map[uint16][]proc.Socket{port: found}}
}

// lookAt looks at the sockets at the epoch. Nobody can see which process holds them.
func (l *listening) lookAt(there *places) {
	ids, _ := l.of(there)
	l.infer(ids, unseen, epoch)
}

// follow takes a look a second. The digits of each word are the IDs of the sockets; - means no
// socket. The signs of a word say: ! a probe is held; x an attempt has failed; ? a kubelet
// asks. Of the process that held the last sockets they say: g it is gone; r it runs; o it has
// opened the new sockets.
//
// For each look follow returns the number of the instance. A . means that the instance does not
// run, ~ that it may not be held, < that the instance before handed over to it, and + that the
// hand-over counts as a restart.
func follow(script string) string {
	var l *listening
	ids := map[string]int{}
	var out []string
	for i, word := range strings.Fields(script) {
		now := epoch.Add(time.Duration(i) * time.Second)
		var set []uint64
		var f fate
		held, missed, asked := false, false, false
		for _, c := range strings.Trim(word, "-") {
			switch c {
			case '!':
				held = true
			case 'x':
				missed = true
			case '?':
				asked = true
			case 'g':
				f = gone
			case 'r':
				f = runs
			case 'o':
				f = reopened
			default:
				set = append(set, uint64(c-'0'))
			}
		}
		if l == nil {
			l = newListening(&watch, there(80, set...), now)
		} else {
			if asked {
				l.ask(now, now)
			}
			l.held = held
			if missed {
				l.missedAt = now
			}
			sockets, _ := l.of(there(80, set...))
			l.infer(sockets, f, now)
		}
		if _, known := ids[l.instance.ID]; !known {
			ids[l.instance.ID] = len(ids) + 1
		}
		said := strconv.Itoa(ids[l.instance.ID])
		switch {
		case l.instance.Phase != gate.Running:
			said += "."
		case l.instance.MaxHold == gate.Never:
			said += "~"
		}
		if l.instance.From != "" {
			said += "<"
		}
		if l.instance.Restarted {
			said += "+"
		}
		out = append(out, said)
	}
	return strings.Join(out, " ")
}

// Each row says which instances a script of sockets gives, one for each second.
func TestListeningRules(t *testing.T) {
	for _, tt := range []struct{ promise, sockets, want string }{
		{"the same socket is the same instance", "1 1 1", "1 1 1"},
		{"workers that share the port come and go: the same", "12 23 34 4", "1 1 1 1"},
		{"other sockets, and no attempt has failed: a hand-over", "1 2 3", "1 2< 3<"},
		{"all workers at once: a hand-over too", "12 34", "1 2<"},
		{"an attempt has failed in between: a restart", "1 x2 x3", "1 2 3"},
		{"an attempt that failed before the last look at the same sockets does not count", "1 x1 2", "1 1 2<"},
		{"the process before is gone: a restart, though no attempt has failed", "1 g2", "1 2<+"},
		{"the process before runs on: a hand-over", "1 r2", "1 2<"},
		{"the same process has closed its listener and opened another: the same", "1 r- r- o2 2", "1 1 1 1 1"},
		{"other sockets while a probe is held, so that no attempt can fail: a restart", "1 !2", "1 2"},

		{"no socket, and an attempt has failed: the end", "1 x- - x2", "1 1. 1. 2"},
		{"no socket, and the process is gone: the end", "1 g- 2", "1 1. 2"},
		{"no socket, and a probe waits for the next instance: the end", "1 !- 2", "1 1. 2"},
		{"no socket for less than 2 s, and no attempt has failed: a hand-over", "1 - - 2", "1 1 1 2<"},
		{"no socket for 2 s: the end", "1 - - - 2", "1 1 1 1. 2"},
		{"a process that runs on and does not listen has not ended", "1 r- r- r- r- r-", "1 1 1 1 1 1"},
		{"when that process ends, the instance ends", "1 r- r- g- 2", "1 1 1 1. 2"},
		{"an id that comes back after the end is another life", "1 g- 1", "1 1. 2"},

		{"an ended target runs again only with a sign of life", "1 g- - - - - - - - -", "1 1. 1. 1. 1. 1. 1. 1. 1. 1."},
		{"a kubelet asks after maxHold: the next instance runs without a socket", "1 g- ?- - - - - ?-", "1 1. 1. 1. 1. 1. 1. 2"},
		{"the end of that boot: a hand-over", "1 g- - - - - ?- 2 2", "1 1. 1. 1. 1. 1. 2 3< 3<"},
		{"a boot on hold that listens at last is another instance, but no second restart", "1 g- - - - - ?- !- !2 2", "1 1. 1. 1. 1. 1. 2 2 3< 3<"},
		{"an instance without a socket does not end a second time", "1 g- - - - - ?- x- - - - - -", "1 1. 1. 1. 1. 1. 2 2 2 2 2 2 2"},

		{"never seen: as static", "- - - x- - - - -", "1~ 1~ 1~ 1~ 1~ 1~ 1~ 1~"},
		{"seen first after the agent's start: a hand-over, now with a bound", "- - 1 1", "1~ 1~ 2< 2<"},
		{"a kubelet begins to ask: the instance began no earlier, and only once", "- - ?- - ?- 1", "1~ 1~ 2~< 2~< 2~< 3<"},
		{"a kubelet asks at once: the instance began with the agent", "- ?- - ?- 1", "1~ 1~ 1~ 1~ 2<"},
		{"an instance that was seen late ends like any other", "- 1 g- 2", "1~ 2< 2.< 3"},
		{"held, the same socket stays the same instance", "1 !1 !1 !1 !1 !1 !1 !1", "1 1 1 1 1 1 1 1"},
	} {
		if got := follow(tt.sockets); got != tt.want {
			t.Errorf("%s: %q gives %q, want %q", tt.promise, tt.sockets, got, tt.want)
		}
	}
}

// An instance from before the agent has no start, so its delays are over. Every later instance
// starts when the source first sees it.
func TestListeningStart(t *testing.T) {
	l := newListening(&watch, there(80, 1), epoch)
	if !l.instance.StartedAt.IsZero() || l.instance.ID != "socket-1" || l.instance.MaxHold != 5*time.Second {
		t.Errorf("the first: %+v", l.instance)
	}
	later := epoch.Add(time.Minute)
	l.infer([]uint64{0xabc}, unseen, later)
	if l.instance.StartedAt != later || l.instance.ID != "socket-abc" {
		t.Errorf("the second: %+v", l.instance)
	}
	l = newListening(&watch, nil, epoch)
	if l.instance.StartedAt != epoch || l.instance.LivenessLag != unseenGrace || l.instance.ID != "since-20260101T000000.000Z" {
		t.Errorf("unseen: %+v", l.instance)
	}
	l.infer([]uint64{1}, unseen, later)
	if l.instance.StartedAt != epoch || l.instance.LivenessLag != time.Minute || l.instance.ID != "socket-1" {
		t.Errorf("seen at last: %+v", l.instance)
	}
}

// Another configuration keeps the instance, whatever sockets the configuration names. From then
// on the new sockets count.
func TestListeningConfigure(t *testing.T) {
	moved := watch
	moved.Listeners = []config.Listener{{Host: "127.0.0.1", Port: 81}}
	moved.MaxHold = 7 * time.Second

	l := newListening(&watch, there(80, 1), epoch)
	l.configure(&moved, there(81, 2))
	if l.instance.ID != "socket-1" || l.instance.MaxHold != 7*time.Second {
		t.Errorf("moved: %+v", l.instance)
	}
	l.lookAt(there(81, 2))
	if l.instance.ID != "socket-1" {
		t.Errorf("the socket of the new port makes another instance: %+v", l.instance)
	}
	l.lookAt(there(81, 3))
	if l.instance.ID != "socket-3" {
		t.Errorf("the source does not see a restart after the change: %+v", l.instance)
	}

	l.configure(&watch, nil)
	if l.instance.ID != "socket-3" || l.instance.Phase != gate.Running || l.instance.MaxHold != gate.Never {
		t.Errorf("moved to a port where nobody listens: %+v, want the same, as static", l.instance)
	}

	l = newListening(&watch, there(80, 1), epoch)
	l.infer(nil, gone, epoch)
	l.configure(&moved, there(81, 2))
	if l.instance.Phase != gate.Terminated {
		t.Errorf("a reload began an instance: %+v", l.instance)
	}
	l.lookAt(there(81, 2))
	if l.instance.ID != "socket-2" || l.instance.Phase != gate.Running {
		t.Errorf("after a reload of an ended target: %+v", l.instance)
	}

	l = newListening(&watch, nil, epoch)
	longer := watch
	longer.MaxHold = time.Hour
	l.configure(&longer, nil)
	if l.instance.MaxHold != gate.Never {
		t.Errorf("never seen after a reload: max hold %v, want never", l.instance.MaxHold)
	}
}

// A target that had ended before its watch stays ended until it listens, or for maxHold and a
// sign of life. A target that listens runs.
func TestListeningHadEnded(t *testing.T) {
	l := newListening(&watch, nil, epoch)
	l.end(epoch)
	l.infer(nil, unseen, epoch.Add(4*time.Second))
	if l.instance.Phase != gate.Terminated || l.overdue(epoch.Add(4*time.Second)) {
		t.Errorf("after 4 s: %+v", l.instance)
	}
	if !l.overdue(epoch.Add(5 * time.Second)) {
		t.Errorf("after 5 s: %+v", l.instance)
	}
	l = newListening(&watch, there(80, 1), epoch)
	l.end(epoch)
	if l.instance.Phase != gate.Running {
		t.Errorf("a target that listens: %+v", l.instance)
	}
}

// A socket counts for a host if a connection to the host may end at it.
func TestServes(t *testing.T) {
	for _, tt := range []struct {
		bound, host string
		want        bool
	}{
		{"[v6only]", "127.0.0.1", false},
		{"[v6only]", "::ffff:127.0.0.1", false},
		{"[v6only]", "::1", true},
		{"[v6only]", "localhost", true},
		{"[v6only]", "app.example", true},
		{"0.0.0.0", "::1", false},
		{"::", "::1", true},
		{"0.0.0.0", "127.0.0.1", true},
		{"::", "127.0.0.1", true},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.2", "127.0.0.1", false},
		{"192.0.2.1", "127.0.0.1", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"::1", "127.0.0.1", false},
		{"::1", "localhost", true},
		{"127.0.0.1", "LOCALHOST.", true},
		{"127.0.0.1", "app.localhost", true},
		{"192.0.2.1", "localhost", false},
		{"127.0.0.1", "0.0.0.0", true},
		{"192.0.2.1", "0.0.0.0", false},
		{"fe80::1%eth0", "fe80::1%eth0", true},
		{"192.0.2.1", "app.example", true},
	} {
		one := proc.Socket{V6Only: tt.bound == "[v6only]"}
		one.Local = netip.AddrPortFrom(netip.IPv6Unspecified(), 80)
		if !one.V6Only {
			one.Local = netip.AddrPortFrom(netip.MustParseAddr(tt.bound), 80)
		}
		if got := serves(one, tt.host); got != tt.want {
			t.Errorf("bound to %s, host %s: %t, want %t", tt.bound, tt.host, got, tt.want)
		}
	}
}

// An attempt that fails while the sockets are read is newer than the read: the next read without
// sockets ends the instance at once.
func TestMissedDuringARead(t *testing.T) {
	l := newListening(&watch, there(80, 1), epoch)
	l.missedAt = epoch.Add(2 * time.Millisecond)
	l.infer([]uint64{1}, unseen, epoch.Add(time.Millisecond)) // this read began before the failure
	l.infer(nil, unseen, epoch.Add(3*time.Millisecond))
	if l.instance.Phase != gate.Terminated {
		t.Errorf("got %+v, want an end", l.instance)
	}
}

// Whatever sockets come and go, an instance begins with its socket or after the end of another
// instance. Its hold is never longer than the source allows, and its ID is never empty.
func FuzzListening(f *testing.F) {
	f.Add([]byte{1, 2, 0, 0, 0, 3, 129, 128})
	f.Fuzz(func(t *testing.T, looks []byte) {
		l := newListening(&watch, nil, epoch)
		for i, b := range looks {
			var set []uint64
			for id := range 6 {
				if b>>id&1 == 1 {
					set = append(set, uint64(id))
				}
			}
			was := l.instance
			l.held = b>>7 == 1
			now := epoch.Add(time.Duration(i) * time.Second)
			l.missedAt = time.Time{}
			if b>>6&1 == 1 {
				l.missedAt = now
			}
			l.infer(set, fate(i%4), now)
			is := l.instance
			switch {
			case is.ID == "":
				t.Fatalf("look %d: no id: %+v", i, is)
			case is.ID != was.ID && is.StartedAt != now && (is.From != was.ID || is.StartedAt.Add(is.LivenessLag) != now), is.ID == was.ID && was.Phase == gate.Running && is.StartedAt != was.StartedAt:
				t.Fatalf("look %d: the start is wrong: %+v after %+v", i, is, was)
			case len(set) > 0 && is.Phase != gate.Running:
				t.Fatalf("look %d: an instance that listens does not run: %+v", i, is)
			case is.MaxHold != gate.Never && is.MaxHold != watch.MaxHold:
				t.Fatalf("look %d: max hold %v", i, is.MaxHold)
			}
		}
	})
}

// This benchmark measures a look at one target among 1,000 ports.
func BenchmarkListeningLook(b *testing.B) {
	all := &places{byPort: map[uint16][]proc.Socket{}}
	for port := range uint16(1000) {
		maps.Copy(all.byPort, there(port, uint64(port)).byPort)
	}
	l := newListening(&watch, all, epoch)
	b.ReportAllocs()
	for b.Loop() {
		l.lookAt(all)
	}
	if l.instance.ID != fmt.Sprintf("socket-%x", 80) {
		b.Fatal(l.instance)
	}
}
