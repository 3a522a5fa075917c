// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// listenWeb opens the listeners that the toolkit's flags ask for.
func listenWeb(flags *toolkit.FlagConfig) ([]net.Listener, error) {
	if flags.WebSystemdSocket != nil && *flags.WebSystemdSocket {
		listeners, err := activation.Listeners()
		if err == nil && len(listeners) == 0 {
			err = errors.New("the service manager passed none")
		}
		if err != nil {
			return nil, fmt.Errorf("take over systemd sockets: %w", err)
		}
		return listeners, nil
	}
	var listeners []net.Listener
	for _, address := range *flags.WebListenAddresses {
		l, err := listen(address)
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// listen opens a TCP listener, or one for virtual machines for vsock://:PORT.
func listen(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "vsock://") {
		// Without the keep-alive of TCP, which takes calls for each connection: all waits for
		// clients have bounds of their own.
		return (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", address)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return vsock.Listen(uint32(port), nil)
}

// healthCheck asks a health endpoint once and prints its answer.
func healthCheck(ctx context.Context, address string, w io.Writer) error {
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet asks
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if _, err := parseURL(address); err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, io.LimitReader(response.Body, 1<<20)); err != nil {
		return fmt.Errorf("health check: read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health check: %s answers %s", request.URL.Redacted(), response.Status)
	}
	return nil
}
