// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const (
	architecture = "docs/architecture.md"
	module       = "github.com/prober-exporter/prober_exporter"
)

// Each path, package, function, type, test, flag and label that the pages about the code put
// between backticks exists. If a cell of a table names a function after a file, the file
// declares that function.
func TestArchitectureNames(t *testing.T) {
	known := index(t)
	for name, least := range map[string]int{architecture: 250, "docs/decisions.md": 50} {
		page := string(read(t, name))
		for _, problem := range known.missing(page) {
			t.Errorf("%s:%s", name, problem)
		}
		if n := len(spans.FindAllString(page, -1)); n < least {
			t.Errorf("%s: the test found only %d names", name, n)
		}
	}
}

// The check of TestArchitectureNames finds each sort of name that does not exist.
func TestArchitectureNamesCanFail(t *testing.T) {
	known := index(t)
	for _, c := range []struct{ line, missing string }{
		{"`gate/target.go` and `prober/action/dial`", ""},
		{"`gate/no.go`", "gate/no.go"},
		{"`prober/action/no`", "prober/action/no"},
		{"`gate.Target.Fold`, `Target.Fold`, `Fold`", ""},
		{"`gate.Target.Unfold`", "gate.Target.Unfold"},
		{"`prober.Fold`", "prober.Fold"},
		{"`Manager.leaving`, `Source.Instance`, `slots.mu`", ""},
		{"`Manager.staying`", "Manager.staying"},
		{"`unfold`", "unfold"},
		{"`TestArchitectureNames`", ""},
		{"`TestNothing`", "TestNothing"},
		{"`--config.fail-open`", ""},
		{"`--config.no`", "--config.no"},
		{"`net/http` has `http.Server`", ""},
		{"`net/no`", "net/no"},
		{"`gopkg.in/yaml.v3`", ""},
		{"`gopkg.in/yaml.v4`", "gopkg.in/yaml.v4"},
		{"`agent_late` and `-buildvcs=false`", ""},
		{"`agent_early`", "agent_early"},
		{"| a row | `gate/target.go` `Target.Fold`, `gate/gate.go` `Instance.MaxHold` |", ""},
		{"| a row | `gate/gate.go` `Target.Fold` |", "Target.Fold (not in gate/gate.go)"},
		{"| `gate/gate.go` | `Target.Fold` |", ""},
	} {
		want := []string(nil)
		if c.missing != "" {
			want = []string{"1: there is no " + c.missing}
		}
		if got := known.missing(c.line); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", c.line, got, want)
		}
	}
}

// The tree of the page has each rule of depguard for the tree, with the same arrows, and all
// arrows point down.
func TestArchitectureImports(t *testing.T) {
	page, upward := pageTree(string(read(t, architecture)))
	for _, arrow := range upward {
		t.Errorf("%s: %s points up", architecture, arrow)
	}
	ruled := ruledTree(t, read(t, ".golangci.yml"))
	if len(ruled) < 20 {
		t.Fatalf("the test found rules for %d packages", len(ruled))
	}
	for _, dir := range slices.Sorted(maps.Keys(ruled)) {
		if _, ok := page[dir]; !ok {
			t.Errorf("%s has no row for %s", architecture, dir)
		} else if !slices.Equal(page[dir], ruled[dir]) {
			t.Errorf("%s: the page has %v, the rules have %v", dir, page[dir], ruled[dir])
		}
	}
	for dir := range page {
		if _, ok := ruled[dir]; !ok {
			t.Errorf("%s has a row for %s, but there is no rule", architecture, dir)
		}
	}
}

func TestPageTree(t *testing.T) {
	got, upward := pageTree("|---|---|---|\n| `main.go` | `x` | `b` `a/c` |\n| `a/c` | | `main.go` |\n\n| `d` | | `e` |\n")
	if want := (map[string][]string{".": {"a/c", "b"}, "a/c": {"main.go"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := []string{"a/c → main.go"}; !slices.Equal(upward, want) {
		t.Errorf("upward arrows %q, want %q", upward, want)
	}
}

// pageTree returns the imports in the first table of a page, and the arrows to rows that are
// not below.
func pageTree(page string) (tree map[string][]string, upward []string) {
	tree = map[string][]string{}
	above := map[string]bool{}
	_, table, _ := strings.Cut(page, "|---|---|---|\n")
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			break
		}
		dir := strings.Trim(columns[1], " `")
		above[dir] = true
		if dir == "main.go" {
			dir = "."
		}
		var imports []string
		for _, m := range spans.FindAllStringSubmatch(columns[3], -1) {
			if imports = append(imports, m[1]); above[m[1]] {
				upward = append(upward, dir+" → "+m[1])
			}
		}
		slices.Sort(imports)
		tree[dir] = imports
	}
	return tree, upward
}

// ruledTree returns the imports that the rules of depguard allow. A key may be a pattern.
func ruledTree(t *testing.T, config []byte) map[string][]string {
	t.Helper()
	var linter struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files, Allow []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(config, &linter); err != nil {
		t.Fatal(err)
	}
	tree := map[string][]string{}
	for name, rule := range linter.Linters.Settings.Depguard.Rules {
		if !strings.HasPrefix(name, "tree-") {
			continue
		}
		var imports []string
		for _, allowed := range rule.Allow {
			allowed = strings.TrimSuffix(strings.TrimPrefix(allowed, module+"/"), "$")
			if strings.HasSuffix(allowed, "/") {
				allowed += "*" // all packages below
			}
			imports = append(imports, allowed)
		}
		slices.Sort(imports)
		for _, file := range rule.Files {
			if dir, ok := strings.CutPrefix(file, "${base-path}/"); ok {
				tree[path.Dir(dir)] = imports
			}
		}
	}
	return tree
}
