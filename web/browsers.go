// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// browsers decides which web pages may use the lifecycle API through the browser of their
// reader. Two attacks must fail. First, a page of another site sends a request to the
// agent: the browser marks the request by Origin and Sec-Fetch-Site. Second, a page makes
// its own name resolve to the agent's address (DNS rebinding): for the browser, page and
// agent are then the same site. Only the page's name, in Host, reveals the attack.
type browsers struct {
	cross    *http.CrossOriginProtection
	external string // the origin of the external URL
	hosts    map[string]bool
}

// hostName matches a name that can be in Host, without a port.
var hostName = regexp.MustCompile(`^[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?$`)

// newBrowsers allows pages of an external URL, which may be nil, and of hosts.
func newBrowsers(external *url.URL, hosts []string) (*browsers, error) {
	p := &browsers{cross: http.NewCrossOriginProtection(), hosts: map[string]bool{"localhost": true}}
	for _, host := range hosts {
		name := strings.ToLower(host)
		if !hostName.MatchString(name) {
			return nil, fmt.Errorf("lifecycle host %q: must be the name of a host, without scheme and port", host)
		}
		p.hosts[name] = true
	}
	if external == nil || external.Host == "" {
		return p, nil
	}
	p.hosts[strings.ToLower(external.Hostname())] = true
	// A proxy may replace the name that the browser asked by its own name.
	p.external = (&url.URL{Scheme: external.Scheme, Host: external.Host}).String()
	if err := p.cross.AddTrustedOrigin(p.external); err != nil {
		return nil, fmt.Errorf("external URL %q: %w", external, err)
	}
	return p, nil
}

// check returns why a request may change nothing, nil if the request is allowed. A
// request without a browser's headers is allowed.
func (p *browsers) check(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return nil
	}
	if err := p.cross.Check(r); err != nil {
		return err
	}
	if origin != "" && origin == p.external {
		return nil
	}
	if name := nameOf(r.Host); !p.hosts[name] && !isAddress(name) {
		return fmt.Errorf("pages of %s may not use the lifecycle API: see --web.lifecycle-allowed-host", display(name))
	}
	return nil
}

// nameOf returns the host of a Host header in lower case, without its port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isAddress reports whether a host is an IP address, which nobody can rebind.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
