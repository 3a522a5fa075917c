// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Every link of a Markdown file to a file of this repository, or to a heading in such a file,
// leads somewhere. The test does not follow links to other places.
func TestLinks(t *testing.T) {
	pages := map[string]page{}
	for _, name := range files(t, func(name string) bool { return path.Ext(name) == ".md" }) {
		pages[name] = newPage(string(read(t, name)))
	}
	followed := 0
	for name, p := range pages {
		for _, link := range p.links {
			if !link.within() {
				continue
			}
			followed++
			to, heading := link.from(name)
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s:%d: %s: no such file", name, link.line, link.target)
			} else if other, ok := pages[to]; ok && heading != "" && !other.anchors[heading] {
				t.Errorf("%s:%d: %s: no such heading", name, link.line, link.target)
			}
		}
	}
	if followed < 50 {
		t.Errorf("the test followed only %d links", followed)
	}
}

func TestPage(t *testing.T) {
	p := newPage(strings.Join([]string{
		"# One `--flag`, two_three: [four](a.md)",
		"## Same", "## Same",
		"![b](b.png) and [c c](<c d.md> \"title\"), `[no](no.md)`, [d][e]",
		"```", "[no](no.md)", "# no", "```",
		"[e]: e.md#f",
		`<a id="own"></a><img src="g.png">`,
	}, "\n"))
	var got []string
	for _, l := range p.links {
		got = append(got, fmt.Sprintf("%d %s", l.line, l.target))
	}
	if want := "1 a.md|4 b.png|4 c d.md|9 e.md#f|10 g.png"; strings.Join(got, "|") != want {
		t.Errorf("links %q, want %q", got, want)
	}
	for _, anchor := range []string{"one---flag-two_three-four", "same", "same-1", "own"} {
		if !p.anchors[anchor] {
			t.Errorf("%s is no anchor: %v", anchor, p.anchors)
		}
	}
	if len(p.anchors) != 4 {
		t.Errorf("anchors %v, want 4", p.anchors)
	}
}

// page has a Markdown file's links, and the places that links may lead to.
type page struct {
	links   []link
	anchors map[string]bool
}

type link struct {
	line   int
	target string
}

var (
	fence      = regexp.MustCompile("^ *(```+|~~~+)")
	codeSpan   = regexp.MustCompile("`+[^`]+`+")
	inlineLink = regexp.MustCompile(`\]\((?:<([^>]*)>|([^()\s]*))(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)`)
	attribute  = regexp.MustCompile(`(?:href|src|srcset)="([^"]*)"`)
	ownAnchor  = regexp.MustCompile(`<a (?:id|name)="([^"]*)"`)
	headline   = regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

func newPage(text string) page {
	p := page{anchors: map[string]bool{}}
	closes := "" // the fence that closes a block of code
	for i, line := range strings.Split(text, "\n") {
		if m := fence.FindStringSubmatch(line); m != nil && (closes == "" || strings.HasPrefix(m[1], closes)) {
			if closes == "" {
				closes = m[1]
			} else {
				closes = ""
			}
			continue
		}
		if closes != "" {
			continue
		}
		if m := headline.FindStringSubmatch(line); m != nil {
			p.addHeading(m[1])
		}
		line = codeSpan.ReplaceAllString(line, "")
		for _, m := range ownAnchor.FindAllStringSubmatch(line, -1) {
			p.anchors[m[1]] = true
		}
		for _, pattern := range []*regexp.Regexp{inlineLink, definition, attribute} {
			for _, m := range pattern.FindAllStringSubmatch(line, -1) {
				p.links = append(p.links, link{line: i + 1, target: strings.Join(m[1:], "")})
			}
		}
	}
	return p
}

// addHeading adds the anchor that GitHub gives a heading.
func (p page) addHeading(text string) {
	text = linkText.ReplaceAllString(text, "$1")
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	unique := anchor
	for n := 1; p.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", anchor, n)
	}
	p.anchors[unique] = true
}

// within reports whether a link leads to this repository.
func (l link) within() bool {
	u, err := url.Parse(l.target)
	return err != nil || u.Scheme == "" && u.Host == ""
}

// from returns the file and the heading to which a link of a page leads.
func (l link) from(name string) (to, heading string) {
	to, heading, _ = strings.Cut(l.target, "#")
	if unescaped, err := url.PathUnescape(to); err == nil {
		to = unescaped
	}
	switch {
	case to == "":
		return name, heading
	case strings.HasPrefix(to, "/"):
		return path.Clean(to[1:]), heading
	}
	return path.Join(path.Dir(name), to), heading
}
