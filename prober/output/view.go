// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text with escapes undone, and a map from each byte back to the text.
type view struct {
	text  string
	tail  int     // how much of a secret at the end counts as a cut secret; 0: the text is not cut
	maps  bool    // the map is wanted
	from  []int32 // where the origin of each byte begins; nil: nothing is undone
	to    []int32 // … and ends
	whole int     // length of the text
}

// span returns the part of the text from which some bytes of the view come.
func (v *view) span(from, to int) span {
	if v.from == nil {
		return span{from, to}
	}
	return span{int(v.from[from]), int(v.to[to-1])}
}

// add adds bytes to the view; they come from a part of an older view.
func (v *view) add(b []byte, of *view, from, to int) []byte {
	if !v.maps {
		return b
	}
	part := of.span(from, to)
	for len(v.from) < len(b) {
		v.from, v.to = append(v.from, int32(part.from)), append(v.to, int32(part.to))
	}
	return b
}

// copy adds a part of an older view to this one.
func (v *view) copy(b []byte, of *view, from, to int) []byte {
	if !v.maps {
		return append(b, of.text[from:to]...)
	}
	for i := from; i < to; i++ {
		b = v.add(append(b, of.text[i]), of, i, i+1)
	}
	return b
}

// escape is a way to escape characters.
type escape struct {
	starts string // every escape begins with one of these
	// undo appends to b what the escape at the beginning of s stands for, and returns the
	// length of the escape: 0 if there is none, negative if s ends too early to tell.
	undo func(b []byte, s string) (_ []byte, n int)
}

var escapes = [...]escape{{`\`, backslash}, {"&", entity}, {"%", percent}, {"+%", query}}

// unescape returns a view with every e undone, nil if there is none.
func (v *view) unescape(e *escape) *view {
	if !strings.Contains(v.text, e.starts[:1]) {
		return nil
	}
	out := &view{tail: v.tail, maps: v.maps, whole: v.whole}
	b := make([]byte, 0, len(v.text))
	for i := 0; i < len(v.text); {
		next := len(v.text)
		if n := strings.IndexAny(v.text[i:], e.starts); n >= 0 {
			next = i + n
		}
		b = out.copy(b, v, i, next)
		if i = next; i == len(v.text) {
			break
		}
		var n int
		b, n = e.undo(b, v.text[i:])
		if n < 0 && v.tail > 0 {
			break // the rest belongs to what comes before
		}
		if n <= 0 {
			b, n = append(b, v.text[i]), 1
		}
		b = out.add(b, v, i, i+n)
		i += n
	}
	out.text = string(b)
	return out
}

// backslash undoes the escapes of strings in Go, C and JSON.
func backslash(b []byte, s string) ([]byte, int) {
	if len(s) < 2 {
		return b, -1
	}
	switch c := s[1]; c {
	case 'x':
		n, length := digits(s[2:], 2, 16)
		if length == 2 {
			return append(b, byte(n)), 4
		}
		return b, unfinished(s, 4)
	case 'u', 'U':
		return backslashU(b, s)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n, length := digits(s[1:], 3, 8)
		return append(b, byte(n)), 1 + length
	default:
		if i := strings.IndexByte("abfnrtv", c); i >= 0 {
			c = "\a\b\f\n\r\t\v"[i]
		}
		return append(b, c), 2
	}
}

// backslashU undoes \UXXXXXXXX and \uXXXX, of which JSON uses two for some characters.
func backslashU(b []byte, s string) ([]byte, int) {
	most := 4
	if s[1] == 'U' {
		most = 8
	}
	n, length := digits(s[2:], most, 16)
	if length < most {
		return b, unfinished(s, 2+most)
	}
	r, end := rune(n), 2+most
	if utf16.IsSurrogate(r) {
		low, found := strings.CutPrefix(s[end:], `\u`)
		if !found && len(low) < 2 || found && len(low) < 4 {
			return b, -1
		}
		n, length := digits(low, 4, 16)
		if pair := utf16.DecodeRune(r, rune(n)); found && length == 4 && pair != utf8.RuneError {
			return utf8.AppendRune(b, pair), end + 6
		}
	}
	return utf8.AppendRune(b, r), end
}

// unfinished returns 0, no escape, or a negative number if s ends before n bytes, so that there
// may be one.
func unfinished(s string, n int) int {
	if len(s) < n {
		return -1
	}
	return 0
}

// digits returns the number at the beginning of s, and its number of digits.
func digits(s string, most, base int) (n, length int) {
	for length < min(most, len(s)) {
		d := strings.IndexByte("0123456789abcdef", s[length]|('A'^'a')) // digits have that bit, too
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
		length++
	}
	return n, length
}

// maxEntity is the length of the longest entity.
const maxEntity = 32

// entity undoes the escapes of HTML.
func entity(b []byte, s string) ([]byte, int) {
	end := strings.IndexByte(s[:min(len(s), maxEntity)], ';') + 1
	if end == 0 {
		return b, unfinished(s, maxEntity)
	}
	if c := html.UnescapeString(s[:end]); c != s[:end] {
		return append(b, c...), end
	}
	return b, 0
}

// percent undoes the escapes of URLs.
func percent(b []byte, s string) ([]byte, int) {
	n, length := digits(s[1:], 2, 16)
	if length < 2 {
		return b, unfinished(s, 3)
	}
	return append(b, byte(n)), 3
}

// query undoes the escapes of a URL's query, where a plus is a space.
func query(b []byte, s string) ([]byte, int) {
	if s[0] == '+' {
		return append(b, ' '), 1
	}
	return percent(b, s)
}

// sixBits has the value of each base64 digit, of both alphabets; negative if it is no digit.
var sixBits = func() (values [256]int8) {
	for i := range values {
		values[i] = -1
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		values[c] = int8(i)
	}
	values['-'], values['_'] = values['+'], values['/']
	return values
}()

// unbase64 undoes base64 in runs of at least that many digits, which may span lines; it returns
// nil if there is no such run. The beginning of the groups of four is unknown: shift, from 0 to
// 3, is the number of digits before the first group of a run.
func (v *view) unbase64(shift, least int) *view {
	var out *view
	var b []byte
	for i := 0; i < len(v.text); {
		run := 0 // digits
		end := i
		for ; end < len(v.text); end++ {
			if sixBits[v.text[end]] >= 0 {
				run++
			} else if c := v.text[end]; run == 0 || c != '\n' && c != '\r' {
				break
			}
		}
		last := end == len(v.text)
		if run >= max(least, 1) || last && run > 0 && v.tail > 0 {
			if out == nil {
				out = &view{tail: v.tail, maps: v.maps, whole: v.whole}
			}
			b = out.group(b, v, i, end, shift)
		}
		if i = end + 1; out != nil && !last {
			b = out.add(append(b, 0), v, end, end+1) // no secret spans two runs
		}
	}
	if out != nil {
		out.text = string(b)
	}
	return out
}

// group appends the bytes that a run of digits stands for.
func (v *view) group(b []byte, of *view, from, to, shift int) []byte {
	bits, n, before := 0, 0, from
	for i := from; i < to; i++ {
		digit := sixBits[of.text[i]]
		if digit < 0 {
			continue
		}
		if shift > 0 {
			shift--
			continue
		}
		bits, n = bits<<6&0xffff|int(digit), n+6
		if n >= 8 {
			n -= 8
			b = v.add(append(b, byte(bits>>n)), of, before, i+1)
		}
		before = i
	}
	return b
}
