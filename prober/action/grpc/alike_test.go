// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// peer is the server's side of a connection, for the scripts of tests.
type peer struct {
	*http2.Framer
	conn  net.Conn
	block bytes.Buffer
	hpack *hpack.Encoder
}

// script returns a raw server that reads the client's preface and then runs a script. After the
// script, the peer only reads.
func script(serve func(p *peer)) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		p := &peer{Framer: http2.NewFramer(conn, conn), conn: conn}
		p.AllowIllegalWrites = true
		p.hpack = hpack.NewEncoder(&p.block)
		serve(p)
		actiontest.Mute(conn)
	}
}

// encrypted returns a function that puts TLS with HTTP/2 before a raw server.
func encrypted(t *testing.T) func(serve func(net.Conn)) func(net.Conn) {
	t.Helper()
	certificates := actiontest.WebServer(t, nil, actiontest.Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates
	return func(serve func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			secure := tls.Server(conn, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
			serve(secure)
			secure.Close()
		}
	}
}

// request waits for a whole request and returns its stream.
func (p *peer) request() uint32 {
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			return 1
		}
		if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
			return data.StreamID
		}
	}
}

// headers waits for the headers of a request.
func (p *peer) headers() {
	for {
		if frame, err := p.ReadFrame(); err != nil || frame.Header().Type == http2.FrameHeaders {
			return
		}
	}
}

// begin sends settings and waits for a request.
func (p *peer) begin(settings ...http2.Setting) uint32 {
	p.WriteSettings(settings...)
	return p.request()
}

// fields encodes headers, given as name and value in turn.
func (p *peer) fields(list ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(list); i += 2 {
		p.hpack.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// head sends headers.
func (p *peer) head(id uint32, last bool, list ...string) {
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: last, BlockFragment: p.fields(list...)})
}

// well sends the headers of a good answer.
func (p *peer) well(id uint32, more ...string) {
	p.head(id, false, append([]string{":status", "200", "content-type", "application/grpc"}, more...)...)
}

// message returns a gRPC message with its prefix.
func message(content ...byte) []byte { return append(messagePrefix(len(content)), content...) }

// same keeps the parts of an outcome on which both clients have to agree. grpc-go does not say
// why there was no connection.
func same(got action.Outcome) action.Outcome {
	if strings.HasPrefix(got.Output, "timeout: failed to connect") {
		return action.Outcome{Output: got.Output}
	}
	return action.Outcome{Success: got.Success, Reason: got.Reason}
}

// alike asks a server with both actions and compares their outcomes. With a short timeout, the
// speed of the machine also decides how far an attempt gets: if the outcomes differ, both
// actions get more time.
func alike(t *testing.T, name string, serve func(net.Conn), timeout time.Duration, service, mode string) {
	t.Helper()
	address := actiontest.Raw(t, serve)
	for {
		difference := differs(t, address, timeout, service, mode)
		switch {
		case difference == "":
			return
		case timeout > 5*time.Second:
			t.Errorf("%s: %s", name, difference)
			return
		}
		timeout *= 4
	}
}

// differs returns the difference between the two actions' outcomes.
func differs(t *testing.T, address string, timeout time.Duration, service, mode string) string {
	t.Helper()
	host, port := actiontest.Split(address)
	target, probe := targetOf(host), grpcOf(port, timeout, service, mode)
	want, err := newUsual(target, probe)(t.Context())
	if err != nil {
		return fmt.Sprintf("the usual way: %v", err)
	}
	action := New(target, probe)
	began := time.Now()
	for range 2 { // whatever the action remembers changes nothing
		got, err := actiontest.Tried(t, action)
		if err != nil || same(got) != same(want) {
			return fmt.Sprintf("error %v\ngot  %s %.500s\nwant %s %.500s", err, got.Reason, got.Output, want.Reason, want.Output)
		}
	}
	if took := time.Since(began); took > 2*(timeout+dial.Stretch)+time.Second {
		return fmt.Sprintf("two attempts took %v, timeout %v", took, timeout)
	}
	return ""
}

// Whatever a server answers, success, failure and reason are the same as with grpc-go.
func TestGRPCAlike(t *testing.T) {
	overTLS := encrypted(t)
	for name, c := range answers() {
		for mode, serve := range map[string]func(net.Conn){"Plaintext": script(c.serve), "TLS": overTLS(script(c.serve))} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				timeout := 10 * time.Second
				if c.late {
					timeout = 400 * time.Millisecond
				}
				alike(t, name, serve, timeout, c.service, mode)
			})
		}
	}
}

// A server that does not speak HTTP/2 also has the same outcome, text included, as with
// grpc-go.
func TestGRPCAlikeUnconnected(t *testing.T) {
	long := strings.Repeat("x", 20000)
	var all sync.WaitGroup
	for name, serve := range map[string]func(net.Conn){
		"mute":      actiontest.Mute,
		"hangs up":  actiontest.Say(""),
		"resets":    actiontest.ResetBy(""),
		"TLS alert": actiontest.Say("\x15\x03\x01\x00\x02\x02\x46"),
		"HTTP/1":    actiontest.Say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
		"HTTP/1, kept open": func(conn net.Conn) {
			actiontest.Say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")(conn)
			actiontest.Mute(conn)
		},
		"garbage":        actiontest.Say("garbage garbage"),
		"long garbage":   actiontest.Say(long),
		"zeros":          actiontest.Say(strings.Repeat("\x00", 20000)),
		"half a frame":   actiontest.Say("\x00\x00\x06\x04"),
		"endless":        actiontest.Forever("", long),
		"large SETTINGS": script(func(p *peer) { p.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 20000)) }),
		"bad SETTINGS":   script(func(p *peer) { p.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }),
		"bad window":     script(func(p *peer) { p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }),
		"PING first":     script(func(p *peer) { p.WritePing(false, [8]byte{}) }),
		"GOAWAY first":   script(func(p *peer) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }),
		"answer first":   script(func(p *peer) { p.head(1, true, ":status", "200", "grpc-status", "0") }),
		"CONTINUATION":   script(func(p *peer) { p.WriteContinuation(1, true, nil) }),
	} {
		for _, mode := range []string{"", "TLS"} {
			all.Go(func() { alike(t, name+", "+mode, serve, 400*time.Millisecond, "", mode) })
		}
	}
	all.Wait()
}

// A server sees the same requests from both clients, except for the time that is left. Over a Unix
// socket the authority is localhost.
func TestGRPCSeenAlike(t *testing.T) {
	for _, c := range []struct{ service, network, authority string }{
		{"", "tcp", "127.0.0.1:"}, {"a.b.C", "tcp", "127.0.0.1:"}, {"", "unix", "localhost\n"}, {"a.b.C", "unix", "localhost\n"},
	} {
		seen := make(chan []string, 1)
		l, err := net.Listen(c.network, map[string]string{"tcp": "127.0.0.1:0", "unix": actiontest.Socket(t)}[c.network])
		if err != nil {
			t.Fatal(err)
		}
		address := actiontest.RawOn(t, l, script(func(p *peer) {
			var list []string
			p.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
			p.WriteSettings()
			for {
				frame, err := p.ReadFrame()
				if err != nil {
					break
				}
				switch frame := frame.(type) {
				case *http2.SettingsFrame:
					if frame.IsAck() {
						continue // may come before or after the request
					}
				case *http2.MetaHeadersFrame:
					for _, f := range frame.Fields {
						list = append(list, regexp.MustCompile(`^\d+u$`).ReplaceAllString(f.Name+" "+f.Value, "TIME"))
					}
					last := len(list) - 1
					list[last] = regexp.MustCompile(`^grpc-timeout \d{1,8}[num]$`).ReplaceAllString(list[last], "grpc-timeout")
				case *http2.DataFrame:
					list = append(list, string(frame.Data()))
				}
				list = append(list, regexp.MustCompile(` len=\d+`).ReplaceAllString(frame.Header().String(), ""))
				if settings, ok := frame.(*http2.SettingsFrame); ok {
					settings.ForeachSetting(func(s http2.Setting) error { list = append(list, s.String()); return nil })
				}
				if update, ok := frame.(*http2.WindowUpdateFrame); ok {
					list = append(list, string(rune(update.Increment)))
				}
				if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
					break
				}
			}
			seen <- list
			p.head(1, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "5")
		}))
		host, port := actiontest.Split(address)
		probe := grpcOf(port, 5*time.Second, c.service, "")
		var lists []string
		for _, f := range []action.Func{newUsual(targetOf(host), probe), New(targetOf(host), probe)} {
			if got := actiontest.Attempt(t, f); !strings.Contains(got.Output, "NotFound") {
				t.Errorf("got %+v", got)
			}
			lists = append(lists, strings.Join(<-seen, "\n"))
		}
		if lists[0] != lists[1] {
			t.Errorf("the usual way:\n%s\nthis way:\n%s", lists[0], lists[1])
		}
		if !strings.Contains(lists[1], ":authority "+c.authority) {
			t.Errorf("%s: the authority is not %q:\n%s", c.network, c.authority, lists[1])
		}
	}
}
