// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package httpget

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

func TestMain(m *testing.M) { actiontest.Main(m) }

// usualHTTP asks as a kubelet does: with net/http, and with a transport for each attempt.
func usualHTTP(url string) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		transport := &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext:        dial.NewDialer().DialContext,
		}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return action.Outcome{}, err
		}
		request.Header.Set("User-Agent", action.UserAgent)
		request.Header.Set("Accept", "*/*")
		response, err := client.Do(request)
		if err != nil {
			return action.Outcome{}, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, action.MaxOutput))
		return action.Outcome{Success: response.StatusCode == 200, Output: string(body)}, err
	}
}

// BenchmarkBesideUsual compares the costs with those of net/http.
func BenchmarkBesideUsual(b *testing.B) {
	plain, secure, _ := actiontest.ServedApart(b)
	for name, c := range map[string]struct{ ours, usual action.Func }{
		"plain": {httpProbe(plain, time.Minute, config.HTTPGet{Path: "/"}), usualHTTP("http://" + plain + "/")},
		"TLS":   {httpProbe(secure, time.Minute, config.HTTPGet{Path: "/", Scheme: "HTTPS"}), usualHTTP("https://" + secure + "/")},
	} {
		b.Run(name, func(b *testing.B) { actiontest.Beside(b, c.ours, c.usual) })
	}
}

// BenchmarkAlone counts the allocations of an attempt without those of its server.
func BenchmarkAlone(b *testing.B) {
	plain, secure, _ := actiontest.ServedApart(b)
	for name, f := range map[string]action.Func{
		"plain": httpProbe(plain, time.Minute, config.HTTPGet{Path: "/"}),
		"TLS":   httpProbe(secure, time.Minute, config.HTTPGet{Path: "/", Scheme: "HTTPS"}),
	} {
		b.Run(name, func(b *testing.B) { actiontest.Benchmark(b, f) })
	}
}

func BenchmarkHTTPGet(b *testing.B) {
	actiontest.Benchmark(b, httpProbe(actiontest.Web(b, actiontest.Site()), time.Minute, config.HTTPGet{Path: "/len?n=2"}))
}
