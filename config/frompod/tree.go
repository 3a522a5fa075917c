// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds the values of a document whose aliases are followed.
const maxNodes = 1_000_000

// maxDepth bounds how deep values are nested.
const maxDepth = 1000

// maxSteps bounds the steps of a path in a message.
const maxSteps = 30

// parse returns the document node, or nil if there is no document or it is not YAML.
func (c *converter) parse(text string) *yaml.Node {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil // comments alone
	}
	if err == nil {
		switch err = dec.Decode(&next); {
		case err == nil:
			c.wrong(next.Line, "", "a document must begin with a line ---")
			return nil
		case errors.Is(err, io.EOF):
			return &doc
		}
	}
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(message); m != nil {
		message = m[2]
		line, _ = strconv.Atoi(m[1]) // it is digits
	}
	if strings.HasPrefix(message, "unknown anchor") {
		// The anchor's name may be a password that begins with an asterisk.
		message = "refers to an anchor that is not defined above: quote a value that begins with an asterisk"
	}
	c.wrong(line, "", message)
	return nil
}

// expander copies a tree. The copy has no aliases, anchors and merges, so that a change of
// one place changes no other place.
type expander struct {
	c      *converter // nil: mistakes are not reported
	left   int        // nodes
	steps  []string   // from the root: keys, and indices in brackets
	failed bool
	within map[*yaml.Node]bool // anchored nodes that have begun and not ended
}

func (e *expander) fail(line int, message string) {
	if !e.failed && e.c != nil {
		path := ""
		for _, step := range e.steps[:min(len(e.steps), maxSteps)] {
			if strings.HasPrefix(step, "[") {
				path += step
			} else {
				path = join(path, step)
			}
		}
		e.c.wrong(line, path, message)
	}
	e.failed = true
}

// below expands a value that is one step below.
func (e *expander) below(step string, n *yaml.Node) *yaml.Node {
	e.steps = append(e.steps, step)
	defer func() { e.steps = e.steps[:len(e.steps)-1] }()
	return e.expand(n)
}

func (e *expander) expand(n *yaml.Node) *yaml.Node {
	e.left--
	switch {
	case e.left < 0:
		e.fail(n.Line, fmt.Sprintf("has too many values: more than %d", maxNodes))
	case len(e.steps) > maxDepth:
		e.fail(n.Line, fmt.Sprintf("is nested too deeply: more than %d levels", maxDepth))
	case n.Kind == yaml.AliasNode && e.within[n.Alias]:
		e.fail(n.Line, "an alias refers to a value that contains the alias")
	}
	if e.failed {
		return n
	}
	if n.Kind == yaml.AliasNode {
		return e.expand(n.Alias)
	}
	if n.Anchor != "" {
		if e.within == nil {
			e.within = map[*yaml.Node]bool{}
		}
		e.within[n] = true
		defer delete(e.within, n)
	}
	fresh := *n
	fresh.Anchor = ""
	fresh.Content = make([]*yaml.Node, 0, len(n.Content))
	if n.Kind == yaml.MappingNode {
		e.mapping(&fresh, n)
		return &fresh
	}
	for i, child := range n.Content {
		if n.Kind == yaml.SequenceNode {
			child = e.below("["+strconv.Itoa(i)+"]", child)
		} else {
			child = e.expand(child)
		}
		if e.failed {
			break
		}
		fresh.Content = append(fresh.Content, child)
	}
	return &fresh
}

// mapping fills fresh with the entries of n: its own entries, then those that << merges.
// The mapping's own entries win over merged ones, and an earlier merge wins over a later
// one.
func (e *expander) mapping(fresh, n *yaml.Node) {
	have := map[string]bool{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !e.failed; i += 2 {
		key := e.expand(n.Content[i])
		if key.ShortTag() == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		if have[key.Value] {
			e.fail(key.Line, "duplicate key "+strconv.QuoteToASCII(key.Value))
			return
		}
		if key.Kind == yaml.ScalarNode {
			have[key.Value] = true
		}
		fresh.Content = append(fresh.Content, key, e.below(key.Value, n.Content[i+1]))
	}
	for _, m := range merges {
		sources := []*yaml.Node{m}
		for m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, n := range sources {
			e.merge(fresh, e.expand(n), have)
		}
	}
}

// merge adds those entries of source that fresh does not have.
func (e *expander) merge(fresh, source *yaml.Node, have map[string]bool) {
	if source.Kind != yaml.MappingNode {
		e.fail(source.Line, "<< must merge a mapping or a list of mappings")
		return
	}
	for i := 0; i+1 < len(source.Content) && !e.failed; i += 2 {
		if key := source.Content[i]; !have[key.Value] {
			have[key.Value] = true
			fresh.Content = append(fresh.Content, key, source.Content[i+1])
		}
	}
}

// place is a value of the tree and its path. The node is nil if the value is missing.
type place struct {
	node *yaml.Node
	path string
}

func (p place) get(key string) place { return place{lookup(p.node, key), join(p.path, key)} }

// items returns the items of a list.
func (p place) items() []place {
	if p.node == nil || p.node.Kind != yaml.SequenceNode {
		return nil
	}
	items := make([]place, len(p.node.Content))
	for i, n := range p.node.Content {
		items[i] = place{n, fmt.Sprintf("%s[%d]", p.path, i)}
	}
	return items
}

// join adds a key to a path.
func join(path, key string) string {
	if key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		key = strconv.QuoteToASCII(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// index returns where in a mapping's content a key is, or -1.
func index(m *yaml.Node, key string) int {
	if m != nil && m.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if k := m.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key {
				return i
			}
		}
	}
	return -1
}

// lookup returns the value of a key, nil if the key is missing. Null means missing, as in
// Kubernetes.
func lookup(m *yaml.Node, key string) *yaml.Node {
	i := index(m, key)
	if i < 0 || isNull(m.Content[i+1]) {
		return nil
	}
	return m.Content[i+1]
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// scalar returns the text of a key's value, empty if it has none.
func scalar(m *yaml.Node, key string) string {
	n := lookup(m, key)
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}
