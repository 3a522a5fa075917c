// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"iter"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/prober-exporter/prober_exporter/config"
)

// answer is how a server answers that a test has a script for.
type answer struct {
	serve   func(p *peer)
	service string
	late    bool // the timeout is what ends it
}

func targetOf(host string) *config.Target { return &config.Target{Host: host} }

func grpcOf(port int, timeout time.Duration, service, mode string) *config.Probe {
	return &config.Probe{GRPC: &config.GRPC{Port: port, Service: service, Mode: mode}, Timeout: timeout}
}

var (
	servingMessage = message(8, 1)
	okTrailers     = []string{"grpc-status", "0"}
)

// answers yields the answers by name.
func answers() iter.Seq2[string, answer] {
	return func(yield func(string, answer) bool) {
		for _, set := range []map[string]answer{headerAnswers(), dataAnswers(), frameAnswers()} {
			for name, a := range set {
				if !yield(name, a) {
					return
				}
			}
		}
	}
}

// trailersOnly is an answer of one block of headers.
func trailersOnly(list ...string) answer {
	return answer{serve: func(p *peer) { p.head(p.begin(), true, list...) }}
}

// trailers is an answer that is well but for its end.
func trailers(list ...string) answer {
	return answer{serve: func(p *peer) {
		id := p.begin()
		p.well(id)
		p.WriteData(id, false, servingMessage)
		p.head(id, true, list...)
	}}
}

// headed is an answer that begins with these headers.
func headed(list ...string) answer {
	return answer{serve: func(p *peer) {
		id := p.begin()
		p.head(id, false, list...)
		p.WriteData(id, false, servingMessage)
		p.head(id, true, okTrailers...)
	}}
}

func headerAnswers() map[string]answer {
	const ct = "content-type"
	long := strings.Repeat("x", 3000)
	set := map[string]answer{
		"ok":                 headed(":status", "200", ct, "application/grpc"),
		"ok, proto":          headed(":status", "200", ct, "application/grpc+proto"),
		"ok, charset":        headed(":status", "200", ct, "application/grpc;charset=utf-8"),
		"ok, no status":      headed(ct, "application/grpc"),
		"ok, status 404":     headed(":status", "404", ct, "application/grpc"),
		"ok, more headers":   headed(":status", "200", ct, "application/grpc", "server", "x y", "date", long, "x-a-bin", "AAA="),
		"ok, grpc-web":       headed(":status", "200", ct, "application/grpc-web"),
		"empty content type": headed(":status", "200", ct, ""),
		"bad binary":         headed(":status", "200", ct, "application/grpc", "x-bin", "!!"),
		"bad name":           headed(":status", "200", ct, "application/grpc", "X-A", "b"),
		"bad value":          headed(":status", "200", ct, "application/grpc", "x-a", "b\nc"),
		"bad pseudo":         headed(":status", "200", ":what", "x", ct, "application/grpc"),
		"two pseudo":         headed(":status", "200", ":status", "200", ct, "application/grpc"),
		"mixed pseudo":       headed(":status", "200", ":method", "GET", ct, "application/grpc"),
		"late pseudo":        headed(ct, "application/grpc", ":status", "200"),
		"no name":            headed(":status", "200", ct, "application/grpc", "", "b"),
		"too long":           headed(append([]string{":status", "200", ct, "application/grpc"}, strings.Split(strings.Repeat("x-a,"+long+",", 22)+"x-b,c", ",")...)...),
		"early grpc-status":  headed(":status", "200", ct, "application/grpc", "grpc-status", "5", "grpc-message", "early"),
		"HTML":               headed(":status", "200", ct, "text/html"),
		"no content type":    headed(":status", "200"),
		"nothing":            headed(),
		"informational": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "100")
			p.head(id, false, ":status", "103")
			p.well(id)
			p.WriteData(id, false, servingMessage)
			p.head(id, true, okTrailers...)
		}},
		"informational end":     trailersOnly(":status", "103"),
		"strange HTTP status":   trailersOnly(":status", "abc"),
		"no HTTP status":        trailersOnly(ct, "text/html"),
		"trailers only ok":      trailersOnly(":status", "200", ct, "application/grpc", "grpc-status", "0"),
		"no grpc-status":        trailers("x", "y"),
		"empty grpc-status":     trailers("grpc-status", ""),
		"bad grpc-status":       trailers("grpc-status", "x"),
		"huge grpc-status":      trailers("grpc-status", "99999999999"),
		"unknown grpc-status":   trailers("grpc-status", "77", "grpc-message", "m"),
		"negative grpc-status":  trailers("grpc-status", "-1"),
		"two grpc-status":       trailers("grpc-status", "5", "grpc-status", "0"),
		"ok with message":       trailers("grpc-status", "0", "grpc-message", "but"),
		"encoded message":       trailers("grpc-status", "13", "grpc-message", "a%20b%c3%a9%zz%4"),
		"unimplemented":         trailersOnly(":status", "200", ct, "application/grpc", "grpc-status", "12", "grpc-message", "no%0Asuch"),
		"server's deadline":     trailersOnly(":status", "200", ct, "application/grpc", "grpc-status", "4", "grpc-message", "late"),
		"details":               trailers("grpc-status", "5", "grpc-message", "m", "grpc-status-details-bin", "CAUSBW90aGVy"),
		"details that are none": trailers("grpc-status", "5", "grpc-message", "m", "grpc-status-details-bin", "CA"),
		"two details":           trailers("grpc-status", "5", "grpc-message", "m", "grpc-status-details-bin", "CAUSBW90aGVy", "grpc-status-details-bin", "CAUSBW90aGVy"),
		"bad details":           trailers("grpc-status", "5", "grpc-status-details-bin", "*"),
		"trailers with no grpc": trailers(ct, "text/html", "grpc-status", "0"),
		"headers in the middle": {serve: func(p *peer) { id := p.begin(); p.well(id); p.head(id, false, "a", "b") }},
		"HTML, body": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "503", ct, "text/html")
			p.WriteData(id, false, []byte("<b>"))
			p.WriteData(id, true, []byte("\x00é</b>"))
		}},
		"HTML, long body": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "200", ct, "text/html")
			p.WriteData(id, false, []byte(long))
		}},
		"HTML, trailers": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "404", ct, "text/html")
			p.head(id, false, "a", "b")
			p.WriteData(id, false, []byte("no"))
			p.head(id, true, "a", "b")
		}},
		"HTML, never ends": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "404", ct, "text/html")
			p.WriteData(id, false, []byte("no"))
		}, late: true},
		"HTML, hangs up":      {serve: func(p *peer) { id := p.begin(); p.head(id, false, ":status", "404", ct, "text/html"); p.conn.Close() }},
		"headers and no more": {serve: func(p *peer) { p.well(p.begin()) }, late: true},
		"CONTINUATION": {serve: func(p *peer) {
			id := p.begin()
			b := p.fields(":status", "200", ct, "application/grpc")
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:3]})
			p.WriteContinuation(id, true, b[3:])
			p.WriteData(id, false, servingMessage)
			p.head(id, true, okTrailers...)
		}},
		"CONTINUATION broken": {serve: func(p *peer) {
			id := p.begin()
			b := p.fields(":status", "200", ct, "application/grpc")
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:3]})
			p.WriteData(id, false, servingMessage)
		}},
		"endless CONTINUATION": {serve: func(p *peer) {
			id := p.begin()
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			for p.WriteContinuation(id, false, p.fields("x-a", long)) == nil {
				continue
			}
		}},
		"padding and priority": {serve: func(p *peer) {
			id := p.begin()
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, PadLength: 9, Priority: http2.PriorityParam{Weight: 3}, BlockFragment: p.fields(":status", "200", ct, "application/grpc")})
			p.WriteDataPadded(id, false, servingMessage, make([]byte, 255))
			p.head(id, true, okTrailers...)
		}},
		"broken hpack": {serve: func(p *peer) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: p.begin(), EndHeaders: true, BlockFragment: []byte{0xff, 0xff, 0xff}})
		}},
		"truncated hpack": {serve: func(p *peer) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: p.begin(), EndHeaders: true, BlockFragment: []byte{0x40, 0x0a, 'x'}})
		}},
		"too much padding": {serve: func(p *peer) {
			p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, p.begin(), []byte{9, 0})
		}},
		"headers on no stream": {serve: func(p *peer) { p.begin(); p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, nil) }},
		"headers of no question": {serve: func(p *peer) {
			id := p.begin()
			p.head(2, false, ":status", "200")
			p.head(7, true, "grpc-status", "5")
			p.well(id)
			p.WriteData(id, false, servingMessage)
			p.head(id, true, okTrailers...)
		}},
	}
	for _, code := range []string{"0", "99", "200", "204", "301", "400", "401", "403", "404", "418", "429", "500", "502", "503", "504", "1000"} {
		set["HTTP status "+code] = trailersOnly(":status", code, ct, "text/plain")
		set["bare HTTP status "+code] = trailersOnly(":status", code)
	}
	for code := range strings.FieldsSeq("1 2 3 5 6 7 8 9 10 11 13 14 15 16 17") {
		set["grpc-status "+code] = trailersOnly(":status", "200", ct, "application/grpc", "grpc-status", code, "grpc-message", "m")
	}
	return set
}
