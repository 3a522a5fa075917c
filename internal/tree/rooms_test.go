// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Each package of the program has a rule of depguard about its imports, and each rule has its
// package. Programs and helpers of tests are outside the tree.
func TestEveryPackageIsGuarded(t *testing.T) {
	outside := []string{"bench", "e2e", "examples", "mixin", "internal/testutil", "prober/action/actiontest"}
	rules := ruledTree(t, read(t, ".golangci.yml"))
	var packages []string
	for _, file := range files(t, func(file string) bool {
		dir := path.Dir(file)
		within := func(o string) bool { return dir == o || strings.HasPrefix(dir, o+"/") }
		return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && !slices.ContainsFunc(outside, within)
	}) {
		packages = append(packages, path.Dir(file))
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	used := map[string]bool{}
	for _, dir := range packages {
		if _, ok := rules[dir]; ok {
			used[dir] = true
			continue
		}
		pattern := path.Join(path.Dir(dir), "*")
		if _, ok := rules[pattern]; !ok {
			t.Errorf(".golangci.yml has no rule for the package in %s", dir)
		}
		used[pattern] = true
	}
	for rule := range rules {
		if !used[rule] {
			t.Errorf(".golangci.yml has a rule for %s, but there is no such package", rule)
		}
	}
}
