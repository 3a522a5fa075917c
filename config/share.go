// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// shared keeps equal parts of targets once: in a file of thousands of targets most
// probes, hosts and labels occur in other targets, too. Nobody writes to a Config.
type shared struct {
	texts     map[string]string
	probes    map[Probe]*Probe // whose actions are shared already
	commands  map[string]*Exec
	gets      map[plainGet]*HTTPGet
	expects   map[string]*Expect
	sockets   map[TCPSocket]*TCPSocket
	grpcs     map[GRPC]*GRPC
	tls       map[TLS]*TLS
	beats     map[Heartbeat]*Heartbeat
	listeners map[Listener][]Listener // of one
	labels    []Label                 // those of the target before
}

// plainGet is an HTTPGet without headers.
type plainGet struct {
	host, path, scheme, protocol string
	port                         PortRef
	tls                          *TLS    // shared already
	expect                       *Expect // shared already
}

func newShared() shared {
	return shared{
		texts:     map[string]string{},
		probes:    map[Probe]*Probe{},
		commands:  map[string]*Exec{},
		gets:      map[plainGet]*HTTPGet{},
		expects:   map[string]*Expect{},
		sockets:   map[TCPSocket]*TCPSocket{},
		grpcs:     map[GRPC]*GRPC{},
		tls:       map[TLS]*TLS{},
		beats:     map[Heartbeat]*Heartbeat{},
		listeners: map[Listener][]Listener{},
	}
}

// text returns a copy of s. The copy does not keep the rest of the file in memory.
func (c *shared) text(s string) string {
	t, ok := c.texts[s]
	if !ok {
		t = strings.Clone(s)
		c.texts[t] = t
	}
	return t
}

// probe returns the probe that stands for p and all equal probes. It may change p.
func (c *shared) probe(p *Probe) *Probe {
	if a := p.kind(); a != nil {
		a.share(p, c)
	}
	return one(c.probes, *p, p)
}

// one returns the first v that came with this key.
func one[K comparable, V any](seen map[K]*V, key K, v *V) *V {
	if first, ok := seen[key]; ok {
		return first
	}
	seen[key] = v
	return v
}

// listening returns the list that stands for all equal lists of listeners.
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

// labelled returns the list that stands for all equal lists of labels.
func (c *shared) labelled(list []Label) []Label {
	if !slices.Equal(list, c.labels) {
		c.labels = list
	}
	return c.labels
}
