// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package output makes the output of targets safe to show. All output is hostile input, and
// may repeat the secrets that the agent has sent to the target.
package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns at most limit bytes of s, without splitting a character.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Visible returns s with unprintable characters escaped: an output may contain control
// characters, or change the direction of the text around it. Newlines and tabs stay.
func Visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			b.WriteString(s[:n])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}
