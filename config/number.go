// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// decimal is ± digits × 10^exp. The digits have no zero at either end; zero has none.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal reads a decimal number, with a fraction and an exponent if need be. It
// takes time by the length of the text, whatever the exponent.
func parseDecimal(s string) (decimal, bool) {
	var x decimal
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		x.negative, s = true, rest
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		digits := strings.TrimLeft(s[i+1:], "+-")
		if !allDigits(digits) || digits == "" || len(s)-i-1-len(digits) > 1 {
			return decimal{}, false
		}
		// Out of range it stays at the end of the range, which is far enough.
		exp, _ := strconv.ParseInt(s[i+1:], 10, 30)
		x.exp, s = int(exp), s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if !allDigits(whole) || !allDigits(fraction) || whole+fraction == "" {
		return decimal{}, false
	}
	x.exp -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	x.digits = strings.TrimRight(digits, "0")
	x.exp += len(digits) - len(x.digits)
	if x.digits == "" {
		return decimal{}, true
	}
	return x, true
}

func allDigits(s string) bool { return only(s, digits) }

// scaled returns the absolute value × 10^n if that is a whole number below 10^19.
func (x decimal) scaled(n int) (uint64, bool) {
	if x.digits == "" {
		return 0, true
	}
	zeros := x.exp + n
	if zeros < 0 || zeros > 19 || len(x.digits)+zeros > 19 {
		return 0, false
	}
	v, err := strconv.ParseUint(x.digits+strings.Repeat("0", zeros), 10, 64)
	return v, err == nil
}

// magnitude returns m for a number from 10^(m-1) to below 10^m.
func (x decimal) magnitude() int { return len(x.digits) + x.exp }

// number returns a set value as a number.
func (d *decoder) number(v value) (decimal, bool) {
	text := v.node.Value
	switch got := typeName(v.node); got {
	case aNumber:
		// YAML's 0x10, 0o17, 010 and 1_000, as the parser takes them.
		plain := strings.ReplaceAll(text, "_", "")
		if v.node.ShortTag() == "!!int" {
			if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
				plain = strconv.FormatInt(i, 10)
			}
		}
		if x, ok := parseDecimal(plain); ok {
			return x, true
		}
		d.wrong(v, "must be a number, is %s", clip(text))
	case aString:
		// To the parser, what is too large for a float is a string.
		x, ok := parseDecimal(text)
		switch {
		case ok && v.node.Style == 0:
			return x, true
		case ok:
			d.wrong(v, "must be a number, is a string: remove the quotes")
		default:
			d.wrong(v, "must be a number, is a string")
		}
	default:
		d.wrong(v, "must be a number, is %s", got)
	}
	return decimal{}, false
}

const (
	notNegative = "must be greater than or equal to 0"
	positive    = "must be greater than 0"
	portNumber  = "must be between 1 and 65535, inclusive"
)

// integer returns a whole number from low, which is not negative, to high; 0 if the
// value is not set or wrong. outside is what to say of others, if not one by one.
func (d *decoder) integer(v value, low, high int64, below, above string) int64 {
	if !v.set() {
		return 0
	}
	x, ok := d.number(v)
	if !ok {
		return 0
	}
	n, whole := x.scaled(0)
	text := clip(v.node.Value)
	switch {
	case x.negative, whole && n < uint64(low):
		d.wrong(v, "%s, is %s", below, text)
	case !whole && x.exp < 0:
		d.wrong(v, "must be an integer, is %s", text)
	case !whole, n > uint64(high):
		d.wrong(v, "%s, is %s", above, text)
	default:
		return int64(n)
	}
	return 0
}

// count returns a threshold: 0 if it is not set.
func (d *decoder) count(v value) int {
	return int(d.integer(v, 0, math.MaxInt32, notNegative, "must be less than or equal to 2147483647"))
}

// seconds returns a duration, exactly: 0 if it is not set.
func (d *decoder) seconds(v value) time.Duration {
	if !v.set() {
		return 0
	}
	if t, err := time.ParseDuration(v.node.Value); err == nil && t > 0 && typeName(v.node) == aString {
		d.wrong(v, "must be a number of seconds, is a string: write %s", formatSeconds(t))
		return 0
	}
	x, ok := d.number(v)
	if !ok || x.digits == "" {
		return 0
	}
	const most = math.MaxInt32 * uint64(time.Second)
	ns, exact := x.scaled(9)
	text := clip(v.node.Value)
	switch {
	case x.negative:
		d.wrong(v, "%s, is %s", notNegative, text)
	case x.magnitude() > 10, exact && ns > most:
		d.wrong(v, "must be less than or equal to 2147483647, is %s", text)
	case x.magnitude() < -2:
		d.wrong(v, "must be 0 (unset) or at least 0.001, is %s", text)
	case !exact:
		d.wrong(v, "must be a whole number of nanoseconds, is %s", text)
	default:
		return time.Duration(ns)
	}
	return 0
}

// formatSeconds returns a duration in seconds, as a decimal, exactly.
func formatSeconds(t time.Duration) string {
	whole, rest := t/time.Second, t%time.Second
	s := strconv.FormatInt(int64(whole), 10)
	if rest == 0 {
		return s
	}
	fraction := strconv.FormatInt(int64(time.Second+rest), 10)[1:]
	return s + "." + strings.TrimRight(fraction, "0")
}
