// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Expect is what an answer must be, beyond what a kubelet asks of it. All of it must hold.
type Expect struct {
	// StatusCodes are the statuses that are expected; empty: 200 to 399, with the kubelet's rules
	// for redirects.
	StatusCodes []StatusRange

	// The body, or its first 10 KiB. nil: nothing is expected.
	BodyMatches, BodyDoesNotMatch *regexp.Regexp

	Headers []ExpectHeader
}

// StatusRange is a range of HTTP statuses, both ends included.
type StatusRange struct{ From, To int }

// String returns 307 or 200-299.
func (r StatusRange) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}

// ExpectHeader expects that a header has a value that matches.
type ExpectHeader struct {
	Name    string
	Matches *regexp.Regexp
}

// The bounds of a regular expression: of its text, and of the instructions that Go's package regexp
// makes of it. The time of a match is at most the product of the instructions and of the bytes that
// are searched.
const (
	maxExpression   = 1000
	maxInstructions = 500
)

// expect returns what a probe expects; nil if the file does not say.
func (d *decoder) expect(v value) *Expect {
	if !v.set() {
		return nil
	}
	keys := []string{"statusCodes", "bodyMatches", "bodyDoesNotMatch", "headers"}
	o, ok := d.object(v, keys...)
	if !ok {
		return nil
	}
	if !slices.ContainsFunc(keys, func(key string) bool { return o.get(key).says() }) {
		d.wrong(v, "must have statusCodes, bodyMatches, bodyDoesNotMatch or headers")
		return nil
	}
	e := &Expect{
		StatusCodes:      d.statusCodes(o.get("statusCodes")),
		BodyMatches:      d.expression(o.get("bodyMatches")),
		BodyDoesNotMatch: d.expression(o.get("bodyDoesNotMatch")),
		Headers:          d.expectHeaders(o.get("headers")),
	}
	return d.shared.expectation(e)
}

// says reports whether the file has the value, and the value is not an empty list.
func (v value) says() bool {
	return v.set() && (v.node.Kind != yaml.SequenceNode || len(v.node.Content) > 0)
}

func (d *decoder) statusCodes(v value) []StatusRange {
	var codes []StatusRange
	for _, item := range d.list(v) {
		if r, ok := d.statusRange(item); ok {
			codes = append(codes, r)
		}
	}
	return codes
}

// statusRange returns a status, as a number or a string, or a range of statuses.
func (d *decoder) statusRange(v value) (StatusRange, bool) {
	if got := typeName(v.node); got != aNumber && got != aString {
		d.wrong(v, `must be a status such as 307 or a range such as "200-299", is %s`, got)
		return StatusRange{}, false
	}
	from, to, isRange := strings.Cut(v.node.Value, "-")
	if !isRange {
		to = from
	}
	r := StatusRange{From: status(from), To: status(to)}
	switch {
	case r.From == 0 || r.To == 0:
		d.wrong(v, `must be a status such as 307 or a range such as "200-299", from 100 to 599, is %s`, quote(v.node.Value))
	case r.From > r.To:
		d.wrong(v, "must be a range from a lower to a higher status, is %s", quote(v.node.Value))
	default:
		return r, true
	}
	return StatusRange{}, false
}

// status returns the number of an HTTP status, 0 if the text is none.
func status(text string) int {
	if len(text) != 3 || !allDigits(text) || text[0] < '1' || text[0] > '5' {
		return 0
	}
	n, _ := strconv.Atoi(text) // three digits
	return n
}

// expression returns a regular expression; nil if it is not set or wrong.
func (d *decoder) expression(v value) *regexp.Regexp {
	text, ok := d.str(v)
	if !ok || !v.set() {
		return nil
	}
	if len(text) > maxExpression {
		d.wrong(v, "must be a regular expression of at most %d bytes, has %d", maxExpression, len(text))
		return nil
	}
	switch size, err := instructions(text); {
	case text == "":
		d.wrong(v, "must not be empty")
	case err != nil:
		d.wrong(v, "must be a regular expression: %s", syntaxProblem(err))
	case size > maxInstructions:
		d.wrong(v, "must be a simpler regular expression: this one compiles to %d instructions, at most %d are allowed, and a{100} makes 100",
			size, maxInstructions)
	default:
		return regexp.MustCompile(text)
	}
	return nil
}

// instructions returns how many instructions Go makes of a regular expression.
func instructions(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// syntaxProblem says on one line what is wrong with a regular expression.
func syntaxProblem(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String() + ": " + quote(e.Expr)
	}
	return quote(err.Error())
}

func (d *decoder) expectHeaders(v value) []ExpectHeader {
	var headers []ExpectHeader
	for _, item := range d.list(v) {
		o, ok := d.object(item, "name", "matches")
		if !ok {
			continue
		}
		v := o.get("name")
		name, ok := d.str(v)
		switch {
		case !ok:
		case name == "":
			d.wrong(v, required)
		case !validToken(name):
			d.wrong(v, "must be the name of a header, is %s", quote(name))
		}
		v = o.get("matches")
		if !v.set() {
			d.wrong(v, required)
		}
		headers = append(headers, ExpectHeader{Name: name, Matches: d.expression(v)})
	}
	return headers
}

// validToken reports whether s may name a header of a response, which is more than Kubernetes lets
// a probe send.
func validToken(s string) bool { return only(s, alphanumeric+"!#$%&'*+-.^_`|~") }

// node returns the expectation as the file would have it.
func (e *Expect) node() *yaml.Node {
	n := mapping()
	codes := list()
	for _, r := range e.StatusCodes {
		codes.Content = append(codes.Content, quoted(r.String()))
	}
	addSome(n, "statusCodes", codes)
	addExpression(n, "bodyMatches", e.BodyMatches)
	addExpression(n, "bodyDoesNotMatch", e.BodyDoesNotMatch)
	headers := list()
	for _, h := range e.Headers {
		header := mapping()
		add(header, "name", text(h.Name))
		addExpression(header, "matches", h.Matches)
		headers.Content = append(headers.Content, header)
	}
	addSome(n, "headers", headers)
	return n
}

// quoted returns a string that could be taken for a number.
func quoted(s string) *yaml.Node {
	n := text(s)
	n.Style = yaml.DoubleQuotedStyle
	return n
}

func addExpression(n *yaml.Node, key string, e *regexp.Regexp) {
	if e != nil {
		add(n, key, text(e.String()))
	}
}

// key returns a text that two expectations share only if they are equal.
func (e *Expect) key() string {
	var b strings.Builder
	put := func(s string) { b.WriteString(strconv.Quote(s)) }
	for _, r := range e.StatusCodes {
		put(r.String())
	}
	for _, p := range []*regexp.Regexp{e.BodyMatches, e.BodyDoesNotMatch} {
		b.WriteByte(' ')
		if p != nil {
			put(p.String())
		}
	}
	for _, h := range e.Headers {
		put(h.Name)
		put(h.Matches.String())
	}
	return b.String()
}

// expectation returns the expectation that stands for all equal ones. An incomplete one is a
// mistake and stands for itself.
func (c *shared) expectation(e *Expect) *Expect {
	for _, h := range e.Headers {
		if h.Matches == nil {
			return e
		}
	}
	return one(c.expects, e.key(), e)
}
