// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"strings"
	"unicode/utf8"
)

// socketScheme begins a host that is a Unix socket, in the spelling of gRPC: unix:///run/app.sock.
const socketScheme = "unix://"

// longestSocket is how long the path of a Unix socket may be: Linux has 108 bytes for the path and
// the NUL after it.
const longestSocket = 107

// SocketPath returns the path of the Unix socket that a host means; "" and false for a host name or
// an IP address.
func SocketPath(host string) (path string, ok bool) {
	if path, ok = strings.CutPrefix(host, socketScheme); !ok {
		return "", false
	}
	return path, true
}

// meansSocket reports whether the author of a host has a socket in mind, even if there is a mistake
// in the host.
func meansSocket(host string) bool {
	return strings.HasPrefix(host, "unix:") || strings.HasPrefix(host, "unix-abstract:")
}

// socketProblem returns what is wrong with a host that means a socket, empty if nothing is. The text
// does not repeat the host, which may come from the environment.
func socketProblem(host string) string {
	p, _ := SocketPath(host)
	switch {
	case !strings.HasPrefix(p, "/"), p == "/":
		return "must be unix:// and the absolute path of a socket, such as unix:///run/app.sock"
	case !utf8.ValidString(p), strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "must be text in UTF-8 without control characters"
	case path.Clean(p) != p:
		return "must have a path without //, /./ and /../ and without a slash at the end"
	case len(p) > longestSocket:
		return "must have a path of at most 107 bytes: a longer path cannot be dialled"
	}
	return ""
}

// portAt returns the port of a probe of host, by number or by name. A socket has none.
func (d *decoder) portAt(v value, host string, ports []Port) PortRef {
	if meansSocket(host) {
		d.noPort(v)
		return PortRef{}
	}
	return d.portRef(v, ports)
}

// noPort reports a port of a probe whose host is a socket.
func (d *decoder) noPort(v value) {
	if v.set() {
		d.wrong(v, "must not be set: the host is a Unix socket, which has no port")
	}
}
