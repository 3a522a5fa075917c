// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// recordedRow is a row of testdata/handlers.txt.
type recordedRow struct {
	name, want string
}

func readRows(t *testing.T) []recordedRow {
	t.Helper()
	content, err := os.ReadFile("testdata/handlers.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows []recordedRow
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, want, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatalf("bad row %q", line)
		}
		rows = append(rows, recordedRow{name, want})
	}
	return rows
}

// shown formats an outcome as the rows do.
func shown(got action.Outcome, err error, took time.Duration) string {
	if err != nil && strings.HasPrefix(err.Error(), "build request: ") {
		return "request error: " + strings.TrimPrefix(err.Error(), "build request: ")
	}
	result := "failure"
	switch {
	case got.Warning:
		result = "warning"
	case got.Success:
		result = "success"
	}
	reason := "<nil>"
	if err != nil {
		reason = strings.TrimPrefix(err.Error(), "read body: ")
	}
	output := strconv.Quote(got.Output)
	if len(got.Output) > 5000 {
		output = fmt.Sprintf("%q", got.Output[:20]+"… len "+strconv.Itoa(len(got.Output)))
	}
	// The recorded times are only 0.0 and 1.0, and a busy machine is slow: the seconds say
	// whether the action waited.
	return fmt.Sprintf("%s err=%s %d.0s %s", result, reason, min(int(took.Seconds()), 1), output)
}

// Every recorded case gives the same result, error, seconds and output as the kubelet's
// handler.
func TestRecordedHandlers(t *testing.T) {
	plain := actiontest.Web(t, actiontest.Site())
	secure := actiontest.WebServer(t, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), true).Listener.Addr().String()
	healthy, bare, encrypted := actiontest.RPC(t, false, true), actiontest.RPC(t, false, false), actiontest.RPC(t, true, true)
	const closed = "127.0.0.1:1"
	if conn, err := net.Dial("tcp", closed); err == nil {
		conn.Close()
		needs.Missing(t, "port 1, on which something listens")
	}

	get := func(h config.HTTPGet) (action.Func, string) { return httpProbe(plain, time.Second, h), plain }
	path := func(format string, args ...any) (action.Func, string) {
		return get(config.HTTPGet{Path: fmt.Sprintf(format, args...)})
	}
	redirect := func(to string) string { return "/code?c=302&loc=" + url.QueryEscape(to) }
	special := map[string]func() (action.Func, string){
		"302 other host":            func() (action.Func, string) { return path("%s", redirect("http://localhost:1/x")) },
		"302 bad location":          func() (action.Func, string) { return path("%s", redirect("http://[::1/x")) },
		"302 same host closed port": func() (action.Func, string) { return path("%s", redirect("http://127.0.0.1:1/x")) },
		"reset":                     func() (action.Func, string) { return path("/reset") },
		"bigslow":                   func() (action.Func, string) { return path("/bigslow") },
		"refused":                   func() (action.Func, string) { return httpProbe(closed, time.Second, config.HTTPGet{Path: "/"}), closed },
		"port string 0": func() (action.Func, string) {
			return httpProbe("127.0.0.1:0", time.Second, config.HTTPGet{Path: "/"}), closed
		},
		"ftp scheme": func() (action.Func, string) {
			return httpProbe(closed, time.Second, config.HTTPGet{Path: "/", Scheme: "FTP"}), closed
		},
		"host with space": func() (action.Func, string) {
			return httpProbe("a b:1", time.Second, config.HTTPGet{Path: "/"}), closed
		},
		"https to http": func() (action.Func, string) { return get(config.HTTPGet{Path: "/h", Scheme: "HTTPS"}) },
		"http to https": func() (action.Func, string) {
			return httpProbe(secure, time.Second, config.HTTPGet{Path: "/h"}), secure
		},
		"host abs redirect": func() (action.Func, string) {
			return get(config.HTTPGet{Path: redirect("http://" + plain + "/h"), Headers: []config.Header{{Name: "Host", Value: "example.com"}}})
		},
		"tcp refused":        func() (action.Func, string) { return tcpProbe(closed, time.Second), closed },
		"grpc unimplemented": func() (action.Func, string) { return grpcProbe(bare, time.Second, "", ""), bare },
		"grpc refused":       func() (action.Func, string) { return grpcProbe(closed, time.Second, "", ""), closed },
		"grpc tls server":    func() (action.Func, string) { return grpcProbe(encrypted, time.Second, "", ""), encrypted },
	}
	headers := map[string][]config.Header{
		"none":            nil,
		"host":            {{Name: "Host", Value: "example.com"}},
		"hOsT empty":      {{Name: "hOsT", Value: ""}},
		"ua accept empty": {{Name: "User-Agent", Value: ""}, {Name: "Accept", Value: ""}},
		"accept ''+x":     {{Name: "Accept", Value: ""}, {Name: "Accept", Value: "x"}},
		"dup":             {{Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}},
		"invalid value":   {{Name: "X-A", Value: "a\nb"}},
		"invalid name":    {{Name: "X A", Value: "1"}},
		"content-length":  {{Name: "Content-Length", Value: "5"}},
	}
	build := func(t *testing.T, name string) (action.Func, string) {
		if f := special[name]; f != nil {
			return f()
		}
		kind, arg, _ := strings.Cut(name, " ")
		switch kind {
		case "code":
			return path("/code?c=%s", arg)
		case "len":
			return path("/len?n=%s", arg)
		case "redirects":
			return path("/loop?n=%s", arg)
		case "path":
			return path("%s", arg)
		case "hdr":
			list, ok := headers[arg]
			if !ok {
				break
			}
			return get(config.HTTPGet{Path: "/h", Headers: list})
		case "grpc":
			return grpcProbe(healthy, time.Second, arg, ""), healthy
		}
		t.Fatal("no such case")
		return nil, ""
	}

	for _, row := range readRows(t) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f, address := build(t, row.name)
			var text string
			for range 5 { // another try if this process did not get to run meanwhile
				began := time.Now()
				got, err := f(t.Context())
				text = shown(got, err, time.Since(began))
				if got.Reason != action.AgentLate {
					break
				}
			}
			if address != closed {
				_, port := actiontest.Split(address)
				text = strings.NewReplacer(
					fmt.Sprintf(":%d", port), ":PORT", fmt.Sprintf("%%3A%d", port), "%3APORT",
					action.UserAgent, "kube-probe/.").Replace(text)
			}
			if text != row.want {
				t.Errorf("got  %s\nwant %s", text, row.want)
			}
		})
	}
}
