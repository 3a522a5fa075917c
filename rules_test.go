// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// ruleDefined matches a rule of docs/kubelet.md: its anchor and the number behind the
	// anchor.
	ruleDefined = regexp.MustCompile(`<a id="([^"]*)"></a>(?:\*\*)?(\S*?)(?:\*\*| )`)
	// ruleCited matches "rule 4.26", "rules 7.2 and 7.3" or "rules 4.4, 4.8 and 4.9",
	// perhaps broken over two lines of a comment.
	ruleCited = regexp.MustCompile(`\b[Rr]ules?` + ruleGap + `(` + ruleNumber + `(?:(?:,(?:` + ruleGap + `and)?|` + ruleGap + `(?:and|to|or))` + ruleGap + ruleNumber + `)*)`)
	// ruleLinked matches a link to a rule, from its own page or from another page.
	ruleLinked = regexp.MustCompile(`\[([^\]]*)\]\((?:[^()#]*kubelet\.md)?#([0-9][0-9a-e.]*)\)`)
	// ruleOdd matches a citation whose word "rule" is missing: (4.26) in Go.
	ruleOdd = regexp.MustCompile(` \((?:kubelet )?` + ruleNumber + `\)|"` + ruleNumber + `(?: and ` + ruleNumber + `)?: `)

	ruleRange = regexp.MustCompile(`(` + ruleNumber + `)` + ruleGap + `to` + ruleGap + `(` + ruleNumber + `)`)
	ruleOne   = regexp.MustCompile(ruleNumber)
)

const (
	ruleNumber = `\d{1,2}(?:\.\d{1,2}){1,2}[a-e]?\b`
	ruleGap    = `(?:\s|//|#)+`
)

// citation is a rule that a file cites.
type citation struct {
	line int
	rule string
}

// citations returns the rules that a text cites. A range cites each rule within it.
func citations(text string) []citation {
	var found []citation
	for _, at := range ruleCited.FindAllStringSubmatchIndex(text, -1) {
		line, list := 1+strings.Count(text[:at[0]], "\n"), text[at[2]:at[3]]
		for _, m := range ruleRange.FindAllStringSubmatch(list, -1) {
			for _, rule := range between(m[1], m[2]) {
				found = append(found, citation{line, rule})
			}
		}
		for _, rule := range ruleOne.FindAllString(list, -1) {
			found = append(found, citation{line, rule})
		}
	}
	return found
}

// between returns the rules between two rules of the same section: 4.4 for 4.3 and 4.5.
func between(from, to string) []string {
	section, last, _ := cutLast(from)
	other, end, _ := cutLast(to)
	if section != other {
		return []string{from + " to " + to} // which no page has
	}
	var rules []string
	for n := last + 1; n < end; n++ {
		rules = append(rules, section+"."+strconv.Itoa(n))
	}
	return rules
}

// cutLast cuts 2.5.7 into 2.5 and 7. It reports false for a rule without a last number.
func cutLast(rule string) (section string, last int, ok bool) {
	dot := strings.LastIndexByte(rule, '.')
	if dot < 0 {
		return "", 0, false
	}
	last, err := strconv.Atoi(rule[dot+1:])
	return rule[:dot], last, err == nil
}

// definitions returns the rules of a page in their order, and the page's mistakes.
func definitions(page string) (rules, wrong []string) {
	for _, m := range ruleDefined.FindAllStringSubmatch(page, -1) {
		id, number := m[1], m[2]
		if id != number {
			wrong = append(wrong, "the anchor of "+number+" is "+id)
		}
		if slices.Contains(rules, id) {
			wrong = append(wrong, id+" is there twice")
		}
		if section, last, ok := cutLast(id); ok {
			before := section
			if last > 1 {
				before += "." + strconv.Itoa(last-1)
			}
			if !slices.Contains(rules, before) {
				wrong = append(wrong, id+" comes without "+before)
			}
		}
		rules = append(rules, id)
	}
	return rules, wrong
}

// sources calls visit with each file of the tree that may cite a rule.
func sources(t *testing.T, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".yml", ".yaml"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(filepath.ToSlash(path), string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kubeletRules returns the rules that docs/kubelet.md has.
func kubeletRules(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("docs/kubelet.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, wrong := definitions(string(page))
	for _, w := range wrong {
		t.Errorf("docs/kubelet.md: %s", w)
	}
	if len(rules) < 150 {
		t.Fatalf("docs/kubelet.md has %d rules", len(rules))
	}
	return rules
}

// If code, a test or a document cites a rule by its number, docs/kubelet.md has that rule.
func TestCitedRulesExist(t *testing.T) {
	rules, cited := kubeletRules(t), 0
	sources(t, func(path, text string) {
		if path == "rules_test.go" {
			return // this file makes citations up
		}
		for _, c := range citations(text) {
			cited++
			if !slices.Contains(rules, c.rule) {
				t.Errorf("%s:%d cites rule %s, which docs/kubelet.md does not have", path, c.line, c.rule)
			}
		}
		for _, link := range ruleLinked.FindAllStringSubmatch(text, -1) {
			cited++
			if !slices.Contains(rules, link[2]) {
				t.Errorf("%s links to rule %s, which docs/kubelet.md does not have", path, link[2])
			}
			if name := strings.TrimPrefix(link[1], "section "); name != link[2] {
				t.Errorf("%s calls rule %s %q", path, link[2], name)
			}
		}
		if !strings.HasSuffix(path, ".go") {
			return
		}
		for _, at := range ruleOdd.FindAllStringIndex(text, -1) {
			t.Errorf(`%s:%d: %q must begin with the word "rule"`, path, 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]])
		}
	})
	if cited < 300 {
		t.Errorf("the test found only %d citations", cited)
	}
}

// Each row of docs/parity.md links every rule that it is about. A dash says that there is no
// rule.
func TestParityLinksRules(t *testing.T) {
	page, err := os.ReadFile("docs/parity.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule") {
			continue
		}
		cell := strings.TrimSpace(strings.SplitN(line, "|", 3)[1])
		left := strings.Trim(ruleLinked.ReplaceAllString(cell, ""), " ,to")
		if left != "" && cell != "–" || cell == "" {
			t.Errorf("docs/parity.md:%d is about %q, want links to docs/kubelet.md or a dash", i+1, cell)
		}
	}
}

func TestCitations(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"// a gap in the view (rule 4.26).", "1:4.26"},
		{"one\n// (kubelet rules 2.6.3 and\n// 2.6.4). It", "2:2.6.3 2:2.6.4"},
		{"a: b # by rule\n   # 7.6", "1:7.6"},
		{"rules 4.14 to 4.17", "1:4.15 1:4.16 1:4.14 1:4.17"},
		{"rules 4.4, 4.8 and 4.9, and 5.6", "1:4.4 1:4.8 1:4.9 1:5.6"},
		{"Rule 2.5.1c: first, rule 15.1.", "1:2.5.1c 1:15.1"},
		{"rules 4.3 to 5.1", "1:4.3 to 5.1 1:4.3 1:5.1"},
		{"rule 99.1", "1:99.1"},
		{"the rules of 4.26; rule 7; Prometheus 2.42; rules.yaml", ""},
	} {
		var got []string
		for _, c := range citations(tt.text) {
			got = append(got, strconv.Itoa(c.line)+":"+c.rule)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%q cites %q, want %q", tt.text, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		"// waits (4.11).":         " (4.11)",
		"so (kubelet 4.11)":        " (kubelet 4.11)",
		`{"4.22: the run", 1}`:     `"4.22: `,
		`{"4.12 and 4.23: an", 1}`: `"4.12 and 4.23: `,
		"(rule 4.11) new(12.5)":    "",
		`"rule 4.22: the run"`:     "",
	} {
		if got := ruleOdd.FindString(text); got != want {
			t.Errorf("in %q the odd citation is %q, want %q", text, got, want)
		}
	}
}

func TestDefinitions(t *testing.T) {
	const a = `<a id="`
	for _, tt := range []struct{ page, rules, wrong string }{
		{"## " + a + `1"></a>1 Cache` + "\n- " + a + `1.1"></a>**1.1** One` + "\n- " + a + `1.2"></a>**1.2** Two`, "1 1.1 1.2", ""},
		{a + `1"></a>1 ` + a + `1.2"></a>**1.2**`, "1 1.2", "1.2 comes without 1.1"},
		{a + `1.1"></a>**1.1**`, "1.1", "1.1 comes without 1"},
		{a + `1"></a>1 ` + a + `1.1"></a>**1.2**`, "1 1.1", "the anchor of 1.2 is 1.1"},
		{a + `1"></a>1 ` + a + `1"></a>1 `, "1 1", "1 is there twice"},
		{a + `1"></a>1 ` + a + `1.1"></a>**1.1** ` + a + `1.1a"></a>**1.1a**`, "1 1.1 1.1a", ""},
	} {
		rules, wrong := definitions(tt.page)
		if strings.Join(rules, " ") != tt.rules || strings.Join(wrong, ", ") != tt.wrong {
			t.Errorf("%q has %q, wrong: %q; want %q, %q", tt.page, rules, wrong, tt.rules, tt.wrong)
		}
	}
}
