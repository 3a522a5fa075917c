// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"golang.org/x/net/http2"
)

// replies is an answer whose headers and trailers are well.
func replies(say func(p *peer, id uint32)) answer {
	return answer{serve: func(p *peer) {
		id := p.begin()
		p.well(id)
		say(p, id)
		p.head(id, true, okTrailers...)
	}}
}

// once is an answer whose headers and trailers are well, with this data.
func once(data []byte) answer {
	return replies(func(p *peer, id uint32) {
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 16000)
			p.WriteData(id, false, rest[:n])
			rest = rest[n:]
		}
	})
}

// encoded is an answer whose messages are said to be encoded.
func encoded(encoding string, data []byte) answer {
	return answer{serve: func(p *peer) {
		id := p.begin()
		p.well(id, "grpc-encoding", encoding)
		p.WriteData(id, false, data)
		p.head(id, true, okTrailers...)
	}}
}

func dataAnswers() map[string]answer {
	large := message(append([]byte{15<<3 | 2, 0xe0, 0xa7, 0x12}, append(make([]byte, 300000), 8, 1)...)...)
	wide := message(append([]byte{15<<3 | 2, 0xf0, 0xff, 0x03}, append(make([]byte, 65520), 8, 1)...)...)
	return map[string]answer{
		"NOT_SERVING":             once(message(8, 2)),
		"UNKNOWN":                 once(message(8, 0)),
		"SERVICE_UNKNOWN":         once(message(8, 3)),
		"another number":          once(message(8, 99)),
		"negative number":         once(message(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)),
		"large number":            once(message(8, 0x81, 0x80, 0x80, 0x80, 0x10)),
		"empty message":           once(message()),
		"no message":              once(nil),
		"two fields":              once(message(8, 2, 8, 1)),
		"unknown fields":          once(message(0x7a, 2, 'a', 'b', 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0x1b, 8, 9, 0x1c, 8, 1)),
		"status of another type":  once(message(10, 1, 1)),
		"bad message":             once(message(8)),
		"bad tag":                 once(message(0, 1)),
		"bad group":               once(message(0x1b, 8, 9)),
		"bad end of group":        once(message(0x1c)),
		"long varint":             once(message(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2)),
		"prefix only":             once([]byte{0, 0, 0, 0, 2}),
		"half a prefix":           once([]byte{0, 0, 0}),
		"half a message":          once([]byte{0, 0, 0, 0, 2, 8}),
		"too large":               once(large),
		"too large, only said":    once([]byte{0, 0xff, 0xff, 0xff, 0xff}),
		"just not too large":      once(wide),
		"two messages":            once(append(message(8, 1), message(8, 1)...)),
		"two messages, one bad":   once(append(message(8, 1), message(8)...)),
		"two messages, one large": once(append(message(8, 1), large...)),
		"and a half":              once(append(message(8, 1), 0, 0, 0, 0, 9)),
		"and a bit":               once(append(message(8, 1), 0)),
		"compressed":              once([]byte{1, 0, 0, 0, 2, 8, 1}),
		"identity, compressed":    encoded("identity", []byte{1, 0, 0, 0, 2, 8, 1}),
		"gzip, compressed":        encoded("gzip", []byte{1, 0, 0, 0, 2, 8, 1}),
		"gzip, not compressed":    encoded("gzip", servingMessage),
		"identity":                encoded("identity", servingMessage),
		"strange format":          once([]byte{7, 0, 0, 0, 2, 8, 1}),
		"bytes one by one": replies(func(p *peer, id uint32) {
			for _, b := range servingMessage {
				p.WriteData(id, false, []byte{b})
			}
			p.WriteData(id, false, nil)
		}),
		"padded bytes": replies(func(p *peer, id uint32) {
			for _, b := range servingMessage {
				p.WriteDataPadded(id, false, []byte{b}, make([]byte, 9))
			}
		}),
		"data ends it": {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteData(id, true, servingMessage) }},
		"data before headers": {serve: func(p *peer) {
			id := p.begin()
			p.WriteData(id, false, servingMessage)
			p.well(id)
			p.head(id, true, okTrailers...)
		}},
		"data and no headers": {serve: func(p *peer) { id := p.begin(); p.WriteData(id, false, []byte{9, 9, 9, 9, 9}) }, late: true},
		"data, then trailers": {serve: func(p *peer) {
			id := p.begin()
			p.WriteData(id, false, servingMessage)
			p.head(id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
		}},
		"data ends all": {serve: func(p *peer) { id := p.begin(); p.WriteData(id, true, servingMessage) }},
		"data for another": {serve: func(p *peer) {
			id := p.begin()
			p.WriteData(id+2, false, message(8, 2))
			p.well(id)
			p.WriteData(id, false, servingMessage)
			p.head(id, true, okTrailers...)
		}},
		"data on no stream": {serve: func(p *peer) { p.well(p.begin()); p.WriteData(0, false, nil) }},
		"bad padding": {serve: func(p *peer) {
			id := p.begin()
			p.well(id)
			p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, id, []byte{9, 0})
		}},
		"no padding": {serve: func(p *peer) {
			id := p.begin()
			p.well(id)
			p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, id, nil)
		}},
		"too much, no headers": {serve: func(p *peer) {
			id := p.begin()
			for p.WriteData(id, false, make([]byte, 16384)) == nil {
				continue
			}
		}},
		"message, no end": {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteData(id, false, servingMessage) }, late: true},
		"large frame":     {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteData(id, false, make([]byte, 16385)) }},
		"zeros without end": {serve: func(p *peer) {
			id := p.begin()
			p.well(id)
			for p.WriteData(id, false, bytes.Repeat([]byte{0}, 4096)) == nil {
				continue
			}
		}},
	}
}

func frameAnswers() map[string]answer {
	well := func(p *peer, id uint32) {
		p.well(id)
		p.WriteData(id, false, servingMessage)
		p.head(id, true, okTrailers...)
	}
	refused := func(times int) answer {
		return answer{serve: func(p *peer) {
			p.WriteSettings()
			for range times {
				p.WriteRSTStream(p.request(), http2.ErrCodeRefusedStream)
			}
			well(p, p.request())
		}}
	}
	resets := func(p *peer) {
		conn := p.conn
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	set := map[string]answer{
		"refused once":  refused(1),
		"refused twice": refused(2),
		"message, then refused": {serve: func(p *peer) {
			id := p.begin()
			p.well(id)
			p.WriteData(id, false, servingMessage)
			p.WriteRSTStream(id, http2.ErrCodeCancel)
		}},
		"reset of another": {serve: func(p *peer) { id := p.begin(); p.WriteRSTStream(id+2, http2.ErrCodeCancel); well(p, id) }},
		"goaway, answered": {serve: func(p *peer) { id := p.begin(); p.WriteGoAway(1<<31-1, http2.ErrCodeNo, []byte("bye")); well(p, id) }},
		"goaway, two": {serve: func(p *peer) {
			id := p.begin()
			p.WriteGoAway(1<<31-1, http2.ErrCodeNo, []byte("bye"))
			p.WriteGoAway(id, http2.ErrCodeNo, nil)
			well(p, id)
		}},
		"goaway, hangs up":     {serve: func(p *peer) { p.WriteGoAway(p.begin(), http2.ErrCodeNo, []byte("b\x00e")); p.conn.Close() }},
		"goaway, no debug":     {serve: func(p *peer) { p.WriteGoAway(p.begin(), http2.ErrCodeInternal, nil); p.conn.Close() }},
		"goaway, strange code": {serve: func(p *peer) { p.WriteGoAway(p.begin(), 99, nil); p.conn.Close() }},
		"goaway, even":         {serve: func(p *peer) { p.begin(); p.WriteGoAway(2, http2.ErrCodeNo, nil) }, late: true},
		"goaway, growing": {serve: func(p *peer) {
			p.begin()
			p.WriteGoAway(3, http2.ErrCodeNo, []byte("x"))
			p.WriteGoAway(5, http2.ErrCodeNo, nil)
		}, late: true},
		"goaway, unread":        {serve: func(p *peer) { p.begin(); p.WriteGoAway(0, http2.ErrCodeNo, nil) }},
		"hangs up":              {serve: func(p *peer) { p.begin(); p.conn.Close() }},
		"hangs up in a frame":   {serve: func(p *peer) { p.begin(); p.conn.Write([]byte{0, 0, 9, 1}); p.conn.Close() }},
		"hangs up in a payload": {serve: func(p *peer) { p.begin(); p.conn.Write([]byte{0, 0, 9, 6, 0, 0, 0, 0, 0, 1}); p.conn.Close() }},
		"hangs up later":        {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteData(id, false, servingMessage); p.conn.Close() }},
		"resets":                {serve: func(p *peer) { p.begin(); resets(p) }},
		"silent":                {serve: func(p *peer) { p.begin() }, late: true},
		"garbage":               {serve: func(p *peer) { p.begin(); p.conn.Write([]byte(strings.Repeat("garbage", 9))) }},
		"HTTP/1":                {serve: func(p *peer) { p.begin(); p.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }},
		"pings": {serve: func(p *peer) {
			p.WriteSettings()
			p.WritePing(false, [8]byte{1})
			id := p.request()
			p.WritePing(false, [8]byte{2})
			p.WritePing(true, [8]byte{3})
			well(p, id)
		}},
		"waits for its pong": {serve: func(p *peer) {
			id := p.begin()
			p.WritePing(false, [8]byte{1, 2, 3})
			for pong, ok := (*http2.PingFrame)(nil), false; !ok || !pong.IsAck() || pong.Data != [8]byte{1, 2, 3}; {
				frame, err := p.ReadFrame()
				if err != nil {
					return
				}
				pong, ok = frame.(*http2.PingFrame)
			}
			well(p, id)
		}},
		"settings again": {serve: func(p *peer) {
			id := p.begin(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}, http2.Setting{ID: 99, Val: 1})
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			p.WriteSettingsAck()
			well(p, id)
		}},
		"acknowledges first": {serve: func(p *peer) { p.WriteSettingsAck(); well(p, p.request()) }},
		"bad ping":           {serve: func(p *peer) { p.begin(); p.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 7)) }},
		"ping on a stream":   {serve: func(p *peer) { p.WriteRawFrame(http2.FramePing, 0, p.begin(), make([]byte, 8)) }},
		"bad ack": {serve: func(p *peer) {
			p.begin()
			p.WriteRawFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, make([]byte, 6))
		}},
		"settings on a stream": {serve: func(p *peer) { p.WriteRawFrame(http2.FrameSettings, 0, p.begin(), nil) }},
		"bad settings":         {serve: func(p *peer) { p.begin(); p.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }},
		"zero credit":          {serve: func(p *peer) { p.WriteWindowUpdate(p.begin(), 0) }},
		"zero credit for all":  {serve: func(p *peer) { p.begin(); p.WriteWindowUpdate(0, 0) }},
		"credit": {serve: func(p *peer) {
			id := p.begin()
			p.WriteWindowUpdate(0, 1<<31-1)
			p.WriteWindowUpdate(id, 1<<31-1)
			well(p, id)
		}},
		"bad credit": {serve: func(p *peer) { p.begin(); p.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, nil) }},
		"push": {serve: func(p *peer) {
			id := p.begin()
			p.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
			well(p, id)
		}},
		"priority":          {serve: func(p *peer) { id := p.begin(); p.WritePriority(id, http2.PriorityParam{Weight: 3}); well(p, id) }},
		"unknown frame":     {serve: func(p *peer) { id := p.begin(); p.WriteRawFrame(0x99, 0xff, id, []byte("what")); well(p, id) }},
		"lone CONTINUATION": {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteContinuation(id, true, nil) }},
		"bad reset":         {serve: func(p *peer) { p.WriteRawFrame(http2.FrameRSTStream, 0, p.begin(), nil) }},
		"no window":         {serve: func(p *peer) { p.begin(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) }, late: true},
		"a small window": {service: "a.b.C", serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
			p.headers()
			p.WriteWindowUpdate(1, 2)
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
			p.WriteWindowUpdate(1, 100)
			well(p, p.request())
		}},
		"no streams": {serve: func(p *peer) { p.begin(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) }, late: true},
		"streams later": {serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
			well(p, p.request())
		}},
		"small headers": {serve: func(p *peer) { well(p, p.begin(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 100})) }},
		"no table":      {serve: func(p *peer) { well(p, p.begin(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})) }},
		"a long question": {service: strings.Repeat("s", 100000), serve: func(p *peer) {
			p.WriteSettings()
			p.headers()
			p.WriteWindowUpdate(0, 50000)
			p.WriteWindowUpdate(1, 50000)
			well(p, p.request())
		}},
	}
	for code := range http2.ErrCode(16) {
		if code != http2.ErrCodeRefusedStream {
			set[fmt.Sprintf("reset %v", code)] = answer{serve: func(p *peer) { p.WriteRSTStream(p.begin(), code) }}
		}
	}
	return set
}
