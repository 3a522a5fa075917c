// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// editor changes a document twice: as a tree, which has the meaning of the result, and as
// text, in which only the changed lines differ. If the text does not get the meaning of
// the tree (flow style, parts that aliases share), the tree is written instead.
type editor struct {
	lines []string // of the document, with their ends
	edits []edit
	lost  bool // an edit has no place in the text
}

// edit puts text in the place of the lines from to to, which is not among them.
type edit struct {
	from, to int
	text     string
}

func newEditor(text string) *editor {
	return &editor{lines: slices.Collect(strings.Lines(text))}
}

// parsed returns the node of a text of our own.
func parsed(text string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		panic("frompod: a text of our own is no YAML: " + text)
	}
	return doc.Content[0]
}

// replace puts another entry in the place of the one at i. text begins with its key.
func (e *editor) replace(m *yaml.Node, i int, text string) {
	k, v := m.Content[i], m.Content[i+1]
	e.put(k.Line-1, e.end(k, v), k.Column, e.lead(k)+strings.TrimLeft(indented(text, k.Column-1), " "))
	// The configuration has the comments of the former value.
	key, entry := *k, parsed(text).Content
	key.Value, key.LineComment, key.FootComment = entry[0].Value, "", ""
	m.Content[i], m.Content[i+1] = &key, entry[1]
	block(m)
}

// remove removes the entry at i, with the comments above it.
func (e *editor) remove(m *yaml.Node, i int) {
	k, v := m.Content[i], m.Content[i+1]
	if strings.Trim(e.lead(k), " ") != "" {
		e.lost = true // it has the dash of its item
	}
	e.put(e.above(k.Line-1, k.Column), e.end(k, v), k.Column, "")
	m.Content = slices.Delete(m.Content, i, i+2)
	block(m)
}

// before adds an entry before the one at i.
func (e *editor) before(m *yaml.Node, i int, text string) {
	k := m.Content[i]
	if strings.Trim(e.lead(k), " ") != "" {
		e.lost = true
	}
	at := e.above(k.Line-1, k.Column)
	e.put(at, at, k.Column, indented(text, k.Column-1))
	m.Content = slices.Insert(m.Content, i, parsed(text).Content...)
	block(m)
}

// add adds an entry after the last.
func (e *editor) add(m *yaml.Node, text string) {
	k, v := m.Content[len(m.Content)-2], m.Content[len(m.Content)-1]
	at := e.end(k, v)
	e.put(at, at, k.Column, indented(text, k.Column-1))
	m.Content = append(m.Content, parsed(text).Content...)
	block(m)
}

// prepend adds an item, the text of a list of one, before the first.
func (e *editor) prepend(list *yaml.Node, text string) {
	at := e.above(list.Line-1, list.Column)
	e.put(at, at, list.Column, indented(text, list.Column-1))
	e.dashes(list)
	list.Content = append(parsed(text).Content, list.Content...)
	block(list)
}

// appendTo adds an item to the list that is the value of the entry at i.
func (e *editor) appendTo(m *yaml.Node, i int, text string) {
	list := m.Content[i+1]
	at := e.end(m.Content[i], list)
	e.put(at, at, list.Column, indented(text, list.Column-1))
	e.dashes(list)
	list.Content = append(list.Content, parsed(text).Content...)
	block(list)
}

// block sets block style in a value that is to be written anew: one entry a line.
func block(n *yaml.Node) {
	if n.Style&yaml.FlowStyle != 0 && n.LineComment != "" {
		// The comment has no line any more.
		n.HeadComment, n.LineComment = strings.TrimLeft(n.HeadComment+"\n"+n.LineComment, "\n"), ""
	}
	n.Style &^= yaml.FlowStyle
}

// dashes makes sure that a list has one item a line.
func (e *editor) dashes(list *yaml.Node) {
	if line := list.Line - 1; list.Style&yaml.FlowStyle != 0 || line < 0 || line >= len(e.lines) || !strings.HasPrefix(strings.TrimLeft(e.lines[line], " "), "-") {
		e.lost = true
	}
}

func (e *editor) put(from, to, column int, text string) {
	if from < 0 || to > len(e.lines) || column < 1 {
		e.lost = true
		return
	}
	e.edits = append(e.edits, edit{from, to, text})
}

// lead returns the text before a key on its line: spaces, and dashes of lists. If there
// is anything else, the text cannot be changed by lines.
func (e *editor) lead(k *yaml.Node) string {
	line, column := k.Line-1, k.Column-1
	if line < 0 || line >= len(e.lines) || column < 0 || column > len(e.lines[line]) ||
		strings.Trim(e.lines[line][:column], " -") != "" {
		e.lost = true
		return ""
	}
	return e.lines[line][:column]
}

// above returns the first of the comment lines that belong to the line at.
func (e *editor) above(at, column int) int {
	for ; at > 0 && at <= len(e.lines); at-- {
		trimmed := strings.TrimLeft(e.lines[at-1], " ")
		if !strings.HasPrefix(trimmed, "#") || len(e.lines[at-1])-len(trimmed) != column-1 {
			break
		}
	}
	return at
}

// end returns the line after the last line of an entry in block style. Lines that are
// further to the right than the key belong to the entry, and so do the dashes of a list
// below the key.
func (e *editor) end(k, v *yaml.Node) int {
	end := k.Line
	for i := max(k.Line, 0); i < len(e.lines); i++ {
		line := strings.TrimRight(e.lines[i], " \t\r\n")
		trimmed := strings.TrimLeft(line, " ")
		column := len(line) - len(trimmed) + 1
		// A value in flow style may end below its key.
		bracket := v.Style&yaml.FlowStyle != 0 && column == k.Column && strings.Trim(trimmed, "]}") == ""
		dash := v.Kind == yaml.SequenceNode && column == k.Column && (trimmed == "-" || strings.HasPrefix(trimmed, "- "))
		switch {
		case line == "":
		case column > k.Column, dash, bracket:
			end = i + 1
		case !strings.HasPrefix(trimmed, "#"):
			return end
		}
	}
	return end
}

// text returns the changed text; not ok if it could not be changed by lines.
func (e *editor) text() (string, bool) {
	// What is added after an entry comes before a change of the next one.
	slices.SortStableFunc(e.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	newline := "\n"
	if len(e.lines) > 0 && strings.HasSuffix(e.lines[0], "\r\n") {
		newline = "\r\n"
	}
	var b strings.Builder
	at := 0
	for _, edit := range e.edits {
		if edit.from < at {
			e.lost = true // two of them in one place
		}
		if e.lost {
			return "", false
		}
		b.WriteString(strings.Join(e.lines[at:edit.from], ""))
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteString(newline)
		}
		b.WriteString(strings.ReplaceAll(edit.text, "\n", newline))
		at = edit.to
	}
	b.WriteString(strings.Join(e.lines[at:], ""))
	return b.String(), !e.lost
}
