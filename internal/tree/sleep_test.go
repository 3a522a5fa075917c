// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No test calls time.Sleep outside of a synctest bubble. Outside, a test waits for an event.
func TestNobodySleepsOutsideOfBubbles(t *testing.T) {
	packages := map[string]map[string][]byte{}
	for _, path := range files(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		dir := filepath.Dir(path)
		if packages[dir] == nil {
			packages[dir] = map[string][]byte{}
		}
		packages[dir][path] = read(t, path)
	}
	for _, sources := range packages {
		for _, at := range sleepers(t, sources) {
			t.Errorf("%s: time.Sleep outside of a bubble: wait for an event", at)
		}
	}
}

func TestSleepers(t *testing.T) {
	const head = "package p\nimport (\"testing\"; \"testing/synctest\"; \"time\")\n"
	for name, c := range map[string]struct {
		source string
		want   string
	}{
		"a test":              {`func TestA(t *testing.T) { time.Sleep(1) }`, "p_test.go:3:28"},
		"a bubble":            {`func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`, ""},
		"a helper":            {`func help() { time.Sleep(1) }; func TestA(t *testing.T) { help() }`, "p_test.go:3:15"},
		"a helper in bubbles": {`func help() { time.Sleep(1) }; func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { help() }) }`, ""},
		"a helper in both":    {`func help() { time.Sleep(1) }; func TestA(t *testing.T) { help(); synctest.Test(t, func(t *testing.T) { help() }) }`, "p_test.go:3:15"},
		"a helper of nobody":  {`func help() { time.Sleep(1) }`, "p_test.go:3:15"},
		"a helper's helper":   {`type w int; func (w w) help() { time.Sleep(1) }; func helps(w w) { w.help() }; func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { helps(1) }) }`, ""},
		"another of its name": {`func help() { time.Sleep(1) }; func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { help() }) }; func TestB(t *testing.T) { help := func() {}; help() }`, ""},
		"a wrapper":           {`func in(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }; func TestA(t *testing.T) { in(t, func() { time.Sleep(1) }) }`, ""},
		"a wrapper's rest":    {`func in(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }; func TestA(t *testing.T) { in(t, func() {}); time.Sleep(1) }`, "p_test.go:3:128"},
		"a named bubble":      {`func TestA(t *testing.T) { synctest.Test(t, named) }; func named(t *testing.T) { time.Sleep(1) }`, ""},
		"a method's name":     {`type w int; func (w w) help() {}; func help() { time.Sleep(1) }; func TestA(t *testing.T) { w(1).help(); synctest.Test(t, func(t *testing.T) { help() }) }`, ""},
		"a sleep as a value":  {`var pause = time.Sleep`, "p_test.go:3:13"},
	} {
		got := strings.Join(sleepers(t, map[string][]byte{"p_test.go": []byte(head + c.source)}), " ")
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// use is a use of a name in a declaration.
type use struct {
	name   string
	by     *ast.FuncDecl // nil if the declaration is no function
	bubble bool          // in a function that runs in a bubble
	at     token.Pos
}

// sleepers returns where the test files of a package mention time.Sleep and need not be in a
// bubble. A mention is in a bubble within a function that synctest.Test gets, or a helper that
// passes the function on, and in a function that only bubbles call. sleepers tells methods
// apart by their names only, so it reports doubtful methods.
func sleepers(t *testing.T, sources map[string][]byte) []string {
	t.Helper()
	set := token.NewFileSet()
	p := &tests{functions: map[string][]*ast.FuncDecl{}, wrappers: map[string]bool{"synctest.Test": true}}
	var parsed []*ast.File
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(set, path, sources[path], 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				p.functions[named(f)] = append(p.functions[named(f)], f)
				if handsOn(f) {
					p.wrappers[named(f)] = true
				}
			}
		}
	}
	for _, file := range parsed {
		for _, d := range file.Decls {
			p.look(d)
		}
	}
	in := p.inBubbles()
	var found []string
	for _, s := range p.sleeps {
		if !s.bubble && !in[s.by] {
			found = append(found, set.Position(s.at).String())
		}
	}
	return found
}

// tests has what the test files of a package declare and use.
type tests struct {
	functions map[string][]*ast.FuncDecl
	wrappers  map[string]bool // they run their function arguments in bubbles
	uses      []use
	sleeps    []use
}

// named returns the name in calls of a function: a selector for a method.
func named(f *ast.FuncDecl) string {
	if f.Recv != nil {
		return "." + f.Name.Name
	}
	return f.Name.Name
}

// handsOn reports whether a function has a function parameter and makes a bubble.
func handsOn(f *ast.FuncDecl) (found bool) {
	if f.Body == nil || !slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		_, ok := p.Type.(*ast.FuncType)
		return ok
	}) {
		return false
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && mentioned(call.Fun) == "synctest.Test"
		return !found
	})
	return found
}

// mentioned returns the name that an expression mentions: a function of this package, a name of
// another package, or .method. For any other expression, and for a variable of a function, it
// returns "".
func mentioned(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Obj == nil {
			return e.Name // declared in another file, or nowhere
		}
		if _, ok := e.Obj.Decl.(*ast.FuncDecl); ok {
			return e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && (x.Name == "synctest" || x.Name == "time") {
			return x.Name + "." + e.Sel.Name
		}
		return "." + e.Sel.Name
	}
	return ""
}

// look records the names that a declaration mentions.
func (p *tests) look(d ast.Decl) {
	by, _ := d.(*ast.FuncDecl)
	var bubbles []ast.Expr // expressions that run in bubbles
	var note func(n ast.Node) bool
	note = func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && p.wrappers[mentioned(call.Fun)] {
			bubbles = append(bubbles, call.Args...)
		}
		e, ok := n.(ast.Expr)
		if !ok || by != nil && n == ast.Node(by.Name) {
			return true
		}
		u := use{name: mentioned(e), by: by, at: e.Pos()}
		u.bubble = slices.ContainsFunc(bubbles, func(b ast.Expr) bool { return b.Pos() <= u.at && u.at < b.End() })
		if u.name == "time.Sleep" {
			p.sleeps = append(p.sleeps, u)
		}
		p.uses = append(p.uses, u)
		s, ok := n.(*ast.SelectorExpr)
		if ok {
			ast.Inspect(s.X, note) // the name behind it alone says nothing
		}
		return !ok
	}
	ast.Inspect(d, note)
}

// inBubbles returns the functions that only bubbles call.
func (p *tests) inBubbles() map[*ast.FuncDecl]bool {
	in := map[*ast.FuncDecl]bool{}
	for more := true; more; {
		more = false
		for name, all := range p.functions {
			calls, outside := 0, 0
			for _, u := range p.uses {
				if u.name != name || slices.Contains(all, u.by) {
					continue
				}
				calls++
				if !u.bubble && !in[u.by] {
					outside++
				}
			}
			for _, f := range all {
				if calls > 0 && outside == 0 && !in[f] {
					in[f], more = true, true
				}
			}
		}
	}
	return in
}
