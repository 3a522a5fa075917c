// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unique"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// maxWire is the longest request that is written at once: it fits into the buffer of a new
// connection, so that a write never waits for a server that answers before it reads. Longer
// requests go to net/http, which reads and writes at the same time.
const maxWire = 4 << 10

// plan is a probe's request, encoded once. The zero value leaves attempts to net/http.
//
// Tens of thousands of plans may differ only in host and port, so they share the text before and
// after these.
type plan struct {
	before, after unique.Handle[string] // the request, as net/http writes it
	named         bool                  // host and port come between the two
	secure        bool                  // over TLS
}

// newPlan returns the plan for a probe, or an error if there can be no request.
func newPlan(t *config.Target, h *config.HTTPGet) (*plan, error) {
	request, err := newRequest(t, h)
	if err != nil {
		return nil, err
	}
	host := cmp.Or(h.Host, t.Host)
	// A socket is not what its URL has for a host.
	if !plain(request, h) || request.URL.Hostname() != host {
		return &plan{}, nil
	}
	wire, ok := wireOf(request)
	if !ok {
		return &plan{}, nil
	}
	p := &plan{secure: request.URL.Scheme == "https"}
	before, after := wire, ""
	if i := strings.Index(wire, "\r\n"+hostField); i >= 0 {
		i += len("\r\n" + hostField)
		after, p.named = strings.CutPrefix(wire[i:], dial.HostPort(host, h.Port.Number))
		if p.named {
			before = wire[:i]
		} else {
			after = ""
		}
	}
	p.before, p.after = unique.Make(before), unique.Make(after)
	return p, nil
}

// hostField is the beginning of net/http's first header.
const hostField = "Host: "

// direct reports whether this package makes the request, and not net/http.
func (p *plan) direct() bool { return *p != plan{} }

// request appends the request to b.
func (p *plan) request(b []byte, host string, port int) []byte {
	b = append(b, p.before.Value()...)
	switch {
	case !p.named:
	case strings.Contains(host, ":"):
		b = append(b, dial.HostPort(host, port)...)
	default: // like HostPort, but without a string
		b = strconv.AppendInt(append(append(b, host...), ':'), int64(port), 10)
	}
	return append(b, p.after.Value()...)
}

// plain reports whether net/http has no special rules for a request: for its scheme or protocol,
// for a host that is written in another way than it is dialed, or for a header that is refused or
// affects the connection. Nothing may be expected of the answer but its status.
func plain(request *http.Request, h *config.HTTPGet) bool {
	if s := request.URL.Scheme; s != "http" && s != "https" || h.Protocol == "HTTP2" || h.Expect != nil || !ordinary(request.URL, request.Host) {
		return false
	}
	for name, values := range request.Header {
		switch name {
		case "Connection", "Upgrade", "Expect", "Transfer-Encoding", "Trailer":
			return false
		}
		if strings.Trim(name, letters+digits+"-_") != "" {
			return false
		}
		for _, value := range values {
			if strings.ContainsFunc(value, control) {
				return false
			}
		}
	}
	return true
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// ordinary reports whether the hosts in a URL and in the Host header consist only of the
// characters of names and addresses.
func ordinary(u *url.URL, named string) bool {
	return u.Hostname() != "" && strings.Trim(u.Host+named, letters+digits+"-._:[]") == ""
}

// control reports whether r may be refused in the value of a header.
func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// wireOf returns a request as net/http sends it over a connection that is not kept: with the
// userinfo of its URL as a header, and "Connection: close" last.
func wireOf(request *http.Request) (wire string, ok bool) {
	if user := request.URL.User; user != nil && request.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	var b bytes.Buffer
	if err := request.Write(&b); err != nil {
		return "", false
	}
	head, found := bytes.CutSuffix(b.Bytes(), []byte("\r\n"))
	wire = string(head) + "Connection: close\r\n\r\n"
	return wire, found && len(wire) <= maxWire
}
