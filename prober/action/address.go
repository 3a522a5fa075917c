// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
)

// Address returns what a probe asks, for people to read: a URL without its userinfo, host
// and port, or nothing for a command.
func Address(t *config.Target, p *config.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return shownURL(probeURL(p.HTTPGet, cmp.Or(p.HTTPGet.Host, t.Host)))
	case p.TCPSocket != nil:
		return hostPort(cmp.Or(p.TCPSocket.Host, t.Host), p.TCPSocket.Port.Number)
	case p.GRPC != nil:
		return hostPort(t.Host, p.GRPC.Port)
	default:
		return ""
	}
}

// shownURL returns a URL with "<redacted>" as its userinfo, if it has one.
func shownURL(u *url.URL) string {
	if u.User == nil {
		return u.String()
	}
	shown := *u
	shown.User = nil
	return strings.Replace(shown.String(), "//", "//<redacted>@", 1)
}
