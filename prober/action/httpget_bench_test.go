// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package action

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// servedApart returns the addresses of servers in a process of their own, so that what
// they cost is not counted.
func servedApart(b *testing.B) (plain, secure, bare string) {
	b.Helper()
	server := exec.CommandContext(b.Context(), os.Args[0])
	server.Env = append(os.Environ(), helperEnv+"=serve")
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	where := strings.Fields(line)
	if err != nil || len(where) != 3 {
		b.Fatalf("the server said %q, error %v", line, err)
	}
	return where[0], where[1], where[2]
}

// beside runs ours and the usual way by turns, and reports what each costs of a
// processor, and ours as a part of the usual way's.
func beside(b *testing.B, ours, usual Func) {
	b.Helper()
	const block = 100
	var spent [2]time.Duration
	n := 0
	for b.Loop() {
		if n++; n%block != 1 {
			continue
		}
		for i, f := range []Func{ours, usual} {
			before := cpu(b)
			for range block {
				if got := attempt(b, f); !got.Success {
					b.Fatalf("got %+v", got)
				}
			}
			spent[i] += cpu(b) - before
		}
	}
	blocks := float64((n + block - 1) / block * block)
	b.ReportMetric(float64(spent[0].Nanoseconds())/blocks, "ours-cpu-ns/op")
	b.ReportMetric(float64(spent[1].Nanoseconds())/blocks, "usual-cpu-ns/op")
	b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// usualHTTP asks as a kubelet does: net/http, and a transport for each attempt.
func usualHTTP(url string) Func {
	return func(ctx context.Context) (Outcome, error) {
		transport := &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext:        newDialer().DialContext,
		}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return Outcome{}, err
		}
		request.Header.Set("User-Agent", userAgent)
		request.Header.Set("Accept", "*/*")
		response, err := client.Do(request)
		if err != nil {
			return Outcome{}, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxOutput))
		return Outcome{Success: response.StatusCode == 200, Output: string(body)}, err
	}
}

// usualTCP connects as a kubelet does.
func usualTCP(address string) Func {
	return func(ctx context.Context) (Outcome, error) {
		conn, err := (&net.Dialer{Timeout: time.Minute, KeepAlive: -1, Control: newDialer().Control}).DialContext(ctx, "tcp", address)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Success: true}, conn.Close()
	}
}

func BenchmarkBesideUsual(b *testing.B) {
	plain, secure, bare := servedApart(b)
	for name, c := range map[string]struct{ ours, usual Func }{
		"httpGet":     {httpProbe(plain, time.Minute, config.HTTPGet{Path: "/"}), usualHTTP("http://" + plain + "/")},
		"httpGet-TLS": {httpProbe(secure, time.Minute, config.HTTPGet{Path: "/", Scheme: "HTTPS"}), usualHTTP("https://" + secure + "/")},
		"tcpSocket":   {tcpProbe(bare, time.Minute), usualTCP(bare)},
	} {
		b.Run(name, func(b *testing.B) { beside(b, c.ours, c.usual) })
	}
}

// BenchmarkAlone counts what an attempt allocates, and nothing of its server.
func BenchmarkAlone(b *testing.B) {
	plain, secure, bare := servedApart(b)
	for name, f := range map[string]Func{
		"httpGet":     httpProbe(plain, time.Minute, config.HTTPGet{Path: "/"}),
		"httpGet-TLS": httpProbe(secure, time.Minute, config.HTTPGet{Path: "/", Scheme: "HTTPS"}),
		"tcpSocket":   tcpProbe(bare, time.Minute),
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, f) })
	}
}
