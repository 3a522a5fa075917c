// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// casesEnv is how many random answers the test tries, instead of 300. casesFromEnv is the seed
// of the first answer.
const casesEnv, casesFromEnv = "PROBER_GRPC_CASES", "PROBER_GRPC_SEED"

// telling are seeds that have told the two clients apart, or a mutant from the original.
var telling = []uint64{104361, 107726}

// Whatever frames a server answers with, success, failure and reason are the same as with
// grpc-go.
func TestGRPCAgreesAtRandom(t *testing.T) {
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	from := number(casesFromEnv, 1)
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for _, seed := range telling {
			seeds <- seed
		}
		for seed := from; seed < from+number(casesEnv, 300); seed++ {
			seeds <- seed
		}
	}()
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for seed := range seeds {
				s := randomServer(seed)
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { alike(t, s.said(), s.serve, 200*time.Millisecond, "", "") })
			}
		})
	}
	all.Wait()
}

// scripted is a server that sends the same bytes on each connection.
type scripted struct {
	settings []http2.Setting
	answer   []byte
	steps    []string
	hangUp   bool
}

func (s *scripted) said() string { return strings.Join(s.steps, ", ") }

func (s *scripted) serve(conn net.Conn) {
	script(func(p *peer) {
		p.WriteSettings(s.settings...)
		p.request()
		conn.Write(s.answer)
		if s.hangUp {
			conn.Close()
		}
	})(conn)
}

// randomServer returns a server that answers well except for a few things.
func randomServer(seed uint64) *scripted {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 0))}
	s := &scripted{hangUp: r.chance(4)}
	for r.chance(3) {
		s.settings = append(s.settings, http2.Setting{
			ID:  http2.SettingID(1 + r.IntN(7)),
			Val: pick(r, uint32(0), 1, 100, 5000, 16384, 65535, 1<<20, 1<<31-1),
		})
	}
	p := &peer{Framer: http2.NewFramer(&r.bytes, nil)}
	p.AllowIllegalWrites = true
	p.hpack = hpack.NewEncoder(&p.block)
	steps := []step{headersStep, messageStep, trailersStep}
	for r.chance(2) { // adds, removes or replaces a step
		at := r.IntN(len(steps))
		switch r.IntN(6) {
		case 0:
			steps = append(steps[:at:at], steps[at+1:]...)
		case 1:
			steps[at] = pick(r, noise...)
		default:
			steps = append(steps[:at:at], append([]step{pick(r, noise...)}, steps[at:]...)...)
		}
		if len(steps) == 0 {
			break
		}
	}
	if r.chance(12) {
		// Nothing else may come with this step: after it, grpc-go's outcome depends on
		// how fast grpc-go asks again.
		steps = []step{pick(r, unread...)}
	}
	for _, step := range steps {
		s.steps = append(s.steps, step.name)
		step.write(r, p)
	}
	s.answer = r.bytes.Bytes()
	if len(s.answer) > 0 && r.chance(6) {
		at, bit := r.IntN(len(s.answer)), byte(1)<<r.IntN(8)
		s.answer[at] ^= bit
		s.hangUp = true // grpc-go reads the beginning of a frame that never comes to its end
		s.steps = append(s.steps, fmt.Sprintf("byte %d ^ %#x", at, bit))
	}
	return s
}

// random is the source of a server's answer.
type random struct {
	*rand.Rand
	bytes bytes.Buffer
}

// chance reports true once in n times.
func (r *random) chance(n int) bool { return r.IntN(n) == 0 }

// stream returns the request's stream most of the time.
func (r *random) stream() uint32 {
	if r.chance(10) {
		return uint32(r.IntN(4))
	}
	return 1
}

// pick returns an element of a list.
func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

// step is a part of an answer.
type step struct {
	name  string
	write func(r *random, p *peer)
}

// These are the parts of a good answer. Most of the time each is correct.
var (
	headersStep = step{"headers", func(r *random, p *peer) {
		list := []string{":status", "200", "content-type", "application/grpc"}
		if r.chance(4) {
			list[1] = pick(r, "404", "503", "100", "204", "x", "", "12", "1000")
		}
		if r.chance(4) {
			list[3] = pick(r, "text/html", "", "application/grpc+proto", "application/grpc;x", "application/grpcx", "Application/grpc")
		}
		if r.chance(8) {
			list = list[pick(r, 0, 2):pick(r, 2, 4)]
		}
		r.head(p, false, list...)
	}}
	messageStep = step{"message", func(r *random, p *peer) {
		content := pick(r, []byte{8, 1}, []byte{8, 1}, []byte{8, 1}, []byte{8, 2}, []byte{8, 0}, []byte{8, 99}, nil, []byte{8},
			[]byte{8, 2, 8, 1}, []byte{0x7a, 2, 'a', 'b', 8, 1}, []byte{10, 1, 1}, []byte{0, 1}, []byte{0x1b, 8, 9, 0x1c, 8, 1}, make([]byte, 40000))
		data := message(content...)
		if r.chance(6) {
			data[r.IntN(5)] = byte(r.IntN(4))
		}
		for len(data) > 0 {
			n := min(len(data), 16000)
			if r.chance(3) {
				n = 1 + r.IntN(n)
			}
			last := len(data) == n && r.chance(10)
			if r.chance(8) {
				p.WriteDataPadded(r.stream(), last, data[:n], make([]byte, r.IntN(256)))
			} else {
				p.WriteData(r.stream(), last, data[:n])
			}
			data = data[n:]
		}
	}}
	trailersStep = step{"trailers", func(r *random, p *peer) {
		list := []string{"grpc-status", "0"}
		if r.chance(3) {
			list[1] = pick(r, "12", "5", "4", "1", "77", "-1", "x", "", "99999999999", "00")
		}
		if r.chance(4) {
			list = append(list, "grpc-status-details-bin", pick(r, "CAUSBW90aGVy", "CAwSAW0", "CAA", "CA", "*", ""))
		}
		r.head(p, !r.chance(12), list...)
	}}
)

// head writes a block of headers, sometimes with more fields, sometimes in pieces.
func (r *random) head(p *peer, last bool, list ...string) {
	for r.chance(4) {
		list = append(list, pick(r, "grpc-encoding", "x-a", "x-a-bin", "grpc-message", "date", ":path", "X-Upper", "connection", "content-type", "grpc-status", ":status"),
			pick(r, "identity", "gzip", "", "AAA=", "!", "a%20b", "\n", "200", "application/grpc", "0", strings.Repeat("x", 5000)))
	}
	block := p.fields(list...)
	h := http2.HeadersFrameParam{StreamID: r.stream(), EndStream: last, EndHeaders: true, BlockFragment: block}
	if r.chance(10) {
		h.PadLength = uint8(r.IntN(256))
	}
	if r.chance(10) {
		h.Priority = http2.PriorityParam{Weight: 3}
	}
	if r.chance(8) && len(block) > 1 {
		cut := r.IntN(len(block))
		h.EndHeaders, h.BlockFragment = false, block[:cut]
		p.WriteHeaders(h)
		p.WriteContinuation(h.StreamID, !r.chance(12), block[cut:])
		return
	}
	p.WriteHeaders(h)
}

// unread are the ways to say that the server has not looked at the request.
var unread = []step{
	{"refused", func(_ *random, p *peer) { p.WriteRSTStream(1, http2.ErrCodeRefusedStream) }},
	{"goaway 0", func(_ *random, p *peer) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }},
}

// noise are steps that may come between or instead of the parts of a good answer.
var noise = []step{
	headersStep, messageStep, trailersStep,
	{"trailers only", func(r *random, p *peer) {
		r.head(p, true, ":status", pick(r, "200", "200", "404", "500", "103"), "content-type", pick(r, "application/grpc", "text/plain"), "grpc-status", pick(r, "0", "5", "12", "4"))
	}},
	{"foreign body", func(r *random, p *peer) { p.WriteData(r.stream(), r.chance(2), make([]byte, r.IntN(3000))) }},
	{"ping", func(r *random, p *peer) { p.WritePing(r.chance(3), [8]byte{byte(r.IntN(256))}) }},
	{"settings", func(r *random, p *peer) {
		p.WriteSettings(http2.Setting{ID: http2.SettingID(1 + r.IntN(7)), Val: pick(r, uint32(0), 1, 100, 16384, 65535, 1<<20, 1<<31)})
	}},
	{"settings ack", func(_ *random, p *peer) { p.WriteSettingsAck() }},
	{"window", func(r *random, p *peer) { p.WriteWindowUpdate(r.stream(), pick(r, uint32(1), 1000, 1<<31-1, 0)) }},
	{"priority", func(r *random, p *peer) { p.WritePriority(r.stream(), http2.PriorityParam{Weight: 9}) }},
	{"reset", func(r *random, p *peer) {
		p.WriteRSTStream(r.stream(), pick(r, http2.ErrCodeNo, http2.ErrCodeInternal, http2.ErrCodeCancel, http2.ErrCodeEnhanceYourCalm, 99))
	}},
	{"goaway", func(r *random, p *peer) {
		p.WriteGoAway(pick(r, uint32(1), 1<<31-1, 2), http2.ErrCode(r.IntN(15)), []byte("bye"))
	}},
	{"push", func(r *random, p *peer) {
		p.WritePushPromise(http2.PushPromiseParam{StreamID: r.stream(), PromiseID: 2, EndHeaders: true})
	}},
	{"unknown frame", func(r *random, p *peer) {
		p.WriteRawFrame(http2.FrameType(10+r.IntN(200)), http2.Flags(r.IntN(256)), r.stream(), []byte("what"))
	}},
	{"bad frame", func(r *random, p *peer) {
		p.WriteRawFrame(http2.FrameType(r.IntN(10)), http2.Flags(r.IntN(256)), r.stream(), make([]byte, r.IntN(20)))
	}},
	{"continuation", func(r *random, p *peer) { p.WriteContinuation(r.stream(), true, nil) }},
	{"garbage", func(r *random, _ *peer) { r.bytes.WriteString("garbage garbage"[:1+r.IntN(14)]) }},
}
