// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"math"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// took returns a duration to two or three digits.
func took(d time.Duration) string {
	digits := func(f float64, unit string) string {
		if f < 9.95 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		return fmt.Sprintf("%.0f %s", f, unit)
	}
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 999500*time.Microsecond:
		return digits(float64(d)/float64(time.Millisecond), "ms")
	case d < time.Minute:
		return digits(d.Seconds(), "s")
	default:
		return age(d)
	}
}

// age returns a duration in its greatest unit, and the next one beside it while that
// says something.
func age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	for _, u := range []struct {
		unit, below time.Duration
		name, next  string
	}{
		{24 * time.Hour, time.Hour, "d", "h"},
		{time.Hour, time.Minute, "h", "min"},
		{time.Minute, time.Second, "min", "s"},
	} {
		if d < u.unit {
			continue
		}
		n, rest := d/u.unit, d%u.unit/u.below
		if rest == 0 || n >= 10 {
			return fmt.Sprintf("%d %s", n, u.name)
		}
		return fmt.Sprintf("%d %s %d %s", n, u.name, rest, u.next)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// ago says how long before now a moment was.
func ago(t, now time.Time) string { return age(now.Sub(t)) + " ago" }

// until says how long after now a moment will be.
func until(t, now time.Time) string { return in(t.Sub(now)) }

// in says how long it is until a moment.
func in(d time.Duration) string {
	switch d = d.Round(100 * time.Millisecond); {
	case d <= 0:
		return "now"
	case d < 10*time.Second:
		return fmt.Sprintf("in %.1f s", d.Seconds())
	default:
		return "in " + age(d)
	}
}

// clock returns a moment in UTC, without its date if that is today's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// count returns a number with its thousands apart.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ordinal returns the place of something in a row, from 1.
func ordinal(n int) string {
	words := [...]string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}
	if 0 < n && n <= len(words) {
		return words[n-1]
	}
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return count(n) + suffix
}

// plural returns a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// seconds returns a duration of the configuration as the file has it.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%v s", math.Round(d.Seconds()*1e9)/1e9)
}

// periods returns when a probe has its turns.
func periods(p *prober.ProbeStatus) string {
	if p.UnhealthyPeriod == 0 {
		return seconds(p.Period)
	}
	return seconds(p.Period) + ", " + seconds(p.UnhealthyPeriod) + " while not successful"
}
