// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	// maxMarks bounds the memory that the YAML parser takes, which is up to a
	// hundred times its input: every value follows one of a few characters. A file
	// of 16 MiB that says something useful has two thirds as many.
	maxMarks = 3_000_000

	// maxAliased is how many values the aliases of a file may stand for in all.
	maxAliased = 2_000_000

	// maxLocate is the size up to which a syntax error's line is searched for.
	maxLocate = 1 << 20
)

// parse returns the root of the file's only document, or nil after an error: for a file
// that is not YAML, and for a tree that is too large to walk.
func (d *decoder) parse(data []byte) *yaml.Node {
	if !d.isText(data) {
		return nil
	}
	if marks := countMarks(data); marks > maxMarks {
		d.errorf(0, "", "has too many values: more than %d", maxMarks)
		return nil
	}
	doc, err := parseYAML(data)
	switch {
	case errors.Is(err, io.EOF):
		d.errorf(1, "", "is empty: write `targets: []` if there is nothing to probe")
		return nil
	case errors.Is(err, errDocuments) && isManifest(doc.Content[0]):
		d.manifest(doc.Content[0])
		return nil
	case err != nil:
		line, message := locateSyntax(data, err)
		d.errorf(line, "", "%s", message)
		return nil
	}
	root := doc.Content[0]
	if isNull(root) {
		d.errorf(1, "", "is empty: write `targets: []` if there is nothing to probe")
		return nil
	}
	if bytes.IndexByte(data, '*') < 0 {
		return root // there is no alias
	}
	a := aliases{sizes: map[*yaml.Node]int{}}
	if a.size(root); a.problem != "" {
		d.errorf(a.line, "", "%s", a.problem)
		return nil
	}
	return root
}

// isText reports whether data is printable in the sense of YAML. The parser would check
// this too, but its error has no line.
func (d *decoder) isText(data []byte) bool {
	rest := bytes.TrimPrefix(data, []byte("\uFEFF"))
	for i := 0; i < len(rest); {
		if ' ' <= rest[i] && rest[i] <= '~' || rest[i] == '\n' {
			i++
			continue
		}
		r, size := rune(rest[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(rest[i:])
		}
		line := 0
		if r == utf8.RuneError && size == 1 || !printable(r) {
			line = 1 + bytes.Count(rest[:i], []byte("\n"))
		}
		switch {
		case line == 0:
		case r == utf8.RuneError && size == 1:
			d.errorf(line, "", "is not text in UTF-8")
			return false
		default:
			d.errorf(line, "", "has the control character %U: this is not a text file", r)
			return false
		}
		i += size
	}
	return true
}

func printable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < ' ', 0x7f <= r && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

func countMarks(data []byte) int {
	n := 0
	for _, b := range data {
		switch b {
		case '\n', ',', ':', '-', '[', '{', '?':
			n++
		}
	}
	return n
}

var errDocuments = errors.New("must be a single YAML document")

// parseYAML returns the document node, or io.EOF if there is none. With errDocuments it
// returns the first.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return &doc, errDocuments
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return &doc, nil
}

// locateSyntax returns the line of a syntax error and the message. The parser often
// names the line where the surrounding block began, or no line. Because the parser
// reads from the front, the error is on the first line at whose end the parser already
// fails with the same error. The parser's own texts contain nothing of the file except
// an anchor's name, which may be a password that begins with an asterisk.
func locateSyntax(data []byte, err error) (line int, message string) {
	var ends []int
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(data))
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if x, ok := parseDecimal(number); ok {
			n, _ := x.scaled(0)
			line, message = int(min(n, uint64(len(ends)))), text
		}
	}
	if len(data) <= maxLocate {
		line = 1 + sort.Search(len(ends)-1, func(i int) bool {
			_, prefixErr := parseYAML(data[:ends[i]])
			return prefixErr != nil && prefixErr.Error() == err.Error()
		})
	}
	line = max(line, 1)
	start := 0
	if line > 1 {
		start = ends[line-2]
	}
	text := data[start:ends[line-1]]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	switch {
	case bytes.ContainsRune(indent, '\t'):
		message = "a tab cannot indent YAML: use spaces"
	case strings.HasPrefix(message, "unknown anchor"):
		message = "refers to an anchor that is not defined above: quote a value that begins with an asterisk"
	}
	return line, message
}

// aliases counts the values of a tree whose aliases are followed. An anchor stands
// before its aliases, so each node is counted once: finding a bomb takes no longer than
// reading the file.
type aliases struct {
	sizes   map[*yaml.Node]int // of the anchored nodes that have ended
	total   int                // what all aliases stand for
	line    int
	problem string
}

func (a *aliases) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		size, ended := a.sizes[n.Alias]
		switch {
		case a.problem != "":
		case !ended:
			a.line, a.problem = n.Line, "an alias refers to a value that contains the alias"
		default:
			if a.total += size; a.total > maxAliased {
				a.line, a.problem = n.Line, fmt.Sprintf("the aliases stand for too many values: more than %d", maxAliased)
			}
		}
		return size
	}
	size := 1
	for _, child := range n.Content {
		if a.problem != "" {
			break
		}
		size += a.size(child)
	}
	if n.Anchor != "" {
		a.sizes[n] = size
	}
	return size
}
