// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

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
	// WebAddress is the default address of the web listener, and healthAddress the usual
	// address of the health listener, whose flag has no default.
	WebAddress    = ":9709"
	healthAddress = ":9708"

	// tellTime is how long a preStop hook may delay the end of its pod.
	tellTime = time.Second
)

// TellTerminating tells the agent of this pod that the pod is being deleted. It takes the
// addresses of the agent's flags, posts to all of them at once, and prints the result to w.
// TellTerminating returns no error: a hook that fails would only make an event of the pod.
func TellTerminating(ctx context.Context, health, web []string, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	addresses := addresses(health, web)
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

// addresses returns where the agent of this pod may listen: the addresses given, because a hook
// does not see the agent's flags, or else the usual ones. With addresses given, the usual ones
// are left out: on the host's network another pod's agent may listen there.
func addresses(health, web []string) []string {
	given := health
	if len(given) == 0 {
		given = web
		if slices.Equal(given, []string{WebAddress}) {
			given = []string{healthAddress, WebAddress}
		}
	}
	asked := make([]string, len(given))
	for i, address := range given {
		asked[i] = address
		host, port, err := net.SplitHostPort(address)
		if ip, _ := netip.ParseAddr(host); err == nil && (host == "" || ip.IsUnspecified()) {
			asked[i] = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return asked
}

// postTerminating tells the agent at an address that the pod is being deleted.
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
