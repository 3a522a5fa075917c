// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// longForeign is how much a server that does not speak gRPC may send before the call ends.
const longForeign = 1024

// stream is one request and its answer: headers, one message, trailers. Like grpc-go, a stream
// accepts some irregular answers, such as messages in pieces; any other ends the call.
type stream struct {
	*check
	id     uint32
	unsent []byte // of the request
	open   bool   // the end of the request has not been sent
	window int64

	headed   bool   // the headers have come
	encoding string // of the messages
	foreign  *action.Outcome
	body     int // how much of foreign's body has come

	received uint32 // how much of the window the server has used
	bytes    []byte // of messages
	got      bool   // a message has come
	value    int32  // the health

	unread  bool // the server has not looked at the request
	ended   bool
	outcome action.Outcome
}

// end ends the stream, unless the messages so far end it in another way.
func (s *stream) end(outcome action.Outcome) {
	if !s.ended {
		s.messages()
	}
	if !s.ended {
		s.ended, s.outcome = true, outcome
	}
}

// fail ends the stream with a failure.
func (s *stream) fail(format string, args ...any) { s.end(failedf(format, args...)) }

// reset acts on a RST_STREAM. A server cancels a call whose time is up, because the request says
// how long the call may take.
func (s *stream) reset(code http2.ErrCode, timeIsUp bool) {
	if code == http2.ErrCodeRefusedStream {
		s.refuse()
		return
	}
	if code == http2.ErrCodeCancel && timeIsUp {
		s.end(s.late())
		return
	}
	s.fail("the server reset the stream: %v", code)
}

// refuse ends the stream because the server has not looked at the request.
func (s *stream) refuse() {
	if s.messages(); !s.ended {
		s.unread = true
		s.fail("the server refused the request")
	}
}

// headers acts on a block of headers: the first, or the trailers.
func (s *stream) headers(frame *http2.MetaHeadersFrame) {
	last := frame.StreamEnded()
	switch {
	case s.headed && !last:
		s.fail("headers in the middle of an answer")
		return
	case frame.Truncated:
		s.fail("the headers are longer than %d bytes", maxHeader)
		return
	case s.foreign != nil:
		if last {
			s.end(*s.foreign)
		}
		return
	}

	speaks, malformed := s.headed, ""
	code, message, encoding, http := codeUnknown, "", "", ""
	var details []string
	for _, f := range frame.Fields {
		switch f.Name {
		case "content-type":
			speaks = speaks || isContent(f.Value)
		case "grpc-encoding":
			encoding = f.Value
		case "grpc-status":
			n, err := strconv.ParseInt(f.Value, 10, 32)
			if err != nil {
				s.fail("grpc-status is no number: %q", f.Value)
				return
			}
			code = rpcCode(uint32(n))
		case "grpc-message":
			message = f.Value
		case ":status":
			http = f.Value
		default:
			if !strings.HasSuffix(f.Name, "-bin") {
				continue
			}
			value, err := decodeBinary(f.Value)
			if err != nil {
				malformed = f.Name
			} else if f.Name == "grpc-status-details-bin" {
				details = append(details, value)
			}
		}
	}
	switch {
	case !speaks:
		s.speaksOther(http, last)
	case malformed != "":
		s.fail("the header %s is malformed", malformed)
	case last:
		s.trailers(code, message, details)
	default:
		s.headed, s.encoding = true, encoding
		s.messages()
	}
}

// trailers acts on the end of an answer. Details with a google.rpc.Status of another code
// contradict the status.
func (s *stream) trailers(code rpcCode, message string, details []string) {
	if len(details) == 1 {
		var detailed int32
		if parseFirst([]byte(details[0]), &detailed, 2) && detailed != int32(code) {
			s.fail("grpc-status is %v, the details say %v", code, rpcCode(uint32(detailed)))
			return
		}
	}
	s.messages()
	switch {
	case s.ended:
	case len(s.bytes) > 0:
		s.fail("the answer ended in the middle of a message")
	case code != codeOK:
		s.end(s.failedWith(code, message))
	case !s.got:
		s.fail("the answer has no message")
	default:
		s.end(serving(s.value))
	}
}

// speaksOther acts on the headers of a server that does not speak gRPC.
func (s *stream) speaksOther(status string, last bool) {
	number, err := strconv.Atoi(status)
	switch {
	case err != nil && status != "":
		s.fail("the HTTP status is no number: %q", status)
		return
	case number >= 100 && number < 200 && last:
		s.fail("the answer ended with HTTP status %d", number)
		return
	case number >= 100 && number < 200:
		return
	}
	code := codeUnknown
	if number == 404 {
		code = codeUnimplemented
	}
	outcome := s.failedWith(code, "the server does not speak grpc: HTTP status "+strconv.Quote(status))
	if last {
		s.end(outcome)
		return
	}
	s.foreign = &outcome
}

// data acts on a DATA frame.
func (s *stream) data(frame *http2.DataFrame) {
	data := frame.Data()
	s.received += frame.Length
	switch {
	case s.received > window:
		s.fail("the answer is longer than %d bytes", window)
	case s.foreign != nil:
		if s.body += len(data); s.body >= longForeign || frame.StreamEnded() {
			s.end(*s.foreign)
		}
	default:
		s.bytes = append(s.bytes, data...)
		if s.headed {
			s.messages()
		}
		if frame.StreamEnded() {
			s.fail("the answer ended without trailers")
		}
	}
}

// messages reads the messages received so far.
func (s *stream) messages() {
	for len(s.bytes) >= messageHeader && !s.ended {
		size := binary.BigEndian.Uint32(s.bytes[1:])
		if size > maxMessage {
			s.ended, s.outcome = true, failedf("a message has %d bytes, more than %d", size, maxMessage)
			return
		}
		whole := messageHeader + int(size)
		if len(s.bytes) < whole {
			return
		}
		if problem := s.message(s.bytes[0], s.bytes[messageHeader:whole]); problem != "" {
			s.ended, s.outcome = true, failedf("%s", problem)
			return
		}
		s.bytes = s.bytes[whole:]
	}
}

// message reads one message. It returns what is wrong with the message, or "".
func (s *stream) message(format byte, message []byte) (problem string) {
	s.value = 0
	switch {
	case format == 1:
		return fmt.Sprintf("the message is compressed, grpc-encoding is %q", s.encoding)
	case format > 1:
		return fmt.Sprintf("the message has the unknown format %d", format)
	case !parseServing(message, &s.value):
		return "the message is malformed"
	case s.got:
		return "the answer has several messages"
	}
	s.got = true
	return ""
}

// decodeBinary decodes the value of a header whose name ends in -bin.
func decodeBinary(value string) (string, error) {
	encoding := base64.RawStdEncoding
	if len(value)%4 == 0 {
		encoding = base64.StdEncoding
	}
	b, err := encoding.DecodeString(value)
	return string(b), err
}

// isContent reports whether a content type is one of gRPC.
func isContent(value string) bool {
	rest, ok := strings.CutPrefix(value, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
