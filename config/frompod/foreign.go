// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import "github.com/prober-exporter/prober_exporter/config"

// foreignKeys are the keys of a probe that a configuration has and a Pod does not have.
var foreignKeys = []string{"heartbeat", "unhealthyPeriodSeconds"}

// foreignActionKeys are such keys of actions.
var foreignActionKeys = []struct{ action, name string }{{"httpGet", "expect"}, {"httpGet", "tlsConfig"}, {"grpc", "tlsConfig"}}

// foreign reports the keys of a probe that an API server would not take.
func (c *converter) foreign(probe place) {
	for _, key := range foreignKeys {
		if p := probe.get(key); p.node != nil {
			c.wrong(p.node.Line, p.path, "unknown key: a Pod has no such key")
		}
	}
	for _, key := range foreignActionKeys {
		if p := probe.get(key.action).get(key.name); p.node != nil {
			c.wrong(p.node.Line, p.path, "unknown key: a Pod has no such key")
		}
	}
	for _, action := range []string{"httpGet", "tcpSocket"} {
		if p := probe.get(action).get("host"); p.node != nil && isSocket(p.node.Value) {
			c.wrong(p.node.Line, p.path, "must be a host name or an IP address: a Pod cannot probe Unix sockets")
		}
	}
}

func isSocket(host string) bool {
	_, ok := config.SocketPath(host)
	return ok
}
