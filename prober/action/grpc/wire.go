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
	// version is the version of grpc-go whose behaviour this package has; servers see it.
	version = "1.85.0"

	// maxMessage and maxHeader bound an answer, which should have two bytes but comes from an
	// untrusted server. grpc-go's own bounds are 4 and 16 MiB.
	maxMessage = 32 << 10
	maxHeader  = 64 << 10

	// window bounds what a server may send in all.
	window = 64 << 10

	// peerWindow and peerFrame are how much a peer accepts by default.
	peerWindow = 1<<16 - 1
	peerFrame  = 1 << 14
)

// question is what the client sends on every connection, encoded once.
type question struct {
	authority string
	fields    []hpack.HeaderField
	listSize  uint32 // of the fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts
	message   []byte // with its prefix

	// opening is everything that the client sends: the preface and, after it, the request.
	// RFC 9113 lets a client send both before the server's preface.
	opening []byte
	preface int // length of the preface in opening

	// ahead says that the request fits into a server's default limits.
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
	// A write to memory does not fail.
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

// block returns the header block of a request. The block adds nothing to the server's table, so
// it is valid on every connection; resized announces a table of size 0, which is due once the
// server has changed the size of that table.
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

// writeHeaders writes a block, in as many frames as needed.
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

// messagePrefix returns the prefix of an uncompressed message of n bytes.
func messagePrefix(n int) []byte {
	return []byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// timeoutField returns the header that says how long the client will wait: in milliseconds,
// rounded up, with at most eight digits.
func timeoutField(timeout time.Duration) hpack.HeaderField {
	n := min((timeout+time.Millisecond-1)/time.Millisecond, 99_999_999)
	return hpack.HeaderField{Name: "grpc-timeout", Value: strconv.FormatInt(int64(n), 10) + "m"}
}

// authorityOf returns the address as in a URL: forbidden characters, such as in the zone of an
// IPv6 address, are escaped, and an empty host becomes localhost.
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
