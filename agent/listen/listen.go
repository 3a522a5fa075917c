// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package listen opens the agent's listeners and bounds the connections to each, so that no
// crowd of clients keeps the kubelet from its answer.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// Web opens the listeners that the toolkit's flags ask for.
func Web(flags *toolkit.FlagConfig) ([]net.Listener, error) {
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
		l, err := On(address)
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

// On opens a TCP listener, or a vsock listener for vsock://:PORT.
func On(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "vsock://") {
		// TCP keep-alive costs system calls for each connection, and all waits for clients are
		// bounded anyway.
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
