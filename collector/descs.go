// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/prober-exporter/prober_exporter/config"
)

// descs are the descriptors of all metrics for one set of own labels, and for members of
// lists or for everything else.
type descs [numMetrics]*prometheus.Desc

func newDescs(own []config.Label, member bool) *descs {
	var d descs
	for m, row := range table {
		names := slices.Clone(row.labels)
		if member && slices.Contains(names, labelProbeType) {
			names = append(names, labelProbe)
		}
		for _, l := range own {
			names = append(names, l.Name)
		}
		d[m] = prometheus.NewDesc(row.name, row.help, names, nil)
	}
	return &d
}

// descCache returns descriptors and remembers the used ones. It belongs to one scrape.
type descCache struct {
	last, used map[string]*descs // last is shared by scrapes: read only
	key        []byte
}

// of returns the descriptors of a target with these labels, or of its members of lists.
func (c *descCache) of(own []config.Label, member bool) *descs {
	c.key = c.key[:0]
	if member {
		c.key = append(c.key, 0) // no name of a label is empty
	}
	for _, l := range own {
		c.key = append(append(c.key, l.Name...), 0)
	}
	d, ok := c.used[string(c.key)]
	if ok {
		return d
	}
	if d, ok = c.last[string(c.key)]; !ok {
		d = newDescs(own, member)
	}
	c.used[string(c.key)] = d
	return d
}

// descs returns the cache of descriptors for a scrape.
func (c *collector) descs() descCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	return descCache{last: c.cached, used: map[string]*descs{}}
}

// keep replaces the cached descriptors by those that a scrape used, so that the
// collector forgets label names that are gone.
func (c *collector) keep(used map[string]*descs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cached = used
}
