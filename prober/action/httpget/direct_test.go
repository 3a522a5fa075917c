// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// bothWays returns a probe that asks directly, and the same probe that leaves everything to
// net/http.
func bothWays(address string, timeout time.Duration, h config.HTTPGet) (direct, library action.Func) {
	host, port := actiontest.Split(address)
	h.Port.Number = port
	t, p := &config.Target{Host: host}, &config.Probe{HTTPGet: &h, Timeout: timeout}
	reference := &httpGet{target: t, probe: p, http2: true}
	reference.plan.Store(&plan{})
	return New(t, p), reference.attempt
}

// hearer keeps what raw servers read from each connection.
type hearer struct {
	mu    sync.Mutex
	heard []string
}

// over returns a server that serves each connection with serve and keeps what serve reads.
func (h *hearer) over(serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		h.mu.Lock()
		h.heard = append(h.heard, "")
		at := len(h.heard) - 1
		h.mu.Unlock()
		serve(&hearing{Conn: conn, hearer: h, at: at})
	}
}

// take returns what the servers have read since the last call. It leaves out requests of other
// programs on this machine, which look for a server that had the port before.
func (h *hearer) take() (heard []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard, h.heard = h.heard, nil
	return slices.DeleteFunc(heard, func(s string) bool { return strings.Contains(s, "Go-http-client/") })
}

type hearing struct {
	net.Conn
	hearer *hearer
	at     int
}

func (c *hearing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.hearer.mu.Lock()
	defer c.hearer.mu.Unlock()
	if c.at < len(c.hearer.heard) {
		c.hearer.heard[c.at] += string(p[:n])
	}
	return n, err
}

// A probe sends the same bytes as net/http, on as many connections.
func TestDirectSendsTheSame(t *testing.T) {
	var h hearer
	address := actiontest.Raw(t, h.over(func(conn net.Conn) {
		var request []byte
		for buffer := make([]byte, 4096); !bytes.HasSuffix(request, []byte("\r\n\r\n")); {
			n, err := conn.Read(buffer)
			if request = append(request, buffer[:n]...); err != nil {
				return
			}
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}))
	_, port := actiontest.Split(address)
	headers := func(pairs ...string) (list []config.Header) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, config.Header{Name: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	for _, c := range []struct {
		path    string
		headers []config.Header
		direct  bool // not left to net/http
	}{
		{"/", nil, true},
		{"", nil, true},
		{"?a=b", nil, true},
		{"path/with?q=1&r=%20#fragment", nil, true},
		{"/bad%zz?x=1", nil, true},
		{"/sp ace/ü", nil, true},
		{"//x/y", nil, true},
		{"http://user:p%40ss@x/y", nil, true},
		{"http://user@x/y", nil, true},
		{"http://u:p@x/y", headers("Authorization", "Bearer t"), true},
		{"http://u:p@x/y", headers("Authorization", ""), true},
		{"/", headers("z-last", "1", "A-FIRST", "2", "z-LAST", "3", "m_m", " trimmed\t"), true},
		{"/", headers("Host", "example.com:81"), true},
		{"/", headers("hOsT", ""), true},
		{"/", headers("Host", "a", "Host", "b"), true},
		{"/", headers("Host", "a b/c"), false},
		{"/", headers("Host", "bücher.example"), false},
		{"/", headers("Host", "[fe80::1%25eth0]"), false},
		{"/", headers("User-Agent", ""), true},
		{"/", headers("User-Agent", " x\ty "), true},
		{"/", headers("Accept", "", "Accept", "x"), true},
		{"/", headers("Accept-Encoding", ""), true},
		{"/", headers("Content-Length", "5"), true},
		{"/", headers("X-Umlaut", "ü\xff"), true},
		{"/", headers("Cookie", "a=b; c=d"), true},
		{"/", headers("Connection", "Keep-Alive"), false},
		{"/", headers("Connection", "close"), false},
		{"/", headers("Connection", "Upgrade", "Upgrade", "x"), false},
		{"/", headers("Expect", "100-continue"), false},
		{"/", headers("Transfer-Encoding", "chunked"), false},
		{"/", headers("Trailer", "x"), false},
		{"/", headers("X A", "1"), false},
		{"/", headers("X-A", "a\nb"), false},
		{"/" + strings.Repeat("x", 5000), nil, false},
	} {
		get := config.HTTPGet{Path: c.path, Headers: c.headers}
		direct, library := bothWays(address, 5*time.Second, get)
		gotOutcome := actiontest.Attempt(t, direct)
		got := h.take()
		wantOutcome := actiontest.Attempt(t, library)
		want := h.take()
		if gotOutcome != wantOutcome || !slices.Equal(got, want) {
			t.Errorf("%q %q:\ngot  %+v %q\nwant %+v %q", c.path, c.headers, gotOutcome, got, wantOutcome, want)
		}
		get.Port.Number = port
		p, err := newPlan(&config.Target{Host: "127.0.0.1"}, &get)
		if err != nil || p.direct() != c.direct {
			t.Errorf("%q %q: plan %+v, error %v, want direct %v", c.path, c.headers, p, err, c.direct)
		}
		if !p.direct() {
			continue
		}
		if request := string(p.request(nil, "127.0.0.1", port)); request != want[0] {
			t.Errorf("%q %q: the plan is to send %q, want %q", c.path, c.headers, request, want[0])
		}
	}
}

// stay reads until the client has closed the connection. Over TLS the client's goodbye comes
// before that, and an answer to the goodbye would count as an answer to the request.
func stay(conn net.Conn) {
	actiontest.Mute(conn)
	if h, ok := conn.(*hearing); ok {
		if client, ok := h.Conn.(*tls.Conn); ok {
			actiontest.Mute(client.NetConn())
		}
	}
}

// ownPort matches the agent's own port in the texts of errors. late matches the error before
// net/http's words for a timeout: usually the context's error, sometimes that of a read that
// ended sooner.
var (
	ownPort = regexp.MustCompile(`(\d+)->`)
	late    = regexp.MustCompile(`(/p": |read body: ).* \(Client\.Timeout`)
)

// rawAnswers are answers of servers, good and bad, and servers without an answer.
var rawAnswers = func() map[string]func(net.Conn) {
	const head = "HTTP/1.1 200 OK\r\n"
	long := strings.Repeat("x", 1000)
	quiet := func(text string) func(net.Conn) {
		return func(conn net.Conn) { actiontest.Say(text)(conn); stay(conn) }
	}
	return map[string]func(net.Conn){
		"silence":                stay,
		"hangs up":               actiontest.Say(""),
		"garbage":                actiontest.Say("garbage\r\n\r\n"),
		"no line":                actiontest.Say("SSH-2.0-x\r\n"),
		"half a line":            actiontest.Say("HTTP/1.1 20"),
		"half a line, silence":   quiet("HTTP/1.1 20"),
		"endless garbage":        actiontest.Forever("", long),
		"bad status":             actiontest.Say("HTTP/1.1 -1 x\r\n\r\n"),
		"status 099":             actiontest.Say("HTTP/1.1 099 x\r\n\r\nbody"),
		"status 999":             actiontest.Say("HTTP/1.1 999 x\r\n\r\nbody"),
		"bad version":            actiontest.Say("HTTQ/1.1 200 OK\r\n\r\n"),
		"HTTP/1.0":               actiontest.Say("HTTP/1.0 200 OK\r\n\r\nbody"),
		"HTTP/3.7":               actiontest.Say("HTTP/3.7 200 OK\r\n\r\nbody"),
		"no reason phrase":       actiontest.Say("HTTP/1.1 200\r\n\r\nbody"),
		"bare newlines":          actiontest.Say("HTTP/1.1 200 OK\nContent-Length: 4\n\nbody"),
		"bad header":             actiontest.Say(head + "a b\r\n\r\n"),
		"folded header":          actiontest.Say(head + "A: b\r\n c\r\n\r\nbody"),
		"header cut":             actiontest.Say(head + "A: b\r\n"),
		"header, silence":        quiet(head + "A: b\r\n"),
		"endless header":         actiontest.Forever(head, "A: "+long+"\r\n"),
		"header of 64 KiB":       actiontest.Say(head + "A: " + strings.Repeat("a", 64<<10-len(head)-7) + "\r\n\r\nbody"),
		"header of 60 KiB":       actiontest.Say(head + strings.Repeat("A: "+long[:500]+"\r\n", 120) + "\r\nbody"),
		"endless 1xx":            actiontest.Forever("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"),
		"1xx, then 200":          actiontest.Say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\n" + head + "\r\nbody"),
		"1xx, silence":           quiet("HTTP/1.1 100 Continue\r\n\r\n"),
		"101":                    quiet("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nmore"),
		"101, no upgrade":        actiontest.Say("HTTP/1.1 101 x\r\n\r\nmore"),
		"204 with a body":        actiontest.Say("HTTP/1.1 204 x\r\nContent-Length: 4\r\n\r\nbody"),
		"304 with a body":        actiontest.Say("HTTP/1.1 304 x\r\n\r\nbody"),
		"304, quiet":             quiet("HTTP/1.1 304 x\r\n\r\n"),
		"500":                    actiontest.Say("HTTP/1.1 500 x\r\nContent-Length: 4\r\n\r\nbody"),
		"500 cut":                actiontest.Say("HTTP/1.1 500 x\r\nContent-Length: 5\r\n\r\nbody"),
		"length":                 quiet(head + "Content-Length: 4\r\n\r\nbody"),
		"length and more":        quiet(head + "Content-Length: 4\r\n\r\nbodymore"),
		"length 0":               quiet(head + "Content-Length: 0\r\n\r\nmore"),
		"length cut":             actiontest.Say(head + "Content-Length: 5\r\n\r\nbody"),
		"length twice, same":     actiontest.Say(head + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody"),
		"length twice":           actiontest.Say(head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody"),
		"length bad":             actiontest.Say(head + "Content-Length: +4\r\n\r\nbody"),
		"length empty":           actiontest.Say(head + "Content-Length:\r\n\r\nbody"),
		"length huge":            quiet(head + "Content-Length: 99999999999\r\n\r\n" + strings.Repeat(long, 11)),
		"body until the end":     actiontest.Say(head + "\r\nbody"),
		"body, silence":          quiet(head + "\r\nbody"),
		"endless body":           actiontest.Forever(head+"\r\n", long),
		"10240 bytes":            quiet(head + "\r\n" + strings.Repeat("x", action.MaxOutput)),
		"10239 bytes, silence":   quiet(head + "\r\n" + strings.Repeat("x", action.MaxOutput-1)),
		"chunks":                 actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nbo\r\n2\r\ndy\r\n0\r\nT: x\r\n\r\n"),
		"chunks, length":         actiontest.Say(head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
		"chunks cut":             actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\n4\r\nbo"),
		"chunks, no end":         actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n"),
		"chunk bad":              actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\nx\r\n"),
		"chunk line endless":     actiontest.Forever(head+"Transfer-Encoding: chunked\r\n\r\n1;", long),
		"trailer endless":        actiontest.Forever(head+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: "+long+"\r\n"),
		"trailer cut":            actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: "),
		"encoding identity":      actiontest.Say(head + "Transfer-Encoding: identity\r\n\r\nbody"),
		"encoding twice":         actiontest.Say(head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		"encoding in HTTP/1.0":   actiontest.Say("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbody"),
		"gzip":                   actiontest.Say(head + "Content-Encoding: gzip\r\n\r\nnot really"),
		"301 without Location":   actiontest.Say("HTTP/1.1 301 x\r\nContent-Length: 4\r\n\r\nbody"),
		"302 away":               actiontest.Say("HTTP/1.1 302 x\r\nLocation: http://elsewhere.invalid/\r\n\r\nbody"),
		"302 away, silence":      quiet("HTTP/1.1 302 x\r\nLocation: http://elsewhere.invalid/\r\n\r\n"),
		"302 to nowhere":         actiontest.Say("HTTP/1.1 302 x\r\nLocation: http://[::1/\r\n\r\nbody"),
		"302 to itself":          actiontest.Say("HTTP/1.1 302 x\r\nLocation: /again\r\nContent-Length: 4\r\n\r\nbody"),
		"302 to itself, silence": quiet("HTTP/1.1 302 x\r\nLocation: /again\r\nContent-Length: 4\r\n\r\n"),
		"302 over TLS or not":    actiontest.Say("HTTP/1.1 302 x\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 4\r\n\r\nbody"),
		"305":                    actiontest.Say("HTTP/1.1 305 x\r\nLocation: /again\r\nContent-Length: 4\r\n\r\nbody"),
		"308 to itself":          actiontest.Say("HTTP/1.1 308 x\r\nLocation: ?q\r\nSet-Cookie: a=b\r\n\r\nbody"),
		"HTTP/2 preface":         actiontest.Say("\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
		"TLS alert":              actiontest.Say("\x15\x03\x01\x00\x02\x02\x46"),
		"resets":                 actiontest.ResetBy(""),
		"resets in the header":   actiontest.ResetBy(head),
		"resets in the body":     actiontest.ResetBy(head + "Content-Length: 9\r\n\r\nbody"),
		"resets after the body":  actiontest.ResetBy(head + "Content-Length: 4\r\n\r\nbody"),
	}
}()

// Whatever a server answers, with TLS or without, a probe that asks directly says the same as a
// probe that leaves everything to net/http, and asks as often.
func TestDirectHearsTheSame(t *testing.T) {
	certificate := actiontest.WebServer(t, nil, actiontest.Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates[0]
	var wg sync.WaitGroup
	running := make(chan struct{}, 8) // many of the attempts only wait for their timeout
	for name, serve := range rawAnswers {
		for _, scheme := range []string{"HTTP", "HTTPS"} {
			if scheme == "HTTPS" && strings.HasPrefix(name, "resets") {
				continue // these need a bare connection
			}
			running <- struct{}{}
			wg.Go(func() {
				defer func() { <-running }()
				var h hearer
				over := h.over(serve)
				if scheme == "HTTPS" {
					over = func(conn net.Conn) {
						client := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
						h.over(serve)(client)
						client.Close()
					}
				} else if strings.HasPrefix(name, "resets") {
					over = serve
				}
				get := config.HTTPGet{Path: "/p", Scheme: scheme, Headers: []config.Header{{Name: "Host", Value: "example.com"}}}
				timeout := 30 * time.Second
				if strings.HasSuffix(name, "silence") {
					timeout = 700 * time.Millisecond
				}
				direct, library := bothWays(actiontest.Raw(t, over), timeout, get)
				var heard []string
				alone := func(f action.Func) action.Func {
					return func(ctx context.Context) (action.Outcome, error) {
						got, err := f(ctx)
						heard = h.take()
						return got, err
					}
				}
				got := said(actiontest.Tried(t, alone(direct)))
				gotHeard := heard
				want := said(actiontest.Tried(t, alone(library)))
				wantHeard := heard
				if got != want {
					t.Errorf("%s over %s:\ngot  %.500s\nwant %.500s", name, scheme, got, want)
				}
				if !slices.Equal(gotHeard, wantHeard) {
					t.Errorf("%s over %s: the server heard %q, want %q", name, scheme, gotHeard, wantHeard)
				}
			})
		}
	}
	wg.Wait()
}

// said returns everything that an attempt says, without the parts that may differ between two
// attempts.
func said(got action.Outcome, err error) string {
	text := string(got.Reason) + "|" + got.Output
	if got.Success {
		text = "success|" + text
	}
	if got.Warning {
		text = "warning|" + text
	}
	if err != nil {
		text += "|error " + err.Error()
	}
	return late.ReplaceAllString(ownPort.ReplaceAllString(text, "PORT->"), "$1late (Client.Timeout")
}
