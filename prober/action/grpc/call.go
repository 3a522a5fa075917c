// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// call is a connection that is looked at closely: all of HTTP/2, with the texts and
// the decisions of grpc-go.
type call struct {
	*attempt
	conn   io.ReadWriter
	in     *http2.Framer
	seen   *sight // what has been read already
	replay int    // how much of it has been read again

	out     *http2.Framer
	pending bytes.Buffer // what is to be written before the next read
	skip    int          // how much of what is written has been written already

	ahead      bool // the request is under way
	streams    uint32
	window     int64 // of a new stream
	quota      int64 // of the connection
	resized    bool  // the server has changed the size of its table of headers
	headerList int64

	draining bool
	lastAway uint32
	awayText string
	unacked  uint32 // data that the server has not been credited yet
	stream   *stream
}

// newCall returns a call over conn, of which s has seen the beginning.
func newCall(a *attempt, conn io.ReadWriter, s *sight, ahead bool) *call {
	c := &call{
		attempt: a, conn: conn, seen: s, skip: s.sent, ahead: ahead,
		streams: 100, window: peerWindow, quota: peerWindow, headerList: math.MaxInt64,
	}
	c.in = http2.NewFramer(nil, bufio.NewReaderSize(c, sightSize))
	c.in.SetMaxReadFrameSize(peerFrame)
	c.in.SetReuseFrames()
	c.in.MaxHeaderListSize = maxHeader
	c.in.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	c.out = http2.NewFramer(&c.pending, nil)
	return c
}

// Read reads what has been seen, and then on. Before it waits for the server, the
// server gets what is due to it. It is used by the framer's buffer alone.
func (c *call) Read(p []byte) (int, error) {
	if c.replay < c.seen.n {
		n := copy(p, c.seen.buf[c.replay:c.seen.n])
		c.replay += n
		return n, nil
	}
	if c.seen.err != nil {
		return 0, c.seen.err
	}
	c.flush()
	return c.conn.Read(p)
}

// flush writes what is pending. If that is not possible, there is something to be
// read about it.
func (c *call) flush() {
	done := min(c.skip, c.pending.Len())
	c.skip -= done
	c.pending.Next(done)
	if c.pending.Len() > 0 {
		_, _ = c.conn.Write(c.pending.Bytes())
		c.pending.Reset()
	}
}

// run asks, and waits for how it ends.
func (c *call) run() ending {
	frame, err := c.in.ReadFrame()
	if err != nil {
		return ending{err: fmt.Errorf("error reading server preface: %w", err)}
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		return ending{err: fmt.Errorf("initial http2 frame from server is not a settings frame: %T", frame)}
	}
	if !settings.IsAck() {
		c.streams = math.MaxUint32
	}
	c.apply(settings)
	fits := c.streams > 0 && c.window >= int64(len(c.message)) && c.headerList >= int64(c.listSize)
	if c.ahead && !fits {
		// It had better not be asked like this. Once more, and properly.
		c.careful.Store(true)
		return ending{how: restart}
	}
	if fits {
		c.careful.Store(!c.question.ahead)
	}
	c.ready = true
	c.settle()

	for id := uint32(1); ; id += 2 {
		if end, ok := c.ask(id); ok {
			return end
		}
		// The server has not looked at it.
		if c.draining {
			return ending{how: sentAway}
		}
	}
}

// ask makes the request as stream id and waits for its end. It returns false if it is
// to be made again.
func (c *call) ask(id uint32) (end ending, ok bool) {
	if !c.ahead {
		for c.streams == 0 {
			// Until then, whatever ends the connection has nothing to do with the call.
			switch err := c.next(); {
			case dial.RanOut(err):
				return ending{how: failedCall, status: rpcError{code: codeDeadlineExceeded}}, true
			case err != nil || c.draining:
				return ending{how: sentAway}, true
			}
		}
		if int64(c.listSize) > c.headerList {
			return ending{how: failedCall, status: *statusf(codeInternal,
				"header list size to send violates the maximum size (%d bytes) set by server", c.headerList)}, true
		}
	}
	s := newStream(c, id)
	c.stream = s
	if c.ahead {
		s.unsent, s.window = nil, s.window-int64(len(c.message))
		c.quota -= int64(len(c.message))
		c.ahead = false
	} else {
		writeHeaders(c.out, id, c.block(c.watch.Left(), c.resized))
		s.send()
	}
	for {
		if s.advance() {
			return s.end, true
		}
		if s.unprocessed && !s.got && !c.again {
			c.again = true
			return ending{}, false
		}
		if err := c.next(); err != nil {
			s.close(nil, c.broken(err))
		}
	}
}

// broken is the status of a call whose connection has come to its end.
func (c *call) broken(err error) *rpcError {
	if dial.RanOut(err) {
		return &rpcError{code: codeDeadlineExceeded}
	}
	text := "error reading from server: " + err.Error()
	if c.awayText != "" {
		text = fmt.Sprintf("closing transport due to: %s, received prior goaway: %s", connectionError(text), c.awayText)
	}
	return &rpcError{codeUnavailable, text}
}

// next reads one frame and acts on it. An error is the end of the connection.
func (c *call) next() error {
	frame, err := c.in.ReadFrame()
	if bad, ok := errors.AsType[http2.StreamError](err); ok {
		text := "received invalid frame"
		if detail := c.in.ErrorDetail(); detail != nil {
			text = detail.Error()
		}
		if s := c.of(bad.StreamID); s != nil {
			s.close(nil, &rpcError{codeOfHTTP2(bad.Code), text})
		}
		return nil
	}
	if err != nil {
		return err
	}
	s := c.of(frame.Header().StreamID)
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		if s != nil {
			s.headers(frame)
		}
	case *http2.DataFrame:
		c.unacked += frame.Length
		if c.unacked >= window/4 {
			_ = c.out.WriteWindowUpdate(0, c.unacked)
			c.unacked = 0
		}
		if s != nil {
			s.data(frame)
		}
	case *http2.RSTStreamFrame:
		if s != nil {
			s.reset(frame.ErrCode)
		}
	case *http2.SettingsFrame:
		c.apply(frame)
	case *http2.PingFrame:
		if !frame.IsAck() {
			_ = c.out.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		c.away(frame)
	case *http2.WindowUpdateFrame:
		if frame.StreamID == 0 {
			c.quota += int64(frame.Increment)
		} else if s != nil {
			s.window += int64(frame.Increment)
		}
	}
	if c.stream != nil {
		c.stream.send()
	}
	return nil
}

// of returns the stream of that number, if it is the one that is open.
func (c *call) of(id uint32) *stream {
	if c.stream == nil || c.stream.id != id || c.stream.closed {
		return nil
	}
	return c.stream
}

// apply takes note of what the server takes.
func (c *call) apply(frame *http2.SettingsFrame) {
	if frame.IsAck() {
		return
	}
	_ = frame.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.streams = s.Val
		case http2.SettingMaxHeaderListSize:
			c.headerList = int64(s.Val)
		case http2.SettingHeaderTableSize:
			c.resized = true
		case http2.SettingInitialWindowSize:
			if c.stream != nil {
				c.stream.window += int64(s.Val) - c.window
			}
			c.window = int64(s.Val)
		default:
		}
		return nil
	})
	_ = c.out.WriteSettingsAck()
}

// away acts on a GOAWAY: the request goes on if the server says that it looks at it.
// One that makes no sense is ignored.
func (c *call) away(frame *http2.GoAwayFrame) {
	id := frame.LastStreamID
	if id > 0 && id%2 == 0 || c.draining && id > c.lastAway {
		return
	}
	if !c.draining {
		c.draining = true
		c.awayText = "code: " + frame.ErrCode.String()
		if debug := frame.DebugData(); len(debug) > 0 {
			c.awayText += fmt.Sprintf(", debug data: %q", debug)
		}
	}
	previous := c.lastAway
	if previous == 0 {
		previous = math.MaxUint32
	}
	c.lastAway = id
	if s := c.stream; s != nil && !s.closed && s.id > id && s.id <= previous {
		s.unprocessed = true
		s.close(nil, &rpcError{codeUnavailable, "the connection is draining"})
	}
}
