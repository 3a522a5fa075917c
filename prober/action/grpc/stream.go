// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// maxForeign is how much of the body of a server that does not speak grpc is quoted.
const maxForeign = 1024

// stream is one request and what comes of it. It is in two layers, as in grpc-go:
// what the frames say (headers, data, reset, close), and what becomes of the bytes of
// the answer (advance), which waits for the headers first.
type stream struct {
	*call
	id     uint32
	unsent []byte // of the request
	open   bool   // its end has not been sent
	window int64

	headed      bool   // the headers have come
	encoding    string // of the messages
	foreign     *rpcError
	body        []byte // of foreign
	closed      bool
	unprocessed bool

	// fault is why the stream was closed, if it was not by its end; status is what the
	// server said at its end.
	fault, status *rpcError

	bytes []byte // of messages
	taken int    // how many of them are credited
	flow  inFlow

	wanted bool  // the rest of a message has been asked for
	got    bool  // a message
	value  int32 // of the health
	end    ending
}

func newStream(c *call, id uint32) *stream {
	return &stream{call: c, id: id, unsent: c.message, open: !c.ahead, window: c.window}
}

// send sends of the request what the server takes.
func (s *stream) send() {
	for s.open && !s.closed {
		n := min(int64(len(s.unsent)), peerFrame, s.window, s.quota)
		if n <= 0 {
			return
		}
		s.open = n < int64(len(s.unsent))
		_ = s.out.WriteData(s.id, !s.open, s.unsent[:n])
		s.unsent = s.unsent[n:]
		s.window -= n
		s.quota -= n
	}
}

// close ends the stream: with a fault, or else with the status of its end.
func (s *stream) close(status, fault *rpcError) {
	if !s.closed {
		s.closed, s.status, s.fault = true, status, fault
	}
}

// reset acts on a RST_STREAM.
func (s *stream) reset(e http2.ErrCode) {
	s.unprocessed = e == http2.ErrCodeRefusedStream
	code := codeOfHTTP2(e)
	if code == codeCanceled && s.watch.Age() >= s.timeout {
		code = codeDeadlineExceeded // the server's: the request says how long it may take
	}
	s.close(nil, statusf(code, "stream terminated by RST_STREAM with error code: %v", e))
}

// headers acts on a block of headers: the first, or that at the end.
func (s *stream) headers(frame *http2.MetaHeadersFrame) {
	last := frame.StreamEnded()
	switch {
	case s.headed && !last:
		s.close(nil, statusf(codeInternal, "a HEADERS frame cannot appear in the middle of a stream"))
		return
	case frame.Truncated:
		s.close(nil, statusf(codeInternal, "peer header list size exceeded limit"))
		return
	case s.foreign != nil:
		if last {
			s.closeForeign()
		}
		return
	}

	speaks := s.headed
	content := "malformed header: missing HTTP content-type"
	status := rpcError{code: codeUnknown}
	var fault, encoding, http string
	var details []string
	for _, f := range frame.Fields {
		switch f.Name {
		case "content-type":
			if isContent(f.Value) {
				content, speaks = "", true
			} else {
				content = fmt.Sprintf("transport: received unexpected content-type %q", f.Value)
			}
		case "grpc-encoding":
			encoding = f.Value
		case "grpc-status":
			code, err := strconv.ParseInt(f.Value, 10, 32)
			if err != nil {
				s.close(nil, statusf(codeUnknown, "transport: malformed grpc-status: %v", err))
				return
			}
			status.code = rpcCode(uint32(code))
		case "grpc-message":
			status.message = decodeMessage(f.Value)
		case ":status":
			http = f.Value
		default:
			if !strings.HasSuffix(f.Name, "-bin") {
				continue
			}
			value, err := decodeBinary(f.Value)
			if err != nil {
				fault = fmt.Sprintf("transport: malformed %s: %v", f.Name, err)
			} else if f.Name == "grpc-status-details-bin" {
				details = append(details, value)
			}
		}
	}
	switch {
	case !speaks:
		s.speaksOther(http, content, last)
	case fault != "":
		s.close(nil, &rpcError{codeInternal, fault})
	case last:
		status = detailed(status, details)
		s.close(&status, nil)
	default:
		s.headed, s.encoding = true, encoding
	}
}

// speaksOther acts on the headers of a server that does not speak grpc: what it says
// further is quoted.
func (s *stream) speaksOther(status, content string, last bool) {
	code, text := codeInternal, "malformed header: missing HTTP status"
	if status != "" {
		number, err := strconv.Atoi(status)
		switch {
		case err != nil:
			s.close(nil, statusf(codeInternal, "transport: malformed http-status: %v", err))
			return
		case number >= 100 && number < 200:
			if last {
				s.close(nil, statusf(codeInternal, "protocol error: informational header with status code %d must not have END_STREAM set", number))
			}
			return
		}
		code = codeOfHTTP(number)
		text = fmt.Sprintf("unexpected HTTP status code received from server: %d (%s)", number, http.StatusText(number))
	}
	if content != "" {
		text += "; " + content
	}
	if last {
		s.close(nil, &rpcError{code, text})
		return
	}
	s.foreign = &rpcError{code, text}
}

// closeForeign ends the stream of a server that does not speak grpc.
func (s *stream) closeForeign() {
	s.close(nil, statusf(s.foreign.code, "%s\ndata: %q", s.foreign.message, s.body))
}

// data acts on a frame of data.
func (s *stream) data(frame *http2.DataFrame) {
	data := frame.Data()
	if !s.flow.add(frame.Length) {
		s.close(statusf(codeInternal, "received %d-bytes data exceeding the limit %d bytes", s.flow.received(), window), nil)
		return
	}
	if s.foreign != nil {
		s.body = append(s.body, data[:min(len(data), maxForeign-len(s.body))]...)
		if len(s.body) == maxForeign || frame.StreamEnded() {
			s.closeForeign()
			return
		}
		s.credit(frame.Length)
		return
	}
	s.credit(frame.Length - uint32(len(data))) // the padding
	s.bytes = append(s.bytes, data...)
	if frame.StreamEnded() {
		s.close(statusf(codeInternal, "server closed the stream without sending trailers"), nil)
	}
}

// credit lets the server send as much again as has been used, some of the time.
func (s *stream) credit(n uint32) {
	if update := s.flow.take(n); update > 0 && !s.closed {
		_ = s.out.WriteWindowUpdate(s.id, update)
	}
}

// take credits the first n of the bytes, as far as they have come.
func (s *stream) take(n int) {
	if n = min(n, len(s.bytes)); n > s.taken {
		s.credit(uint32(n - s.taken))
		s.taken = n
	}
}

// advance makes of the bytes what can be made of them. It returns true when it is
// known how the call ended: then end says it.
func (s *stream) advance() bool {
	if !s.headed && !s.closed {
		return false
	}
	for {
		s.take(messageHeader)
		if len(s.bytes) < messageHeader {
			return s.finish()
		}
		size := int64(binary.BigEndian.Uint32(s.bytes[1:]))
		if size > maxMessage {
			return s.fail(statusf(codeResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, maxMessage))
		}
		if !s.wanted {
			s.wanted = true
			if update := s.flow.want(uint32(size)); update > 0 && !s.closed {
				_ = s.out.WriteWindowUpdate(s.id, update)
			}
		}
		whole := messageHeader + int(size)
		s.take(whole)
		if len(s.bytes) < whole {
			return s.finish()
		}
		if s.message(s.bytes[0], s.bytes[messageHeader:whole]) {
			return true
		}
		s.bytes = append(s.bytes[:0], s.bytes[whole:]...)
		s.taken -= whole
		s.wanted = false
	}
}

// message reads one message. It returns true if that is the end of the call.
func (s *stream) message(format byte, message []byte) bool {
	switch {
	case format == 1 && (s.encoding == "" || s.encoding == "identity"):
		return s.fail(statusf(codeInternal, "grpc: compressed flag set with identity or empty encoding"))
	case format == 1:
		return s.fail(statusf(codeInternal, "grpc: Decompressor is not installed for grpc-encoding %q", s.encoding))
	case format > 1:
		return s.fail(statusf(codeInternal, "grpc: received unexpected payload format %d", format))
	}
	s.value = 0
	if !parseServing(message, &s.value) {
		return s.fail(statusf(codeInternal, "grpc: failed to unmarshal the received message: %s", errMessage))
	}
	if s.got {
		return s.fail(statusf(codeInternal, "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message"))
	}
	s.got = true
	return false
}

// finish ends the call if there is nothing more to come; there may be a part of a
// message.
func (s *stream) finish() bool {
	switch {
	case !s.closed:
		return false
	case s.fault != nil:
		if s.unprocessed && !s.got && !s.again {
			return false // it is made again
		}
		return s.fail(s.fault)
	case len(s.bytes) > 0:
		return s.fail(statusf(codeInternal, "unexpected EOF"))
	case s.status.code != codeOK:
		return s.fail(s.status)
	case !s.got:
		return s.fail(statusf(codeInternal, "cardinality violation: received no response message from non-server-streaming RPC"))
	}
	s.end = ending{how: answered, outcome: serving(s.value)}
	return true
}

func (s *stream) fail(status *rpcError) bool {
	s.end = ending{how: failedCall, status: *status}
	return true
}
