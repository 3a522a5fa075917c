// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// place says where a value is. The path is built only for a message: most values of ten
// thousand targets need none.
type place struct {
	in   *place // the mapping or list that it is in; nil: it is the root
	key  string // in a mapping
	item int    // in a list, from 1; 0: it is in a mapping
}

// parent returns the place to which the values inside refer.
func (p place) parent() *place { return &p }

// child returns the place of a key in the mapping at p.
func (p place) child(key string) place { return place{in: p.parent(), key: key} }

// path returns the place as targets[2].readinessProbe.periodSeconds, empty for the root.
// Only a plain key appears as it is: any other key may be a value that lost its quotes.
func (p place) path() string {
	if p.in == nil {
		return ""
	}
	path, key := p.in.path(), p.key
	switch {
	case p.item > 0:
		return path + "[" + strconv.Itoa(p.item-1) + "]"
	case key == "" || len(key) > 63 || !only(key, alphanumeric+"-_/.<"):
		key = "?"
	case strings.ContainsAny(key, "/."):
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// keyLines are the lines of the keys of a mapping. A few keys, as in a valid file, are in
// an array.
type keyLines struct {
	few  [16]keyLine
	n    int
	many map[string]int // nil while they are few
}

type keyLine struct {
	key  string
	line int
}

// of returns the line of a key, if the mapping already has the key.
func (l *keyLines) of(key string) (line int, found bool) {
	if l.many != nil {
		line, found = l.many[key]
		return line, found
	}
	for i := range l.n {
		if l.few[i].key == key {
			return l.few[i].line, true
		}
	}
	return 0, false
}

// add adds a new key.
func (l *keyLines) add(key string, line int) {
	switch {
	case l.many != nil:
		l.many[key] = line
	case l.n < len(l.few):
		l.few[l.n] = keyLine{key, line}
		l.n++
	default:
		l.many = make(map[string]int, 2*len(l.few))
		for _, k := range l.few {
			l.many[k.key] = k.line
		}
		l.many[key] = line
	}
}
