// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// Whatever a server does, an attempt ends in time and says why it failed.
func TestHTTPGetHostileServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name    string
		serve   func(net.Conn)
		want    action.Outcome // Output is a part of the text
		wantErr string
	}{
		{name: "says nothing", serve: actiontest.Mute, want: action.Outcome{Reason: action.Timeout, Output: "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"}},
		{name: "hangs up", serve: actiontest.Say(""), want: action.Outcome{Reason: action.ConnectionReset, Output: ": EOF"}},
		{name: "resets", serve: actiontest.ResetBy(""), want: action.Outcome{Reason: action.ConnectionReset, Output: "connection reset by peer"}},
		{name: "garbage", serve: actiontest.Say("garbage\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: `malformed HTTP response "garbage"`}},
		{name: "endless garbage", serve: actiontest.Forever("", long), want: action.Outcome{Reason: action.HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "another protocol", serve: actiontest.Say("SSH-2.0-OpenSSH_9.9\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "malformed HTTP"}},
		{name: "bad status", serve: actiontest.Say("HTTP/1.1 -1 broken\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "malformed HTTP status code"}},
		{name: "bad header", serve: actiontest.Say(head + "a b\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "malformed MIME header"}},
		{name: "bad length", serve: actiontest.Say(head + "Content-Length: x\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "bad Content-Length"}},
		{name: "two lengths", serve: actiontest.Say(head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "multiple Content-Length"}},
		{name: "bad encoding", serve: actiontest.Say(head + "Transfer-Encoding: x\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "unsupported transfer encoding"}},
		{name: "cut header", serve: actiontest.Say(head + "A: b\r\n"), want: action.Outcome{Reason: action.ConnectionReset, Output: "unexpected EOF"}},
		{name: "endless header", serve: actiontest.Forever(head, "A: "+long+"\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "endless 1xx", serve: actiontest.Forever("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"), want: action.Outcome{Reason: action.HTTPProtocol, Output: "server response headers exceeded 65536 bytes; aborted"}},
		{name: "switches protocols", serve: func(conn net.Conn) {
			actiontest.Say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")(conn)
			actiontest.Mute(conn)
		}, want: action.Outcome{Reason: action.HTTPStatus, Output: "HTTP probe failed with statuscode: 101"}},
		{name: "endless body", serve: actiontest.Forever(head+"\r\n", long), want: action.Outcome{Success: true, Output: long}},
		{name: "slow body", serve: func(conn net.Conn) { actiontest.Say(head + "\r\nbegun")(conn); actiontest.Mute(conn) }, want: action.Outcome{Reason: action.Timeout}, wantErr: "(Client.Timeout or context cancellation while reading body)"},
		{name: "cut body", serve: actiontest.Say(head + "Content-Length: 9\r\n\r\nbegun"), want: action.Outcome{Reason: action.ConnectionReset}, wantErr: "read body: unexpected EOF"},
		{name: "bad chunk", serve: actiontest.Say(head + "Transfer-Encoding: chunked\r\n\r\nx\r\n"), want: action.Outcome{Reason: action.HTTPProtocol}, wantErr: "read body: invalid byte in chunk length"},
		{name: "endless chunk line", serve: actiontest.Forever(head+"Transfer-Encoding: chunked\r\n\r\n1;", long), want: action.Outcome{Reason: action.HTTPProtocol}, wantErr: "read body: header line too long"},
		{name: "endless trailer", serve: actiontest.Forever(head+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: "+long+"\r\n"), want: action.Outcome{Reason: action.HTTPProtocol}, wantErr: "read body: http: suspiciously long trailer after chunked body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got, err := actiontest.Tried(t, httpProbe(actiontest.Raw(t, c.serve), 700*time.Millisecond, config.HTTPGet{Path: "/"}))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, timeout 700ms", took)
			}
			if (err != nil) != (c.wantErr != "") || err != nil && !strings.HasSuffix(err.Error(), c.wantErr) {
				t.Errorf("error %v, want %q", err, c.wantErr)
			}
			if got.Success != c.want.Success || got.Reason != c.want.Reason || !strings.Contains(got.Output, c.want.Output) || len(got.Output) > action.MaxOutput {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Header and body are bounded over HTTP/2, too.
func TestHTTPGetHostileHTTP2(t *testing.T) {
	endless := actiontest.WebServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	}), actiontest.Protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2), true).Listener.Addr().String()
	for _, c := range []struct {
		path string
		want action.Outcome
	}{
		{"/header", action.Outcome{Reason: action.HTTPProtocol, Output: "connection error: PROTOCOL_ERROR"}},
		{"/1xx", action.Outcome{Reason: action.HTTPProtocol, Output: "header list too large"}},
		{"/abort", action.Outcome{Reason: action.HTTPProtocol, Output: "stream error: stream ID 1; INTERNAL_ERROR"}},
		{"/body", action.Outcome{Success: true, Output: strings.Repeat("x", action.MaxOutput)}},
	} {
		got := actiontest.Attempt(t, httpProbe(endless, 5*time.Second, config.HTTPGet{Path: c.path, Scheme: "HTTPS"}))
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
	address := actiontest.WebServer(t, endless, actiontest.Protocols((*http.Protocols).SetUnencryptedHTTP2), false).Listener.Addr().String()
	header := actiontest.Raw(t, actiontest.Forever("HTTP/1.1 200 OK\r\nA: ", strings.Repeat("x", 4096)))
	for _, f := range []action.Func{
		httpProbe(address, 5*time.Second, config.HTTPGet{Path: "/", Protocol: "HTTP2"}),
		httpProbe(header, 5*time.Second, config.HTTPGet{Path: "/"}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		actiontest.Attempt(t, f)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
			t.Errorf("%d bytes allocated", grown)
		}
	}
}
