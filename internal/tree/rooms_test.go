// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Each package of the program has a rule of depguard that says what it may import, and
// each rule has its package. Programs and helpers of tests are outside the tree.
func TestEveryPackageIsGuarded(t *testing.T) {
	outside := []string{"bench", "e2e", "examples", "mixin", "internal/testutil", "prober/action/actiontest"}
	config := string(read(t, ".golangci.yml"))
	_, config, _ = strings.Cut(config, "        tree-main:\n")
	tree, _, found := strings.Cut(config, "        gate-is-pure:\n")
	if !found {
		t.Fatal("the rules of the tree are not between tree-main and gate-is-pure")
	}
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
	for _, dir := range packages {
		rule := `"${base-path}/` + strings.TrimPrefix(dir+"/", "./") + `*.go"`
		if n := strings.Count(tree, rule); n != 1 {
			t.Errorf("%d rules of .golangci.yml are for the package in %s, want one", n, dir)
		}
	}
	if rules := strings.Count(tree, `"${base-path}/`); rules != len(packages) {
		t.Errorf(".golangci.yml has rules for %d packages, and there are %d", rules, len(packages))
	}
}
