// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// spoken is what a server says after its SETTINGS.
func spoken(say func(p *peer)) []byte {
	var b bytes.Buffer
	p := &peer{Framer: http2.NewFramer(&b, nil)}
	p.AllowIllegalWrites = true
	p.hpack = hpack.NewEncoder(&p.block)
	p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14})
	p.WriteSettingsAck()
	say(p)
	return b.Bytes()
}

// heardBytes is what comes of bytes from a server, after a glance or without.
func heardBytes(data []byte, glance bool) ending {
	g := checkOf(10 * time.Second)
	client, server := net.Pipe()
	defer client.Close()
	go io.Copy(io.Discard, server)
	go func() {
		server.Write(data)
		server.Close()
	}()
	a := &attempt{check: g, ctx: context.Background(), socket: client}
	a.watch.Start(g.timeout)
	a.timed = dial.TimedConn{Conn: client, Watch: &a.watch}
	s := sights.Get().(*sight)
	defer s.release()
	if glance {
		if status, ok := s.glance(client); ok {
			return ending{how: answered, outcome: serving(status)}
		}
	}
	return newCall(a, client, s, true).run()
}

// Whatever a server says, it ends well or badly, not in a panic, and what is seen at
// a glance is what is seen when one looks closely.
func FuzzGRPCAnswer(f *testing.F) {
	well := func(p *peer, more ...string) {
		p.well(1, more...)
		p.WriteData(1, false, servingMessage)
		p.head(1, true, okTrailers...)
	}
	for _, say := range []func(p *peer){
		func(p *peer) { well(p) },
		func(p *peer) {
			p.WritePing(false, [8]byte{1})
			p.WriteWindowUpdate(0, 7)
			well(p, "server", "x", "x-bin", "AA")
		},
		func(p *peer) { well(p, "grpc-encoding", "gzip") },
		func(p *peer) { p.well(1); p.WriteData(1, false, message(8, 2)); p.head(1, true, "grpc-status", "0") },
		func(p *peer) { p.well(1); p.WriteData(1, false, message(8)); p.head(1, true, "grpc-status", "0") },
		func(p *peer) {
			p.head(1, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "5", "grpc-status-details-bin", "CAUSBW90aGVy")
		},
		func(p *peer) {
			p.head(1, false, ":status", "404", "content-type", "text/html")
			p.WriteData(1, true, []byte("no"))
		},
		func(p *peer) {
			p.WriteRSTStream(1, http2.ErrCodeRefusedStream)
			p.WriteRSTStream(3, http2.ErrCodeCancel)
		},
		func(p *peer) { p.WriteGoAway(1, http2.ErrCodeNo, []byte("bye")) },
		func(p *peer) { p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}); well(p) },
		func(p *peer) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			p.WriteContinuation(1, true, p.fields(":status", "200"))
		},
		func(p *peer) {
			p.well(1)
			p.WriteDataPadded(1, false, servingMessage, make([]byte, 9))
			p.head(1, true, okTrailers...)
		},
		func(p *peer) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: []byte{0x3f, 0xe1, 0x1f, 0x88}})
		},
	} {
		f.Add(spoken(say))
	}
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte{0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		first, second := heardBytes(data, true), heardBytes(data, false)
		if first.how != second.how || first.outcome != second.outcome ||
			(first.err == nil) != (second.err == nil) || first.err != nil && first.err.Error() != second.err.Error() {
			t.Errorf("at a glance %+v, closely %+v", first, second)
		}
	})
}
