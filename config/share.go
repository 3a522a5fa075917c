// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// shared keeps what targets have in common once: in a file of thousands most probes,
// hosts and labels are those of another target. Nobody writes to a Config.
type shared struct {
	texts     map[string]string
	probes    map[Probe]*Probe // whose actions are shared already
	commands  map[string]*Exec
	gets      map[plainGet]*HTTPGet
	sockets   map[TCPSocket]*TCPSocket
	grpcs     map[GRPC]*GRPC
	listeners map[Listener][]Listener // of one
	labels    []Label                 // those of the target before
}

// plainGet is an HTTPGet without headers.
type plainGet struct {
	host, path, scheme, protocol string
	port                         PortRef
}

func newShared() shared {
	return shared{
		texts:     map[string]string{},
		probes:    map[Probe]*Probe{},
		commands:  map[string]*Exec{},
		gets:      map[plainGet]*HTTPGet{},
		sockets:   map[TCPSocket]*TCPSocket{},
		grpcs:     map[GRPC]*GRPC{},
		listeners: map[Listener][]Listener{},
	}
}

// text returns a copy of s that is not kept in memory by, and does not keep, what else
// was read of the file with it.
func (c *shared) text(s string) string {
	t, ok := c.texts[s]
	if !ok {
		t = strings.Clone(s)
		c.texts[t] = t
	}
	return t
}

// probe returns what stands for p and all that are like it. It may change p.
func (c *shared) probe(p *Probe) *Probe {
	switch {
	case p.Exec != nil:
		// A command has no NUL, or it is a mistake.
		p.Exec = one(c.commands, strings.Join(p.Exec.Command, "\x00"), p.Exec)
	case p.HTTPGet != nil && p.HTTPGet.Headers == nil:
		h := p.HTTPGet
		p.HTTPGet = one(c.gets, plainGet{host: h.Host, path: h.Path, scheme: h.Scheme, protocol: h.Protocol, port: h.Port}, h)
	case p.TCPSocket != nil:
		p.TCPSocket = one(c.sockets, *p.TCPSocket, p.TCPSocket)
	case p.GRPC != nil:
		p.GRPC = one(c.grpcs, *p.GRPC, p.GRPC)
	}
	return one(c.probes, *p, p)
}

// one returns the first v that came with the key.
func one[K comparable, V any](seen map[K]*V, key K, v *V) *V {
	if first, ok := seen[key]; ok {
		return first
	}
	seen[key] = v
	return v
}

// listening returns what stands for a list of listeners.
func (c *shared) listening(list []Listener) []Listener {
	if len(list) != 1 {
		return list
	}
	if first, ok := c.listeners[list[0]]; ok {
		return first
	}
	c.listeners[list[0]] = list
	return list
}

// labelled returns what stands for a list of labels.
func (c *shared) labelled(list []Label) []Label {
	if !slices.Equal(list, c.labels) {
		c.labels = list
	}
	return c.labels
}
