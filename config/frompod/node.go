// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"strings"

	"gopkg.in/yaml.v3"
)

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content}
}

func list() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// clone returns a copy that shares nothing.
func clone(n *yaml.Node) *yaml.Node {
	fresh := *n
	fresh.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		fresh.Content[i] = clone(child)
	}
	return &fresh
}

// bare returns a copy without comments.
func bare(n *yaml.Node) *yaml.Node {
	fresh := clone(n)
	strip(fresh)
	return fresh
}

// unflow sets the usual style of YAML in a tree that was JSON.
func unflow(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle | yaml.DoubleQuotedStyle
	for _, child := range n.Content {
		unflow(child)
	}
}

// indented returns text with each line that has something this many spaces further
// to the right.
func indented(text string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", max(by, 0)))
		}
		b.WriteString(line)
	}
	return b.String()
}

// equal reports whether two expanded trees mean the same. The order of keys does not
// matter.
func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if a.Kind != yaml.MappingNode {
			if !equal(a.Content[i], b.Content[i]) {
				return false
			}
			continue
		}
		if i%2 == 1 {
			continue
		}
		j := i
		if key := a.Content[i]; key.Kind != yaml.ScalarNode || b.Content[i].Value != key.Value {
			if j = index(b, key.Value); j < 0 {
				return false
			}
		}
		if !equal(a.Content[i], b.Content[j]) || !equal(a.Content[i+1], b.Content[j+1]) {
			return false
		}
	}
	return true
}

// means reports whether text is a single document that stands for an expanded tree.
func means(text string, want *yaml.Node) bool {
	quiet := new(converter)
	doc := quiet.parse(text)
	if doc == nil || len(quiet.errs) > 0 {
		return false
	}
	e := expander{left: maxNodes}
	doc = e.expand(doc)
	return !e.failed && equal(doc.Content[0], want)
}

// encode returns a tree as text. It keeps comments unless the emitter cannot place them,
// which happens in flow style; then it encodes the tree without comments. The text is
// empty if that fails, too.
func encode(n *yaml.Node) string {
	for _, simplify := range []func(*yaml.Node){stripFlow, strip, func(*yaml.Node) {}} {
		var b strings.Builder
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := enc.Encode(n); err == nil && enc.Close() == nil && means(b.String(), content(n)) {
			return b.String()
		}
		simplify(n)
	}
	return ""
}

// content returns the root of a document.
func content(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode {
		return n.Content[0]
	}
	return n
}

// stripFlow removes the comments in flow style.
func stripFlow(n *yaml.Node) {
	for _, child := range n.Content {
		if n.Style&yaml.FlowStyle != 0 {
			strip(child)
		} else {
			stripFlow(child)
		}
	}
}

// strip removes the comments of a tree.
func strip(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, child := range n.Content {
		strip(child)
	}
}
