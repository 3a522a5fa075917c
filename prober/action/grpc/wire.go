// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

const (
	// version is that of the grpc-go whose behaviour this is; servers are told it.
	version = "1.85.0"

	// maxMessage and maxHeader are how much an answer may have: it is two
	// bytes, but who answers is not to be trusted. grpc's own bounds are 4 and 16 MiB.
	maxMessage = 32 << 10
	maxHeader  = 64 << 10

	// window is how much a server may send in all.
	window = 64 << 10

	// peerWindow and peerFrame are how much a peer takes that has not said otherwise.
	peerWindow = 1<<16 - 1
	peerFrame  = 1 << 14
)

// question is what a connection begins with. It is the same each time, so it is put
// into bytes once.
type question struct {
	authority string
	fields    []hpack.HeaderField
	listSize  uint32 // of the fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts
	message   []byte // with its prefix

	// opening is all that the client has to say: the preface and, after it, the
	// request. RFC 9113 lets a client send it before it has heard of the server.
	opening []byte
	preface int // how much of it is the preface

	// ahead says that the request fits into what a server takes unasked.
	ahead bool
}

// newQuestion returns the question for a service's health.
func newQuestion(address string, encrypted bool, service string, timeout time.Duration) question {
	q := question{authority: authorityOf(address)}
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	q.fields = []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: scheme},
		{Name: ":path", Value: "/grpc.health.v1.Health/Check"},
		{Name: ":authority", Value: q.authority},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: action.UserAgent + " grpc-go/" + version},
		{Name: "te", Value: "trailers"},
		timeoutField(timeout),
	}
	for _, f := range q.fields {
		q.listSize += f.Size()
	}

	var request []byte
	if service != "" {
		request = protowire.AppendTag(request, 1, protowire.BytesType)
		request = protowire.AppendString(request, service)
	}
	q.message = append(messagePrefix(len(request)), request...)

	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&b, nil)
	// Into memory: nothing can go wrong.
	_ = framer.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: window},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeader},
	)
	_ = framer.WriteWindowUpdate(0, window-peerWindow)
	q.preface = b.Len()
	if len(q.message) <= peerFrame {
		writeHeaders(framer, 1, q.block(false))
		_ = framer.WriteData(1, true, q.message)
		q.ahead = true
	}
	q.opening = b.Bytes()
	return q
}

// block is the header of a request. Nothing of it goes into
// the server's table, so it is good wherever it comes; resized says so explicitly, as
// is due once the server has changed the size of that table.
func (q *question) block(resized bool) []byte {
	var b bytes.Buffer
	encoder := hpack.NewEncoder(&b)
	encoder.SetMaxDynamicTableSize(0)
	for _, f := range q.fields {
		_ = encoder.WriteField(f)
	}
	if !resized {
		b.Next(1) // the first byte is the new size
	}
	return b.Bytes()
}

// writeHeaders writes a block, in as many frames as it takes.
func writeHeaders(framer *http2.Framer, stream uint32, block []byte) {
	first := block[:min(len(block), peerFrame)]
	block = block[len(first):]
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(block) == 0})
	for len(block) > 0 {
		next := block[:min(len(block), peerFrame)]
		block = block[len(next):]
		_ = framer.WriteContinuation(stream, len(block) == 0, next)
	}
}

// messagePrefix is what comes before an uncompressed message of n bytes.
func messagePrefix(n int) []byte {
	return []byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// timeoutField tells the server how long the client will wait: in milliseconds, rounded up,
// and in eight digits at most.
func timeoutField(timeout time.Duration) hpack.HeaderField {
	n := min((timeout+time.Millisecond-1)/time.Millisecond, 99_999_999)
	return hpack.HeaderField{Name: "grpc-timeout", Value: strconv.FormatInt(int64(n), 10) + "m"}
}

// authorityOf is the address as a URL has it: what may not stand there is escaped, such
// as the zone of an IPv6 address, and no host is localhost.
func authorityOf(address string) string {
	const plain = "-_.~!$&'()*+,;=:[]@"
	var b strings.Builder
	if strings.HasPrefix(address, ":") {
		b.WriteString("localhost")
	}
	for _, c := range []byte(address) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(plain, c) >= 0:
			b.WriteByte(c)
		default:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
