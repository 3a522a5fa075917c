// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"cmp"
	"net/url"

	"github.com/prober-exporter/prober_exporter/config"
)

// socketName is the host in the URL of a probe that asks a Unix socket, and in its Host header unless
// that is configured.
const socketName = "localhost"

// socket returns the path of the Unix socket that a probe asks; "" for another host.
func (g *httpGet) socket() string {
	path, _ := config.SocketPath(cmp.Or(g.probe.HTTPGet.Host, g.target.Host))
	return path
}

// leavesSocket reports whether a redirect on the same host leaves the socket of the first request. A
// socket has no port and speaks either HTTP or HTTPS, so a redirect that names a port or changes the
// scheme means another server.
func leavesSocket(next, first *url.URL) bool {
	return next.Host != first.Host || next.Scheme != first.Scheme
}

// shown returns a URL that is asked at host, for people to read.
func shown(u *url.URL, host string) string {
	if _, isSocket := config.SocketPath(host); isSocket {
		return shownURL(u) + " over " + host
	}
	return shownURL(u)
}
