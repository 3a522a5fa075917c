// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/prober-exporter/prober_exporter/config"
)

// answer is a script for a server's answer.
type answer struct {
	serve   func(p *peer)
	service string
	late    bool // the timeout ends the attempt
}

func targetOf(host string) *config.Target { return &config.Target{Host: host} }

func grpcOf(port int, timeout time.Duration, service, mode string) *config.Probe {
	return &config.Probe{GRPC: &config.GRPC{Port: port, Service: service, Mode: mode}, Timeout: timeout}
}

var servingMessage = message(8, 1)

// rest answers well.
func (p *peer) rest(id uint32) {
	p.well(id)
	p.WriteData(id, false, servingMessage)
	p.head(id, true, "grpc-status", "0")
}

// answers returns the answers, by name, that do not come about at random: of servers that wait
// for the client's acts, or that never stop.
func answers() map[string]answer {
	long := strings.Repeat("x", 3000)
	says := func(say func(p *peer, id uint32)) answer { return answer{serve: func(p *peer) { say(p, p.begin()) }} }
	refused := func(times int) answer {
		return answer{serve: func(p *peer) {
			p.WriteSettings()
			for range times {
				p.WriteRSTStream(p.request(), http2.ErrCodeRefusedStream)
			}
			p.rest(p.request())
		}}
	}
	foreign := func(status string, then func(p *peer, id uint32)) answer {
		return says(func(p *peer, id uint32) {
			p.head(id, false, ":status", status, "content-type", "text/html")
			then(p, id)
		})
	}
	data := func(write func(p *peer, id uint32)) answer {
		return says(func(p *peer, id uint32) {
			p.well(id)
			write(p, id)
			p.head(id, true, "grpc-status", "0")
		})
	}
	sized := func(size int) answer { // six bytes are around the content
		return data(func(p *peer, id uint32) {
			for chunk := range slices.Chunk(message(answerOf(size-6)...), 9000) {
				p.WriteData(id, false, chunk)
			}
		})
	}
	set := map[string]answer{
		"well":          says((*peer).rest),
		"refused once":  refused(1),
		"refused twice": refused(2),
		"goaway, two": says(func(p *peer, id uint32) {
			p.WriteGoAway(1<<31-1, http2.ErrCodeNo, []byte("bye"))
			p.WriteGoAway(id, http2.ErrCodeNo, nil)
			p.rest(id)
		}),
		"goaway, shrinking": says(func(p *peer, _ uint32) {
			p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			p.WriteGoAway(0, http2.ErrCodeNo, nil)
		}),
		"goaway, growing": {serve: func(p *peer) {
			p.begin()
			p.WriteGoAway(3, http2.ErrCodeNo, nil)
			p.WriteGoAway(5, http2.ErrCodeNo, nil)
		}, late: true},
		"goaway, even":         {serve: func(p *peer) { p.begin(); p.WriteGoAway(2, http2.ErrCodeNo, nil) }, late: true},
		"goaway, unread":       says(func(p *peer, _ uint32) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }),
		"goaway, hangs up":     says(func(p *peer, id uint32) { p.WriteGoAway(id, http2.ErrCodeNo, nil); p.conn.Close() }),
		"hangs up":             says(func(p *peer, _ uint32) { p.conn.Close() }),
		"hangs up in a frame":  says(func(p *peer, _ uint32) { p.conn.Write([]byte{0, 0, 9, 6, 0, 0, 0, 0, 0, 1}); p.conn.Close() }),
		"hangs up later":       says(func(p *peer, id uint32) { p.well(id); p.WriteData(id, false, servingMessage); p.conn.Close() }),
		"resets":               says(func(p *peer, _ uint32) { p.breakOff() }),
		"silent":               {serve: func(p *peer) { p.begin() }, late: true},
		"headers and no more":  {serve: func(p *peer) { p.well(p.begin()) }, late: true},
		"message and no end":   {serve: func(p *peer) { id := p.begin(); p.well(id); p.WriteData(id, false, servingMessage) }, late: true},
		"foreign, a body":      foreign("503", func(p *peer, id uint32) { p.WriteData(id, true, []byte("<b>no</b>")) }),
		"foreign, unknown":     foreign("404", func(p *peer, id uint32) { p.WriteData(id, true, []byte("no")) }),
		"foreign, a long body": foreign("200", func(p *peer, id uint32) { p.WriteData(id, false, []byte(long)) }),
		"foreign, just long":   foreign("200", func(p *peer, id uint32) { p.WriteData(id, false, []byte(long[:1024])) }),
		"foreign, not so long": {serve: func(p *peer) {
			id := p.begin()
			p.head(id, false, ":status", "200")
			p.WriteData(id, false, []byte(long[:1023]))
		}, late: true},
		"foreign, trailers":   foreign("404", func(p *peer, id uint32) { p.head(id, false, "a", "b"); p.head(id, true, "a", "b") }),
		"foreign, hangs up":   foreign("404", func(p *peer, _ uint32) { p.conn.Close() }),
		"as large as may be":  sized(maxMessage),
		"larger than may be":  sized(maxMessage + 1),
		"said to be enormous": data(func(p *peer, id uint32) { p.WriteData(id, false, []byte{0, 0xff, 0xff, 0xff, 0xff}) }),
		"zeros without end": says(func(p *peer, id uint32) {
			p.well(id)
			p.on(func() error { return p.WriteData(id, false, make([]byte, 4096)) })
		}),
		"data without headers": says(func(p *peer, id uint32) { p.on(func() error { return p.WriteData(id, false, make([]byte, 16384)) }) }),
		"endless CONTINUATION": says(func(p *peer, id uint32) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			p.on(func() error { return p.WriteContinuation(id, false, p.fields("x-a", long)) })
		}),
		"zero credit":         says(func(p *peer, id uint32) { p.WriteWindowUpdate(id, 0); p.rest(id) }),
		"zero credit for all": says(func(p *peer, id uint32) { p.WriteWindowUpdate(0, 0); p.rest(id) }),
		"bad binary": says(func(p *peer, id uint32) {
			p.well(id, "x-bin", "!!")
			p.WriteData(id, false, servingMessage)
			p.head(id, true, "grpc-status", "0")
		}),
		"status comes second": says(func(p *peer, id uint32) {
			p.head(id, false, "content-type", "application/grpc", ":status", "200")
			p.WriteData(id, false, servingMessage)
			p.head(id, true, "grpc-status", "0")
		}),
		"long question, narrow connection": {service: strings.Repeat("s", 100000), serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 200000})
			p.narrow()
		}},
		"long question, narrow stream": {service: strings.Repeat("s", 100000), serve: func(p *peer) {
			p.WriteSettings()
			p.WriteWindowUpdate(0, 100000)
			p.narrow()
		}},
		"no table, and the client says so": {service: strings.Repeat("s", 20000), serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			for {
				frame, err := p.ReadFrame()
				if h, ok := frame.(*http2.HeadersFrame); err != nil || ok && h.HeaderBlockFragment()[0] != 0x20 {
					p.conn.Close()
					return
				} else if ok {
					break
				}
			}
			p.rest(p.request())
		}},
		"long headers": says(func(p *peer, id uint32) {
			p.head(id, false, ":status", "200", "content-type", "application/grpc", "x", strings.Repeat(long, 5))
			p.rest(id)
		}),
		"too long headers":     says(func(p *peer, id uint32) { p.endless(id) }),
		"a large frame":        says(func(p *peer, id uint32) { p.well(id); p.WriteData(id, false, make([]byte, 16385)) }),
		"data ends the stream": says(func(p *peer, id uint32) { p.well(id); p.WriteData(id, true, servingMessage) }),
		"data comes first": says(func(p *peer, id uint32) {
			p.WriteData(id, false, servingMessage)
			p.well(id)
			p.head(id, true, "grpc-status", "0")
		}),
		"byte by byte": data(func(p *peer, id uint32) {
			for _, b := range servingMessage {
				p.WriteDataPadded(id, false, []byte{b}, make([]byte, 9))
			}
		}),
		"refused after message": says(func(p *peer, id uint32) {
			p.well(id)
			p.WriteData(id, false, servingMessage)
			p.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}),
		"waits for its pong": says(func(p *peer, id uint32) {
			p.WritePing(false, [8]byte{1, 2, 3})
			for {
				frame, err := p.ReadFrame()
				if pong, ok := frame.(*http2.PingFrame); err != nil || ok && pong.IsAck() && pong.Data == [8]byte{1, 2, 3} {
					break
				}
			}
			p.rest(id)
		}),
		"settings again": says(func(p *peer, id uint32) {
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			p.WriteSettingsAck()
			p.rest(id)
		}),
		"acknowledges first": {serve: func(p *peer) { p.WriteSettingsAck(); p.rest(p.request()) }},
		"no window":          {serve: func(p *peer) { p.begin(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) }, late: true},
		"a small window": {service: "a.b.C", serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
			p.headers()
			p.WriteWindowUpdate(1, 2)
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
			p.WriteWindowUpdate(1, 100)
			p.rest(p.request())
		}},
		"no streams": {serve: func(p *peer) { p.begin(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) }, late: true},
		"streams later": {serve: func(p *peer) {
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
			p.rest(p.request())
		}},
		"small headers": {serve: func(p *peer) { p.rest(p.begin(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 100})) }},
		"no table":      {serve: func(p *peer) { p.rest(p.begin(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})) }},
		"a long question": {service: strings.Repeat("s", 100000), serve: func(p *peer) {
			p.WriteSettings()
			p.headers()
			p.WriteWindowUpdate(0, 50000)
			p.WriteWindowUpdate(1, 50000)
			p.rest(p.request())
		}},
	}
	for _, code := range []string{"0", "99", "204", "301", "401", "404", "429", "502", "1000"} {
		set["HTTP status "+code] = says(func(p *peer, id uint32) { p.head(id, true, ":status", code) })
	}
	for code := range 17 {
		set[fmt.Sprint("grpc-status ", code)] = says(func(p *peer, id uint32) {
			p.head(id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", fmt.Sprint(code), "grpc-message", "m")
		})
	}
	return set
}

// on repeats write until the client has hung up.
func (p *peer) on(write func() error) {
	for write() == nil {
		continue
	}
}

// endless sends headers of more than 64 KiB.
func (p *peer) endless(id uint32) {
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.fields(":status", "200", "content-type", "application/grpc")})
	for range 22 { // with more, the framer would break the connection
		p.WriteContinuation(id, false, p.fields("x-a", strings.Repeat("x", 3000)))
	}
	p.WriteContinuation(id, true, nil)
	p.WriteData(id, false, servingMessage)
	p.head(id, true, "grpc-status", "0")
}

// narrow gives a good answer to a long request that keeps to windows of 65535 bytes.
func (p *peer) narrow() {
	for size := 0; size < 65535; {
		frame, err := p.ReadFrame()
		if data, ok := frame.(*http2.DataFrame); ok {
			size += int(data.Length)
		}
		if err != nil || size > 65535 {
			p.conn.Close()
			return
		}
	}
	p.WritePing(false, [8]byte{})
	for pinged := false; !pinged; {
		frame, err := p.ReadFrame()
		if _, more := frame.(*http2.DataFrame); err != nil || more {
			p.conn.Close()
			return
		}
		_, pinged = frame.(*http2.PingFrame)
	}
	p.WriteWindowUpdate(0, 100000)
	p.WriteWindowUpdate(1, 100000)
	p.rest(p.request())
}

// breakOff resets the connection.
func (p *peer) breakOff() {
	conn := p.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
