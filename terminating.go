// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// defaultWeb is where the web listener is without a flag, and usualHealth where the
	// health listener is by convention: the flag has no default.
	defaultWeb  = ":9709"
	usualHealth = ":9708"

	// tellTime is how long a preStop hook may hold the end of its pod up.
	tellTime = time.Second
)

// tellTerminating tells the agent of this pod that the pod is being deleted. It asks all
// addresses at once, and says how that went. There is no error: a hook that fails would be
// an event of the pod, and nobody could do anything about it.
func tellTerminating(ctx context.Context, o *options, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	addresses := o.agentAddresses()
	errs := make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { errs[i] = postTerminating(ctx, address) })
	}
	asking.Wait()
	if i := slices.Index(errs, nil); i >= 0 {
		_, _ = fmt.Fprintf(w, "prober_exporter: the agent at %s has ended its startup and liveness probes\n", addresses[i])
		return
	}
	for _, err := range errs {
		_, _ = fmt.Fprintf(w, "prober_exporter: --terminating: %v\n", err)
	}
}

// agentAddresses returns where the agent of this pod may listen. A hook does not see the
// agent's flags, so it may be given the same ones; without them the agent is where agents
// usually are. What is given is all that is asked: at the usual ports there may be the
// agent of another pod, where both have the network of their node.
func (o *options) agentAddresses() []string {
	given := o.healthAddresses
	if len(given) == 0 {
		given = *o.web.WebListenAddresses
		if slices.Equal(given, []string{defaultWeb}) {
			given = []string{usualHealth, defaultWeb}
		}
	}
	addresses := make([]string, len(given))
	for i, address := range given {
		addresses[i] = address
		host, port, err := net.SplitHostPort(address)
		if ip, _ := netip.ParseAddr(host); err == nil && (host == "" || ip.IsUnspecified()) {
			addresses[i] = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return addresses
}

// postTerminating tells the agent at an address.
func postTerminating(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/-/terminating", http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // the status says enough
		return fmt.Errorf("%s answers %s: %s", address, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
