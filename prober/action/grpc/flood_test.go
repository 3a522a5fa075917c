// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// floods returns servers that never stop sending.
func floods() map[string]func(net.Conn) {
	repeat := func(begin func(p *peer, id uint32), again func(p *peer, id uint32) error) func(net.Conn) {
		return script(func(p *peer) {
			id := p.begin()
			go actiontest.Mute(p.conn)
			begin(p, id)
			for again(p, id) == nil {
				continue
			}
		})
	}
	none := func(*peer, uint32) {}
	deaf := func(frame []byte) func(net.Conn) {
		return func(conn net.Conn) {
			conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
			for frames := bytes.Repeat(frame, 500); ; {
				if _, err := conn.Write(frames); err != nil {
					return
				}
			}
		}
	}
	ping := append([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0}, make([]byte, 8)...)
	return map[string]func(net.Conn){
		"pings":                 repeat(none, func(p *peer, _ uint32) error { return p.WritePing(false, [8]byte{}) }),
		"pings, not reading":    deaf(ping),
		"settings":              repeat(none, func(p *peer, _ uint32) error { return p.WriteSettings() }),
		"settings, not reading": deaf([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}),
		"credit":                repeat(none, func(p *peer, id uint32) error { return p.WriteWindowUpdate(id, 1<<31-1) }),
		"goaway":                repeat(none, func(p *peer, _ uint32) error { return p.WriteGoAway(1, 0, make([]byte, 9000)) }),
		"informational": repeat(none, func(p *peer, id uint32) error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: p.fields(":status", "103", "x", strings.Repeat("x", 9000))})
		}),
		"no data":         repeat(func(p *peer, id uint32) { p.well(id) }, func(p *peer, id uint32) error { return p.WriteData(id, false, nil) }),
		"no headers":      repeat(func(p *peer, id uint32) { p.WriteHeaders(http2.HeadersFrameParam{StreamID: id}) }, func(p *peer, id uint32) error { return p.WriteContinuation(id, false, nil) }),
		"data of another": repeat(none, func(p *peer, id uint32) error { return p.WriteData(id+2, false, make([]byte, 9000)) }),
		"headers of another": repeat(none, func(p *peer, id uint32) error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: id + 2, EndHeaders: true, BlockFragment: p.fields("x", strings.Repeat("x", 9000))})
		}),
		"a foreign body": repeat(func(p *peer, id uint32) { p.head(id, false, ":status", "200") }, func(p *peer, id uint32) error { return p.WriteDataPadded(id, false, nil, make([]byte, 200)) }),
		"refused":        repeat(none, func(p *peer, id uint32) error { return p.WriteRSTStream(p.request(), http2.ErrCodeRefusedStream) }),
		"sent away": script(func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams})
			p.WriteGoAway(0, 0, nil)
		}),
		"byte by byte": func(conn net.Conn) {
			for beat := time.NewTicker(20 * time.Millisecond); ; <-beat.C {
				if _, err := conn.Write([]byte{0}); err != nil {
					beat.Stop()
					return
				}
			}
		},
	}
}

// An attempt at a server that never stops sending does not succeed, ends in time, and takes at
// most 4 MiB of memory.
func TestGRPCFloods(t *testing.T) {
	const timeout = 150 * time.Millisecond
	overTLS := encrypted(t)
	for name, flood := range floods() {
		for mode, serve := range map[string]func(net.Conn){"Plaintext": flood, "TLS": overTLS(flood)} {
			f := grpcProbe(actiontest.Raw(t, serve), timeout, "", mode)
			done := make(chan action.Outcome, 1)
			began := time.Now()
			base := heap()
			go func() {
				got, _ := f(t.Context())
				done <- got
			}()
			var held []uint64
			for waiting := true; waiting; {
				select {
				case got := <-done:
					waiting = false
					if got.Success {
						t.Errorf("%s: got %+v", name, got)
					}
				default:
					held = append(held, heap())
				}
			}
			if took := time.Since(began); took > timeout+2*time.Second {
				t.Errorf("%s: took %v, timeout %v", name, took, timeout)
			}
			// Memory that the attempt keeps goes on growing. A sample may miss
			// memory that it uses only for a moment.
			if held = held[len(held)/2:]; len(held) > 0 && slices.Min(held) > base+4<<20 {
				t.Errorf("%s: %d bytes in use, %d before", name, slices.Min(held), base)
			}
		}
	}
}

// heap returns the memory in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// inMemory makes a check talk to a server in memory, with the time of the test's bubble.
func inMemory(ctx context.Context, g *check, ready time.Duration, serve func(p *peer)) ending {
	client, server := net.Pipe()
	now := time.Now()
	a := &attempt{check: g, ctx: ctx}
	a.watch.Start(g.timeout)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { actiontest.Mute(server) })
	all.Go(func() {
		serve(&peer{Framer: http2.NewFramer(server, nil), conn: server})
	})
	return a.talk(client, now.Add(ready))
}

func checkOf(timeout time.Duration) *check {
	return &check{address: "a:1", timeout: timeout, question: newQuestion("a:1", false, "", timeout)}
}

// A connection has 20 s to be ready. After that, an answer has the whole timeout.
func TestGRPCReady(t *testing.T) {
	for _, careful := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := checkOf(time.Minute)
			g.careful.Store(careful)
			began := time.Now()
			end := inMemory(t.Context(), g, 20*time.Second, func(p *peer) {
				p.WriteSettings()
				<-time.NewTimer(30 * time.Second).C
				p.WriteRSTStream(1, http2.ErrCodeInternal)
			})
			if end.how != answered || end.outcome.Reason != action.GRPCStatus || time.Since(began) != 30*time.Second {
				t.Errorf("got %+v after %v", end, time.Since(began))
			}
			began = time.Now()
			end = inMemory(t.Context(), g, 20*time.Second, func(*peer) {})
			if end.how != unconnected || time.Since(began) != 20*time.Second {
				t.Errorf("mute: got %+v after %v", end, time.Since(began))
			}
			began = time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			end = inMemory(ctx, g, 20*time.Second, func(p *peer) { p.WriteSettings() })
			cancel()
			if time.Since(began) != 25*time.Second {
				t.Errorf("cut short: got %+v after %v", end, time.Since(began))
			}
		})
	}
}
