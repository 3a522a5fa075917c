// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	spans  = regexp.MustCompile("`([^`]+)`")
	aName  = regexp.MustCompile(`^\w+(\.\w+)*(\(\))?$`)
	aFlag  = regexp.MustCompile(`^--[a-z.-]+$`)
	aFile  = regexp.MustCompile(`^[\w./-]+\.(go|md|yml|sh)$`)
	aPlace = regexp.MustCompile(`^\w[\w.-]*(/[\w.-]+)+$`) // a path, or the path of an import
)

// names are the names that a page may use.
type names struct {
	declared map[string]bool            // as Name, Type.Member, pkg.Name and pkg.Type.Member
	inFile   map[string]map[string]bool // the same by file, without the package
	words    map[string]bool            // string constants, packages and directories
	ours     map[string]bool            // the names of this module's packages
	imported map[string]bool            // paths that these packages import, and the modules of go.mod
	others   map[string]bool            // the names of other imported packages
}

// index returns all names.
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

// add adds the declarations of a file.
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
			return // pages name only the tests of a test file
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

// receiver returns the type of a method, or "" for a function.
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

// missing returns the names of a page that do not exist, with their lines. It does not look up
// names of other sorts, such as paths of URLs.
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
			in := "" // the last file that the cell of a table has named
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

// problem returns what is wrong with a name, or "". in is the file that should declare the
// name, or "".
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
