// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// Whatever a server does, an attempt ends in time and says why.
func TestHTTPGetHostileServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name    string
		serve   func(net.Conn)
		want    Outcome // of Output, the text that it contains
		wantErr string
	}{
		{name: "says nothing", serve: mute, want: Outcome{Reason: Timeout, Output: "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"}},
		{name: "hangs up", serve: say(""), want: Outcome{Reason: ConnectionReset, Output: ": EOF"}},
		{name: "resets", serve: resetBy(""), want: Outcome{Reason: ConnectionReset, Output: "connection reset by peer"}},
		{name: "garbage", serve: say("garbage\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: `malformed HTTP response "garbage"`}},
		{name: "endless garbage", serve: forever("", long), want: Outcome{Reason: HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "another protocol", serve: say("SSH-2.0-OpenSSH_9.9\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "malformed HTTP"}},
		{name: "bad status", serve: say("HTTP/1.1 -1 broken\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "malformed HTTP status code"}},
		{name: "bad header", serve: say(head + "a b\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "malformed MIME header"}},
		{name: "bad length", serve: say(head + "Content-Length: x\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "bad Content-Length"}},
		{name: "two lengths", serve: say(head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "multiple Content-Length"}},
		{name: "bad encoding", serve: say(head + "Transfer-Encoding: x\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "unsupported transfer encoding"}},
		{name: "cut header", serve: say(head + "A: b\r\n"), want: Outcome{Reason: ConnectionReset, Output: "unexpected EOF"}},
		{name: "endless header", serve: forever(head, "A: "+long+"\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "endless 1xx", serve: forever("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"), want: Outcome{Reason: HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "switches protocols", serve: func(conn net.Conn) {
			say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")(conn)
			mute(conn)
		}, want: Outcome{Reason: HTTPStatus, Output: "HTTP probe failed with statuscode: 101"}},
		{name: "endless body", serve: forever(head+"\r\n", long), want: Outcome{Success: true, Output: long}},
		{name: "slow body", serve: func(conn net.Conn) { say(head + "\r\nbegun")(conn); mute(conn) }, want: Outcome{Reason: Timeout}, wantErr: "(Client.Timeout or context cancellation while reading body)"},
		{name: "cut body", serve: say(head + "Content-Length: 9\r\n\r\nbegun"), want: Outcome{Reason: ConnectionReset}, wantErr: "read body: unexpected EOF"},
		{name: "bad chunk", serve: say(head + "Transfer-Encoding: chunked\r\n\r\nx\r\n"), want: Outcome{Reason: HTTPProtocol}, wantErr: "read body: invalid byte in chunk length"},
		{name: "endless chunk line", serve: forever(head+"Transfer-Encoding: chunked\r\n\r\n1;", long), want: Outcome{Reason: HTTPProtocol}, wantErr: "read body: header line too long"},
		{name: "endless trailer", serve: forever(head+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: "+long+"\r\n"), want: Outcome{Reason: HTTPProtocol}, wantErr: "read body: http: suspiciously long trailer after chunked body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got, err := tried(t, httpProbe(raw(t, c.serve), 700*time.Millisecond, config.HTTPGet{Path: "/"}))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, timeout 700ms", took)
			}
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.HasSuffix(err.Error(), c.wantErr) {
				t.Errorf("error %v, want %q", err, c.wantErr)
			}
			if got.Success != c.want.Success || got.Reason != c.want.Reason || !strings.Contains(got.Output, c.want.Output) || len(got.Output) > maxOutput {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Over HTTP/2, too, header and body are bounded.
func TestHTTPGetHostileHTTP2(t *testing.T) {
	endless := webServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			for _, c := range "abcdefghijklmnopqrstuvwxyz" {
				w.Header().Set("X-"+string(c), strings.Repeat("x", 4000))
			}
		case "/1xx":
			w.Header().Set("X", strings.Repeat("x", 4000))
			for range 100 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/body":
			for r.Context().Err() == nil {
				io.WriteString(w, strings.Repeat("x", 1000))
			}
		}
	}), protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2), true).Listener.Addr().String()
	for _, c := range []struct {
		path string
		want Outcome
	}{
		{"/header", Outcome{Reason: HTTPProtocol, Output: "connection error: PROTOCOL_ERROR"}},
		{"/1xx", Outcome{Reason: HTTPProtocol, Output: "header list too large"}},
		{"/abort", Outcome{Reason: HTTPProtocol, Output: "stream error: stream ID 1; INTERNAL_ERROR"}},
		{"/body", Outcome{Success: true, Output: strings.Repeat("x", maxOutput)}},
	} {
		got := attempt(t, httpProbe(endless, 5*time.Second, config.HTTPGet{Path: c.path, Scheme: "HTTPS"}))
		if got.Success != c.want.Success || got.Reason != c.want.Reason || !strings.Contains(got.Output, c.want.Output) {
			t.Errorf("%s: got %.300v, want %.300v", c.path, got, c.want)
		}
	}
}

// An endless answer costs an attempt less than 2 MiB, over either protocol.
func TestHTTPGetMemory(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("x", 4096))
		for r.Context().Err() == nil {
			w.Write(chunk)
		}
	})
	address := webServer(t, endless, protocols((*http.Protocols).SetUnencryptedHTTP2), false).Listener.Addr().String()
	header := raw(t, forever("HTTP/1.1 200 OK\r\nA: ", strings.Repeat("x", 4096)))
	for _, f := range []Func{
		httpProbe(address, 5*time.Second, config.HTTPGet{Path: "/", Protocol: "HTTP2"}),
		httpProbe(header, 5*time.Second, config.HTTPGet{Path: "/"}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		attempt(t, f)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
			t.Errorf("%d bytes allocated", grown)
		}
	}
}
