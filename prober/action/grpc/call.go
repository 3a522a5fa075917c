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

// call asks over a connection whose answer is not plain. It reads each frame that a server may
// send, and never sends the server more than the server accepts.
//
// An answer has about 15 bytes, so the server gets one window and no further credit.
type call struct {
	*attempt
	conn   io.ReadWriter
	in     *http2.Framer
	seen   *sight // what the glance has read
	replay int    // how much of seen the call has read again

	out     *http2.Framer
	pending bytes.Buffer // to be written before the next read
	skip    int          // how much of the output the glance has written already

	ahead bool // the request is under way

	// What the server accepts.
	streams    uint32 // some, until the server gives a number
	window     int64  // of a new stream
	quota      int64  // of the connection
	headerList int64
	resized    bool // the server has changed the size of its table of headers

	draining bool
	stream   *stream
}

// newCall returns a call over conn, the beginning of which s has seen.
func newCall(a *attempt, conn io.ReadWriter, s *sight, ahead bool) *call {
	c := &call{
		attempt: a, conn: conn, seen: s, skip: s.sent, ahead: ahead,
		streams: 1, window: peerWindow, quota: peerWindow, headerList: math.MaxInt64,
	}
	c.in = http2.NewFramer(nil, bufio.NewReaderSize(c, sightSize))
	c.in.SetMaxReadFrameSize(peerFrame)
	c.in.SetReuseFrames()
	c.in.MaxHeaderListSize = maxHeader
	c.in.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	c.out = http2.NewFramer(&c.pending, nil)
	return c
}

// Read reads what the glance has seen, and then from the connection. Before Read waits for the
// server, it writes the pending frames. Only the framer's buffer calls Read.
func (c *call) Read(p []byte) (int, error) {
	if c.replay < c.seen.n {
		n := copy(p, c.seen.buf[c.replay:c.seen.n])
		c.replay += n
		return n, nil
	}
	if c.seen.err != nil {
		return 0, c.seen.err
	}
	done := min(c.skip, c.pending.Len())
	c.skip -= done
	c.pending.Next(done)
	if c.pending.Len() > 0 {
		// If this fails, the next read says why.
		_, _ = c.conn.Write(c.pending.Bytes())
		c.pending.Reset()
	}
	return c.conn.Read(p)
}

// run asks, and returns how the call ended.
func (c *call) run() ending {
	frame, err := c.in.ReadFrame()
	if err != nil {
		return ending{err: fmt.Errorf("read the server's settings: %w", err)}
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		return ending{err: fmt.Errorf("the server begins with %T, not with its settings", frame)}
	}
	c.apply(settings)
	fits := c.streams > 0 && c.window >= int64(len(c.message)) && c.headerList >= int64(c.listSize)
	if c.ahead && !fits {
		// The request came too early for this server. The next connection waits for the
		// settings.
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
		// The server has not looked at the request.
		if c.draining {
			return ending{how: sentAway}
		}
	}
}

// ask makes the request as stream id and waits for its end. It returns false if the request
// must be made again.
func (c *call) ask(id uint32) (end ending, ok bool) {
	if !c.ahead {
		for {
			if int64(c.listSize) > c.headerList {
				return ending{how: answered, outcome: failedf("the server takes headers of %d bytes, the request has %d", c.headerList, c.listSize)}, true
			}
			if c.streams > 0 {
				break
			}
			// Until there is a stream, the end of the connection is not the end of the call.
			switch err := c.next(); {
			case dial.RanOut(err):
				return ending{how: answered, outcome: c.late()}, true
			case err != nil || c.draining:
				return ending{how: sentAway}, true
			}
		}
	}
	s := &stream{check: c.check, id: id, unsent: c.message, open: !c.ahead, window: c.window}
	c.stream = s
	if c.ahead {
		s.unsent, s.window = nil, s.window-int64(len(c.message))
		c.quota -= int64(len(c.message))
		c.ahead = false
	} else {
		writeHeaders(c.out, id, c.block(c.resized))
		c.send()
	}
	for !s.ended {
		if err := c.next(); dial.RanOut(err) {
			s.end(c.late())
		} else if err != nil {
			s.fail("the connection broke: %v", err)
		}
	}
	if s.unread && !s.got && !c.again {
		c.again = true
		return ending{}, false
	}
	return ending{how: answered, outcome: s.outcome}, true
}

// next reads one frame and acts on it. An error is the end of the connection.
func (c *call) next() error {
	frame, err := c.in.ReadFrame()
	if bad, ok := errors.AsType[http2.StreamError](err); ok {
		if s := c.of(bad.StreamID); s != nil {
			s.fail("%v", bad)
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
		if s != nil {
			s.data(frame)
		}
	case *http2.RSTStreamFrame:
		if s != nil {
			s.reset(frame.ErrCode, c.watch.Age() >= c.timeout)
		}
	case *http2.SettingsFrame:
		c.apply(frame)
	case *http2.PingFrame:
		if !frame.IsAck() {
			_ = c.out.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		c.away(frame.LastStreamID)
	case *http2.WindowUpdateFrame:
		if frame.StreamID == 0 {
			c.quota += int64(frame.Increment)
		} else if s != nil {
			s.window += int64(frame.Increment)
		}
	}
	c.send()
	return nil
}

// of returns the stream with that ID, if it is open.
func (c *call) of(id uint32) *stream {
	if c.stream == nil || c.stream.id != id || c.stream.ended {
		return nil
	}
	return c.stream
}

// send sends as much of the request as the server accepts.
func (c *call) send() {
	for s := c.stream; s != nil && s.open && !s.ended; {
		n := min(int64(len(s.unsent)), peerFrame, s.window, c.quota)
		if n <= 0 {
			return
		}
		s.open = n < int64(len(s.unsent))
		_ = c.out.WriteData(s.id, !s.open, s.unsent[:n])
		s.unsent = s.unsent[n:]
		s.window -= n
		c.quota -= n
	}
}

// apply records what the server accepts.
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

// away acts on a GOAWAY: the request goes on if the server says that it looks at streams
// up to that of the request.
func (c *call) away(last uint32) {
	c.draining = true
	if s := c.stream; s != nil && !s.ended && s.id > last {
		s.refuse()
	}
}
