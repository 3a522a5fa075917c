// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strconv"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// hundred returns 100 running targets of each kind, each with a process of its own.
func hundred(b *testing.B) map[string][]*config.Target {
	word := testutil.Unique()
	kinds := make(map[string][]*config.Target)
	for i := range 100 {
		name := strconv.Itoa(i)
		pid, port := owner(b, 0)
		testutil.Orphan(b, "sleep "+word+name)
		kinds["pidFile"] = append(kinds["pidFile"], byFile(name, pidFile(b, "", strconv.Itoa(pid))))
		kinds["port"] = append(kinds["port"], byPort(name, port))
		kinds["match"] = append(kinds["match"], byMatch(name, "^sleep "+word+name+"$"))
	}
	return kinds
}

// BenchmarkProcess looks at 100 running targets of each kind, as the source does each second
// for pid files and ports. It also walks over all processes, as the source does to find a
// process.
func BenchmarkProcess(b *testing.B) {
	for kind, targets := range hundred(b) {
		p, _ := watching(b)
		for _, target := range targets {
			p.Watch(target)
		}
		testutil.Until(b, "the source sees all targets", func() bool { p.Look(b.Context()); return len(p.led(map[proc.Process]bool{{}: true})) == 0 })
		b.Run(kind+"/look", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.look(p.all())
			}
		})
		b.Run(kind+"/scan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.seeAll(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
