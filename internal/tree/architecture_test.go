// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const architecture = "docs/architecture.md"

// Each path, package, function, type, test, flag and label that the pages about the code name
// between backticks exists, and a function that a cell of a table names after a file is in
// that file.
func TestArchitectureNames(t *testing.T) {
	known := index(t)
	for name, least := range map[string]int{architecture: 250, "docs/decisions.md": 50} {
		page := string(read(t, name))
		for _, problem := range known.missing(page) {
			t.Errorf("%s:%s", name, problem)
		}
		if n := len(spans.FindAllString(page, -1)); n < least {
			t.Errorf("%s: only %d names were found", name, n)
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

// The tree of the page has each rule of depguard for the tree, with the same arrows.
func TestArchitectureImports(t *testing.T) {
	page, ruled := pageTree(string(read(t, architecture))), ruledTree(t, read(t, ".golangci.yml"))
	if len(ruled) < 20 {
		t.Fatalf("rules for %d packages were found", len(ruled))
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
			t.Errorf("%s has a row for %s, and there is no rule", architecture, dir)
		}
	}
}

func TestPageTree(t *testing.T) {
	got := pageTree("| package | what | imports |\n|---|---|---|\n| `main.go` | `x` | `b` `a/c` |\n| `a/c` | | |\n\n| `d` | | `e` |\n")
	if want := (map[string][]string{".": {"a/c", "b"}, "a/c": nil}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// pageTree returns what the first table of a page says of who imports whom.
func pageTree(page string) map[string][]string {
	tree := map[string][]string{}
	_, table, _ := strings.Cut(page, "|---|---|---|\n")
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			break
		}
		dir := strings.Trim(columns[1], " `")
		if dir == "main.go" {
			dir = "."
		}
		var imports []string
		for _, m := range spans.FindAllStringSubmatch(columns[3], -1) {
			imports = append(imports, m[1])
		}
		slices.Sort(imports)
		tree[dir] = imports
	}
	return tree
}

// ruledTree returns the same of the rules of depguard.
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
			imports = append(imports, strings.TrimSuffix(strings.TrimPrefix(allowed, module+"/"), "$"))
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

const module = "github.com/prober-exporter/prober_exporter"

var (
	spans  = regexp.MustCompile("`([^`]+)`")
	aName  = regexp.MustCompile(`^\w+(\.\w+)*(\(\))?$`)
	aFlag  = regexp.MustCompile(`^--[a-z.-]+$`)
	aFile  = regexp.MustCompile(`^[\w./-]+\.(go|md|yml|sh)$`)
	aPlace = regexp.MustCompile(`^\w[\w.-]*(/[\w.-]+)+$`) // a path, or what an import names
)

// names are what a page may name.
type names struct {
	declared map[string]bool            // as Name, Type.Member, pkg.Name and pkg.Type.Member
	inFile   map[string]map[string]bool // the same by file, without the package
	words    map[string]bool            // string constants, packages and directories
	ours     map[string]bool            // the names of our packages
	imported map[string]bool            // paths that our packages import, and the modules of go.mod
	others   map[string]bool            // the names of imported packages that are not ours
}

// index returns what there is to be named.
func index(t *testing.T) *names {
	t.Helper()
	n := &names{
		declared: map[string]bool{}, inFile: map[string]map[string]bool{}, words: map[string]bool{},
		ours: map[string]bool{}, imported: map[string]bool{}, others: map[string]bool{},
	}
	for _, name := range files(t, func(name string) bool { return path.Ext(name) == ".go" }) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		n.add(name, file)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:require |\t)([^\s/]+\.\S+) v`).FindAllStringSubmatch(string(read(t, "go.mod")), -1) {
		n.imported[m[1]] = true
	}
	entries, err := fs.ReadDir(os.DirFS(root), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		n.words[e.Name()] = true
	}
	return n
}

// add adds what a file declares.
func (n *names) add(name string, file *ast.File) {
	for _, i := range file.Imports {
		if imported, err := strconv.Unquote(i.Path.Value); err == nil && !strings.HasPrefix(imported, module) {
			n.imported[imported], n.others[path.Base(imported)] = true, true
		}
	}
	test := strings.HasSuffix(name, "_test.go")
	here := map[string]bool{}
	declare := func(called string) {
		if called = strings.TrimPrefix(called, "."); test && !strings.HasPrefix(called, "Test") {
			return // of a test only its name is of interest
		}
		here[called], n.declared[called], n.declared[file.Name.Name+"."+called] = true, true, true
		if _, member, ok := strings.Cut(called, "."); ok {
			n.declared[member] = true
		}
	}
	if !test {
		n.words[file.Name.Name], n.ours[file.Name.Name] = true, true
	}
	n.inFile[name] = here
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			declare(receiver(node) + "." + node.Name.Name)
		case *ast.TypeSpec:
			declare(node.Name.Name)
			for _, member := range members(node.Type) {
				declare(node.Name.Name + "." + member)
			}
		case *ast.ValueSpec:
			for _, name := range node.Names {
				declare(name.Name)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && !test {
				n.words[text] = true
			}
		}
		return true
	})
}

// receiver returns the type that a method has, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// members returns the fields of a struct and the methods of an interface.
func members(of ast.Expr) (all []string) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			all = append(all, name.Name)
		}
	}
	return all
}

// missing returns the names of a page that nothing has, with their lines. Names of other
// sorts, such as paths of URLs, are not looked up.
func (n *names) missing(page string) (problems []string) {
	number := 0
	for line := range strings.Lines(page) {
		number++
		cells := []string{line}
		row := strings.HasPrefix(line, "|")
		if row {
			cells = strings.Split(line, "|")
		}
		for _, cell := range cells {
			in := "" // the file that the cell of a table has named last
			for _, m := range spans.FindAllStringSubmatch(cell, -1) {
				span := strings.TrimSuffix(m[1], "()")
				if problem := n.problem(span, in); problem != "" {
					problems = append(problems, strconv.Itoa(number)+": there is no "+problem)
				}
				if row && aFile.MatchString(span) {
					in = span
				}
			}
		}
	}
	return problems
}

// problem returns what is wrong with a name; in is the file that should declare it, or "".
func (n *names) problem(span, in string) string {
	switch {
	case aFlag.MatchString(span):
		if n.words[span[2:]] {
			return ""
		}
	case aFile.MatchString(span) || aPlace.MatchString(span):
		if _, err := os.Stat(filepath.Join(root, span)); err == nil || n.imported[span] {
			return ""
		}
	case !aName.MatchString(span):
		return ""
	case n.inFile[in] != nil:
		if n.inFile[in][span] {
			return ""
		}
		return span + " (not in " + in + ")"
	case n.declared[span] || n.words[span]:
		return ""
	default:
		if of, _, ok := strings.Cut(span, "."); ok && n.others[of] && !n.ours[of] {
			return ""
		}
	}
	return span
}
