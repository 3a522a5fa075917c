// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// A timeout after a slow read of the agent's own files is unknown. So is a failure with a doubtful
// client certificate, unless the server has not asked for the certificate, or has judged without it.
func TestLoadedJudge(t *testing.T) {
	asked := func(doubt string) *Loaded {
		l := &Loaded{doubt: doubt}
		l.asked.Store(true)
		return l
	}
	for _, c := range []struct {
		name   string
		loaded *Loaded
		made   action.Outcome
		want   action.Reason // local_file goes with an error
	}{
		{"quick read", &Loaded{timeout: time.Second, took: 200 * time.Millisecond}, action.Outcome{Reason: action.Timeout}, action.Timeout},
		{"slow read", &Loaded{timeout: time.Second, took: 201 * time.Millisecond}, action.Outcome{Reason: action.Timeout}, action.LocalFile},
		{"quick read, short timeout", &Loaded{timeout: 50 * time.Millisecond, took: 20 * time.Millisecond}, action.Outcome{Reason: action.Timeout}, action.Timeout},
		{"slow read, success", &Loaded{timeout: time.Second, took: time.Second}, action.Outcome{Success: true}, ""},
		{"slow read, status", &Loaded{timeout: time.Second, took: time.Second}, action.Outcome{Reason: action.HTTPStatus}, action.HTTPStatus},
		{"doubt, timeout", asked("old"), action.Outcome{Reason: action.Timeout}, action.Timeout},
		{"doubt, refused", asked("old"), action.Outcome{Reason: action.ConnectionRefused}, action.ConnectionRefused},
		{"doubt, server unverified", asked("old"), action.Outcome{Reason: action.TLSVerify}, action.TLSVerify},
		{"doubt, not serving", asked("old"), action.Outcome{Reason: action.GRPCNotServing}, action.GRPCNotServing},
		{"doubt, alert", asked("old"), action.Outcome{Reason: action.TLS}, action.LocalFile},
		{"doubt, reset", asked("old"), action.Outcome{Reason: action.ConnectionReset}, action.LocalFile},
		{"doubt, status", asked("old"), action.Outcome{Reason: action.HTTPStatus}, action.LocalFile},
		{"doubt that the server has not seen, alert", &Loaded{doubt: "old"}, action.Outcome{Reason: action.TLS}, action.TLS},
		{"doubt that the server has not seen, reset", &Loaded{doubt: "old"}, action.Outcome{Reason: action.ConnectionReset}, action.ConnectionReset},
		{"doubt that the server has not seen, status", &Loaded{doubt: "old"}, action.Outcome{Reason: action.HTTPStatus}, action.HTTPStatus},
		{"no doubt, reset", &Loaded{}, action.Outcome{Reason: action.ConnectionReset}, action.ConnectionReset},
		{"asked for a certificate, and reset", asked(""), action.Outcome{Reason: action.ConnectionReset}, action.TLS},
	} {
		got, err := c.loaded.Judge(c.made, nil)
		if got.Reason != c.want || (err != nil) != (c.want == action.LocalFile) {
			t.Errorf("%s: got %+v, error %v, want %s", c.name, got, err, c.want)
		}
	}
}

// A certificate has addresses without a zone.
func TestServerName(t *testing.T) {
	for _, c := range []struct{ asked, host, want string }{
		{"", "shop.example", ""},
		{"", "127.0.0.1", ""},
		{"", "fe80::1%eth0", "fe80::1"},
		{"shop.example", "fe80::1%eth0", "shop.example"},
	} {
		if got := ServerName(&config.TLS{ServerName: c.asked}, c.host); got != c.want {
			t.Errorf("%q at %s: got %q, want %q", c.asked, c.host, got, c.want)
		}
	}
}
