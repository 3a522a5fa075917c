// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// wrapped wraps an error of a system call as a dial over HTTP does.
func wrapped(errno error) error {
	return &url.Error{Op: "Get", URL: "http://x/", Err: &net.OpError{
		Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno),
	}}
}

// Classify finds an error however deep others wrap it.
func TestClassify(t *testing.T) {
	for _, group := range errnos {
		for _, errno := range group.errs {
			if got := Classify(wrapped(errno)); got != group.reason {
				t.Errorf("%v: got %s, want %s", errno, got, group.reason)
			}
		}
	}
	for _, c := range []struct {
		err  error
		want Reason
	}{
		{context.DeadlineExceeded, Timeout},
		{wrapped(os.ErrDeadlineExceeded), Timeout},
		{&net.DNSError{Err: "i/o timeout", IsTimeout: true}, Timeout},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, DNS},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), ConnectionReset},
		{io.EOF, ConnectionReset},
		{http.ErrSchemeMismatch, TLS},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, TLS},
		{errors.New("tls: server selected unsupported protocol version 301"), TLS},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New(`malformed HTTP response "x"`)), HTTPProtocol},
		{ErrRedirects, HTTPProtocol},
		{errors.New(`anything that quotes "tls: "`), Other},
		{context.Canceled, Other},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// If the agent has run out of a resource, the attempt is an error and counts for nothing.
func TestFailedForWantOfResources(t *testing.T) {
	for _, errno := range exhausted {
		lookup := &net.DNSError{Name: "app", Err: "dial udp 127.0.0.53:53: socket: " + errno.Error()}
		for _, err := range []error{wrapped(errno), &net.OpError{Op: "dial", Err: lookup}} {
			got, failure := Failed(t.Context(), err, "text")
			if failure == nil || got != (Outcome{Reason: Other, Output: "text"}) {
				t.Errorf("%v: got %+v, error %v", err, got, failure)
			}
		}
	}
	if got, err := Failed(t.Context(), &net.DNSError{Err: "no such host"}, "text"); err != nil || got.Reason != DNS {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// Redact hides passwords in URLs, and nothing else.
func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		`Get "http://u:p@h:1/x": EOF`:       `Get "http://u:***@h:1/x": EOF`,
		`Get "http://u:***@h:1/x": EOF`:     `Get "http://u:***@h:1/x": EOF`,
		`"//u:p@ss:w@h" "https://:p@[::1]"`: `"//u:***@h" "https://:***@[::1]"`,
		`Get "http://u@h:1/x": EOF`:         `Get "http://u@h:1/x": EOF`,
		`"http://h:1/http://u@x:p@y/%25zz"`: `"http://h:1/http://u@x:***@y/%25zz"`,
		`Get "http://[::1]:80/a@b:c@d"`:     `Get "http://[::1]:80/a@b:c@d"`,
		`Get "http://h:1?mail=a:b@c#d:e@f"`: `Get "http://h:1?mail=a:b@c#d:e@f"`,
		`dial tcp [::1]:80: a@b`:            `dial tcp [::1]:80: a@b`,
	} {
		if got := Redact(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if text := strings.Repeat("//u:", 1000); Redact(text) != text {
		t.Error("Redact changes a text without userinfo")
	}
}
