// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// CONFIGURATION.md has a row for each flag, and no other rows.
func TestDocumentedFlags(t *testing.T) {
	named := func(file, pattern string) map[string]bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		flags := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			flags[m[1]] = true
		}
		return flags
	}
	flags := named("flags.go", `app\.Flag\("([^"]+)"`)
	if len(flags) < 20 {
		t.Fatalf("found only %d flags in flags.go", len(flags))
	}
	// kingpin and the toolkit add these flags.
	for _, name := range []string{"version", "web.listen-address", "web.systemd-socket", "web.config.file"} {
		flags[name] = true
	}
	rows := named("CONFIGURATION.md", "(?m)^\\| `--([a-z.-]+)`.* \\|$")
	if want, got := slices.Sorted(maps.Keys(flags)), slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
		t.Errorf("CONFIGURATION.md has the flags\n%q, there are\n%q", got, want)
	}
}
