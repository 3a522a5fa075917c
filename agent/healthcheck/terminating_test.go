// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The hook ends within a moment and says what went wrong: nobody listens, a server never answers,
// the address is not loopback, or the listener uses TLS.
func TestTerminatingInVain(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn)
	encrypted.StartTLS()
	defer encrypted.Close()
	for address, want := range map[string]string{
		silent.Addr().String():             "deadline exceeded",
		"127.0.0.1:" + testutil.Port(t):    "refused",
		encrypted.Listener.Addr().String(): "answers 400",
		"vsock://:9708":                    "vsock",
	} {
		var said strings.Builder
		begin := time.Now()
		TellTerminating(t.Context(), []string{address}, []string{WebAddress}, &said)
		if !strings.Contains(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%s: said %q, want one line with %q", address, said.String(), want)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v, want %v", address, took, tellTime)
		}
	}
}

// The hook asks only the addresses at which the agent listens according to the flags, or else the
// usual addresses of agents.
func TestAgentAddresses(t *testing.T) {
	byDefault := []string{WebAddress}
	for _, c := range []struct{ health, web, want []string }{
		{nil, byDefault, []string{"127.0.0.1:9708", "127.0.0.1:9709"}},
		{[]string{":9718"}, byDefault, []string{"127.0.0.1:9718"}},
		{[]string{"[::]:1", "192.0.2.1:2"}, byDefault, []string{"127.0.0.1:1", "192.0.2.1:2"}},
		{nil, []string{"0.0.0.0:9719"}, []string{"127.0.0.1:9719"}},
		{nil, []string{"[::1]:9719"}, []string{"[::1]:9719"}},
		{[]string{"127.0.0.1:9718"}, []string{":9719"}, []string{"127.0.0.1:9718"}},
	} {
		if got := addresses(c.health, c.web); !slices.Equal(got, c.want) {
			t.Errorf("health %q, web %q: %q, want %q", c.health, c.web, got, c.want)
		}
	}
}
