// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// quote returns s for a message: no longer than a line, with nothing that a
// terminal would act upon.
func quote(s string) string {
	const limit = 64
	if len(s) <= limit {
		return strconv.QuoteToASCII(s)
	}
	return strconv.QuoteToASCII(strings.ToValidUTF8(s[:limit], "")) + "…"
}

// clip returns a number for a message. A text that only has a number's tag is quoted.
func clip(number string) string {
	const limit = 40
	if !only(number, alphanumeric+"+-._") {
		return quote(number)
	}
	if len(number) > limit {
		return number[:limit] + "…"
	}
	return number
}

// nearest returns the known key that was probably meant, or nothing.
func nearest(key string, keys []string) string {
	best, least := "", 3
	for _, k := range keys {
		if strings.EqualFold(k, key) {
			return k
		}
		// A short key is near to too many.
		if n := distance(key, k); n < least && n < len(k)/2 {
			best, least = k, n
		}
	}
	return best
}

// distance returns how many bytes must be changed, added or left out to make b of a.
func distance(a, b string) int {
	const longest = 40 // no key is as long
	if len(a) > longest {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
