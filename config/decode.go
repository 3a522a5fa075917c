// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/gate"
)

const required = "required value"

// decoder walks the tree of a file. It goes on after a mistake, so that one run finds
// all mistakes. After a mistake its result is never used.
type decoder struct {
	findings
	shared shared

	lookupEnv func(string) (string, bool)
	commands  map[command]error // which commands were looked up already

	waited time.Duration // for the files that probes read

	probeFields []string // the keys of a probe

	localAddrs map[netip.Addr]bool // of the network interfaces; nil: not looked up yet
}

// value is a node of the tree and its place. The node is nil if the file does not have
// the value; the line is then that of the mapping that lacks the value.
type value struct {
	node *yaml.Node
	line int
	place
}

// set says whether the file has the value: null means unset, as in Kubernetes.
func (v value) set() bool { return v.node != nil && !isNull(v.node) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (d *decoder) wrong(v value, format string, args ...any) {
	d.errorf(v.line, v.path(), format, args...)
}

// The types of values, as messages call them.
const (
	aMapping = "a mapping"
	aList    = "a list"
	aString  = "a string"
	aNumber  = "a number"
	aBoolean = "a boolean"
	aNull    = "null"
	aTagged  = "a value with a tag of its own"
)

// typeName names the type of a node and reveals nothing of its content.
func typeName(n *yaml.Node) string {
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.MappingNode && tag == "!!map":
		return aMapping
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		return aList
	case n.Kind != yaml.ScalarNode:
		return aTagged
	}
	switch tag {
	case "!!str":
		return aString
	case "!!int", "!!float":
		return aNumber
	case "!!bool":
		return aBoolean
	case "!!null":
		return aNull
	case "!!timestamp", "!!merge":
		// Kubernetes takes a plain 2006-01-02 for a string, and << is one where it
		// is not a key.
		if n.Style&yaml.TaggedStyle == 0 {
			return aString
		}
	}
	return aTagged
}

// entry is a key of a mapping with its value.
type entry struct {
	key  string
	line int
	node *yaml.Node
}

func (e entry) value(in *place) value {
	return value{node: e.node, line: e.node.Line, place: place{in: in, key: e.key}}
}

func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// entries returns the entries of a mapping in order: its own entries, then those that
// << merges. The mapping's own entries win over merged ones, and an earlier merge wins
// over a later one.
func (d *decoder) entries(v value) []entry {
	entries := make([]entry, 0, len(v.node.Content)/2)
	var merges []*yaml.Node
	var lines keyLines
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, content := deref(v.node.Content[i]), deref(v.node.Content[i+1])
		line := v.node.Content[i].Line
		if key.Kind != yaml.ScalarNode {
			d.errorf(line, v.path(), "a key must be a string, is %s", typeName(key))
			continue
		}
		if first, ok := lines.of(key.Value); ok {
			d.errorf(line, v.child(key.Value).path(), "duplicate key, first on line %d", first)
			continue
		}
		lines.add(key.Value, line)
		if key.ShortTag() == "!!merge" {
			merges = append(merges, content)
			continue
		}
		entries = append(entries, entry{key: key.Value, line: line, node: content})
	}
	for _, m := range merges {
		for _, e := range d.merged(m, v.place) {
			if _, ok := lines.of(e.key); !ok {
				lines.add(e.key, e.line)
				entries = append(entries, e)
			}
		}
	}
	return entries
}

// merged returns the entries that << merges into the mapping at that place.
func (d *decoder) merged(n *yaml.Node, at place) []entry {
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var entries []entry
	for _, source := range sources {
		source = deref(source)
		if source.Kind != yaml.MappingNode {
			d.errorf(source.Line, at.path(), "<< must merge a mapping or a list of mappings, not %s", typeName(source))
			continue
		}
		entries = append(entries, d.entries(value{node: source, line: source.Line, place: at})...)
	}
	return entries
}

// object is a mapping with known keys.
type object struct {
	value
	here    *place // of the value
	entries []entry
}

func (d *decoder) newObject(v value) object {
	return object{value: v, here: v.parent(), entries: d.entries(v)}
}

// get returns the value of a key, or an unset value.
func (o object) get(key string) value {
	for _, e := range o.entries {
		if e.key == key {
			return e.value(o.here)
		}
	}
	return value{line: o.line, place: place{in: o.here, key: key}}
}

// object returns v as a mapping that has no other keys than these.
func (d *decoder) object(v value, keys ...string) (object, bool) {
	if !d.is(v, aMapping) {
		return object{}, false
	}
	o := d.newObject(v)
	for _, e := range o.entries {
		if slices.Contains(keys, e.key) {
			continue
		}
		hint := ""
		if near := nearest(e.key, keys); near != "" {
			hint = ": did you mean " + near + "?"
		} else if slices.Contains(keys, probeKeys[gate.Liveness]) && slices.Contains(d.probeFields, e.key) {
			hint = ": it belongs in a startupProbe, readinessProbe or livenessProbe"
		}
		d.errorf(e.line, v.child(e.key).path(), "unknown key%s", hint)
	}
	return o, true
}

// pair returns v as a mapping of a name and a secret value. An unknown key may be a
// piece of a value without quotes, so no message repeats the key.
func (d *decoder) pair(v value, keys ...string) (object, bool) {
	if !d.is(v, aMapping) {
		return object{}, false
	}
	o := d.newObject(v)
	for _, e := range o.entries {
		if !slices.Contains(keys, e.key) {
			d.errorf(e.line, v.path(), "unknown key: the keys are %s", strings.Join(keys, ", "))
		}
	}
	return o, true
}

// is reports whether a value is of a type; if not, that is a mistake.
func (d *decoder) is(v value, want string) bool {
	got := typeName(v.node)
	switch {
	case got == want:
		return true
	case want == aString && (got == aNumber || got == aBoolean):
		d.wrong(v, "must be a string, is %s: quote it", got)
	default:
		d.wrong(v, "must be %s, is %s", want, got)
	}
	return false
}

// list returns the items of a list. An unset list has no items.
func (d *decoder) list(v value) []value {
	if !v.set() || !d.is(v, aList) {
		return nil
	}
	items, here := make([]value, len(v.node.Content)), v.parent()
	for i, n := range v.node.Content {
		n = deref(n)
		items[i] = value{node: n, line: n.Line, place: place{in: here, item: i + 1}}
	}
	return items
}

// str returns a string, empty if it is not set.
func (d *decoder) str(v value) (string, bool) {
	if !v.set() {
		return "", true
	}
	if !d.is(v, aString) {
		return "", false
	}
	return d.shared.text(v.node.Value), true
}

// enum returns one of the allowed strings, empty if it is not set.
func (d *decoder) enum(v value, allowed ...string) string {
	s, ok := d.str(v)
	if ok && v.set() && !slices.Contains(allowed, s) {
		quoted := make([]string, len(allowed))
		for i := range allowed {
			quoted[i] = strconv.Quote(allowed[i])
		}
		d.wrong(v, "supported values: %s, is %s", strings.Join(quoted, ", "), quote(s))
	}
	return s
}
