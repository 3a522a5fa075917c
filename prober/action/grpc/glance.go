// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// sightSize is the most that a glance reads.
	sightSize = 4 << 10

	// sightHeaders is the most that headers may have once unpacked.
	sightHeaders = 8 << 10

	frameHeader   = 9
	messageHeader = 5
	tableSize     = 4096 // of hpack, unless agreed otherwise
)

// sight is the state of a glance at an answer. A glance decides only about plain good answers; a
// call can do the rest again.
type sight struct {
	buf  [sightSize]byte
	n    int   // how much of buf is filled
	err  error // why there is no more
	acks []byte
	sent int // how many bytes of acks

	state   progress
	status  int32
	table   *hpack.Decoder
	headers int  // size of the headers so far
	fields  int  // how many in this block
	plain   bool // all headers are plain
	spoilt  bool // table cannot be used again
	grpc    bool // has the content type
	ok      bool // has the status 0
}

// progress is how far an answer has come.
type progress int

const (
	awaitSettings progress = iota
	awaitHeaders
	awaitMessage
	awaitTrailers
	complete
)

var sights = sync.Pool{New: func() any {
	s := &sight{acks: make([]byte, 0, 64)}
	s.table = hpack.NewDecoder(tableSize, s.field)
	return s
}}

// release puts s back into the pool. It drops a table that has not reached the end of a block.
func (s *sight) release() {
	table, acks := s.table, s.acks[:0]
	if s.spoilt || cap(acks) > sightSize {
		return
	}
	table.SetMaxDynamicTableSize(0) // empties it
	table.SetMaxDynamicTableSize(tableSize)
	s.n, s.err, s.acks, s.sent = 0, nil, acks, 0
	s.state, s.status, s.headers, s.grpc, s.ok = awaitSettings, 0, 0, false, false
	sights.Put(s)
}

// glance reads until it has seen a server's health, or something that is not plain: then it
// returns false, and buf and err have everything that has come.
func (s *sight) glance(conn io.ReadWriter) (status int32, ok bool) {
	for done := 0; ; {
		if s.sent < len(s.acks) {
			// If a write fails, a read will say why.
			n, _ := conn.Write(s.acks[s.sent:])
			s.sent += n
			if s.sent < len(s.acks) {
				return 0, false
			}
		}
		if s.err != nil || s.n == len(s.buf) {
			return 0, false
		}
		var n int
		n, s.err = conn.Read(s.buf[s.n:])
		s.n += n
		for {
			frame := s.buf[done:s.n]
			if len(frame) < frameHeader {
				break
			}
			size := int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2])
			if size > len(frame)-frameHeader {
				if frameHeader+size > len(s.buf)-done {
					return 0, false
				}
				break
			}
			if !s.frame(frame[:frameHeader+size]) {
				return 0, false
			}
			if s.state == complete {
				return s.status, true
			}
			done += frameHeader + size
		}
	}
}

// frame looks at one frame. It returns false if the frame is not plain.
func (s *sight) frame(frame []byte) bool {
	kind, flags := http2.FrameType(frame[3]), http2.Flags(frame[4])
	stream := binary.BigEndian.Uint32(frame[5:])
	payload := frame[frameHeader:]
	if s.state == awaitSettings {
		return kind == http2.FrameSettings && flags == 0 && stream == 0 && s.settings(payload)
	}
	switch kind {
	case http2.FrameSettings: // a server's second SETTINGS are rare
		return flags == http2.FlagSettingsAck && stream == 0 && len(payload) == 0
	case http2.FrameWindowUpdate:
		return stream <= 1 && len(payload) == 4 && binary.BigEndian.Uint32(payload)<<1 != 0
	case http2.FramePing:
		if flags != 0 || stream != 0 || len(payload) != 8 {
			return false
		}
		s.acks = append(s.acks, 0, 0, 8, byte(http2.FramePing), byte(http2.FlagPingAck), 0, 0, 0, 0)
		s.acks = append(s.acks, payload...)
		return true
	case http2.FrameHeaders:
		switch {
		case stream != 1:
		case s.state == awaitHeaders && flags == http2.FlagHeadersEndHeaders:
			s.state = awaitMessage
			return s.block(payload) && s.grpc
		case s.state == awaitTrailers && flags == http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream:
			s.state = complete
			return s.block(payload) && s.ok
		}
		return false
	case http2.FrameData:
		if s.state != awaitMessage || flags != 0 || stream != 1 || len(payload) < messageHeader ||
			payload[0] != 0 || int64(binary.BigEndian.Uint32(payload[1:])) != int64(len(payload)-messageHeader) {
			return false
		}
		s.state = awaitTrailers
		return parseServing(payload[messageHeader:], &s.status)
	default:
		return false
	}
}

// settings looks at what the server accepts. The request, which almost all servers accept, has
// been sent already; settings returns false for a server that accepts less.
func (s *sight) settings(payload []byte) bool {
	if len(payload)%6 != 0 {
		return false
	}
	for ; len(payload) > 0; payload = payload[6:] {
		value := binary.BigEndian.Uint32(payload[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(payload)) {
		case http2.SettingMaxConcurrentStreams:
			if value == 0 {
				return false
			}
		case http2.SettingInitialWindowSize:
			if value < peerFrame || value > 1<<31-1 {
				return false
			}
		case http2.SettingMaxHeaderListSize:
			if value < sightHeaders {
				return false
			}
		default:
		}
	}
	s.state = awaitHeaders
	s.acks = append(s.acks, 0, 0, 0, byte(http2.FrameSettings), byte(http2.FlagSettingsAck), 0, 0, 0, 0)
	return true
}

// block looks at a block of headers.
func (s *sight) block(payload []byte) bool {
	s.fields, s.plain, s.spoilt = 0, true, true
	s.table.SetMaxStringLength(sightHeaders)
	s.table.SetEmitEnabled(true)
	if _, err := s.table.Write(payload); err != nil || s.table.Close() != nil || !s.plain {
		return false
	}
	s.spoilt = false
	return true
}

// field looks at one header.
func (s *sight) field(f hpack.HeaderField) {
	s.headers += int(f.Size())
	s.fields++
	plain := s.headers <= sightHeaders
	switch f.Name {
	case ":status":
		plain = plain && s.state == awaitMessage && s.fields == 1 && f.Value == "200"
	case "content-type":
		plain = plain && s.state == awaitMessage && isContent(f.Value)
		s.grpc = plain
	case "grpc-status":
		plain = plain && s.state == complete && f.Value == "0"
		s.ok = plain
	case "grpc-message":
		plain = plain && f.Value == ""
	case "grpc-encoding":
		plain = plain && f.Value == "identity"
	default:
		plain = plain && plainName(f.Name) && httpguts.ValidHeaderFieldValue(f.Value)
	}
	if !plain {
		s.plain = false
		s.table.SetEmitEnabled(false)
	}
}

// plainName reports whether a header of that name does not matter.
func plainName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return name != "" && !strings.HasSuffix(name, "-bin")
}
