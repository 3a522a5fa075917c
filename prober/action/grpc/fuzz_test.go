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

	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// heardBytes returns the ending of a call that gets these bytes from a server, with a glance or
// without.
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

// Whatever a server says, the call ends without a panic, and the glance agrees with the close
// look.
func FuzzGRPCAnswer(f *testing.F) {
	for seed := range uint64(300) {
		s := randomServer(seed)
		var b bytes.Buffer
		p := http2.NewFramer(&b, nil)
		p.WriteSettings(s.settings...)
		p.WriteSettingsAck()
		b.Write(s.answer)
		f.Add(b.Bytes())
	}
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, second := heardBytes(data, true), heardBytes(data, false)
		if first.how != second.how || first.outcome != second.outcome || (first.err == nil) != (second.err == nil) {
			t.Errorf("at a glance %+v, closely %+v", first, second)
		}
	})
}
