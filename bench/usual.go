// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// attemptTimeout is long, because the bench measures work and not failures.
const attemptTimeout = 5 * time.Second

// maxBody is how much of a body the client reads, as in the kubelet.
const maxBody = 10 << 10

// usual starts the usual way to probe, as in a kubelet: a goroutine and a ticker for each
// probe, phases spread evenly over the period, the standard clients, and a new connection for
// each attempt. It keeps only two counters.
func usual(s spec) (*subject, error) {
	return inGoroutines(s, func(i int) (func(context.Context) error, error) {
		switch s.Action {
		case actionHTTP, actionHTTPS:
			return usualHTTP(s.Action+"://"+s.address(i)+"/", usualDialer().DialContext, &tls.Config{InsecureSkipVerify: true}), nil // as in the kubelet
		case actionUnix:
			path := strings.TrimPrefix(s.address(i), unixScheme)
			return usualHTTP("http://localhost/", func(ctx context.Context, _, _ string) (net.Conn, error) {
				return usualDialer().DialContext(ctx, "unix", path)
			}, nil), nil
		case actionVerified:
			pem, err := os.ReadFile(s.CA)
			if err != nil {
				return nil, err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(pem) // without a certificate all attempts fail
			return usualHTTP("https://"+s.address(i)+"/", usualDialer().DialContext, &tls.Config{RootCAs: roots, ServerName: serverName}), nil
		case actionTCP:
			return usualTCP(s.address(i)), nil
		case actionGRPC:
			return usualGRPC(s.address(i)), nil
		case actionExec:
			return usualExec(), nil
		}
		return nil, fmt.Errorf("no action %q", s.Action)
	})
}

// usualDialer sets the kubelet's options on the sockets of probes.
func usualDialer() *net.Dialer {
	return &net.Dialer{
		Timeout: attemptTimeout,
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 1})
			})
		},
	}
}

// dialFunc is a DialContext function.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func usualHTTP(url string, dial dialFunc, secure *tls.Config) func(context.Context) error {
	client := &http.Client{
		Timeout: attemptTimeout,
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			TLSClientConfig:    secure,
			DialContext:        dial,
		},
	}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		r.Header.Set("User-Agent", "bench")
		r.Header.Set("Accept", "*/*")
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.ReadAll(io.LimitReader(response.Body, maxBody)); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
}

func usualTCP(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := usualDialer().DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func usualGRPC(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		client, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithUserAgent("bench"),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return usualDialer().DialContext(ctx, "tcp", address)
			}))
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() // the server has answered
		answer, err := healthpb.NewHealthClient(client).Check(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			return err
		}
		if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return errors.New(answer.GetStatus().String())
		}
		return nil
	}
}

func usualExec() func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		c := exec.CommandContext(ctx, command)
		var output bytes.Buffer
		c.Stdout, c.Stderr = &output, &output
		return c.Run()
	}
}

// inGoroutines runs each probe's attempts in a goroutine of its own, on the probe's ticker, or
// one after the other without a period.
func inGoroutines(s spec, newProbe func(i int) (func(context.Context) error, error)) (*subject, error) {
	var ok, failed atomic.Uint64
	var why atomic.Value
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	stop := func() {
		cancel()
		running.Wait()
	}
	for i := range s.Probes {
		probe, err := newProbe(i)
		if err != nil {
			stop()
			return nil, err
		}
		attempt := func() {
			switch err := probe(ctx); {
			case err == nil:
				ok.Add(1)
			case ctx.Err() == nil:
				failed.Add(1)
				why.CompareAndSwap(nil, err.Error())
			}
		}
		running.Go(func() {
			if s.Period == 0 {
				for ctx.Err() == nil {
					attempt()
				}
				return
			}
			if pause(ctx, s.Period*time.Duration(i)/time.Duration(s.Probes)); ctx.Err() != nil {
				return
			}
			ticker := time.NewTicker(s.Period)
			defer ticker.Stop()
			for {
				attempt()
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
	return &subject{
		counts: func() (uint64, uint64) { return ok.Load(), failed.Load() },
		why: func() string {
			text, _ := why.Load().(string)
			return text
		},
		stop: stop,
	}, nil
}
