// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each entry of the changelog names its kind, and the entries of a release are sorted by kind.
func TestChangelogIsSorted(t *testing.T) {
	kinds := []string{"SECURITY", "CHANGE", "FEATURE", "ENHANCEMENT", "BUGFIX"}
	entry := regexp.MustCompile(`^\* \[(\w+)\] \S`)
	entries, last := 0, 0
	for i, line := range strings.Split(string(read(t, "CHANGELOG.md")), "\n") {
		if strings.HasPrefix(line, "## ") {
			last = 0
		}
		if !strings.HasPrefix(line, "* ") {
			continue
		}
		entries++
		m := entry.FindStringSubmatch(line)
		if m == nil || !slices.Contains(kinds, m[1]) {
			t.Errorf("line %d has none of the kinds %v", i+1, kinds)
			continue
		}
		kind := slices.Index(kinds, m[1])
		if kind < last {
			t.Errorf("line %d: a %s stands behind a %s", i+1, kinds[kind], kinds[last])
		}
		last = kind
	}
	if entries == 0 {
		t.Error("there is no entry")
	}
}
