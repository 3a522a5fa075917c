// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A decimal is exact to the nanosecond, in whatever form.
func TestSecondsAreExact(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0.1":                                  100 * time.Millisecond,
		"0.25":                                 250 * time.Millisecond,
		"0.3":                                  300 * time.Millisecond, // 0.3 × 1e9 is not exact in binary
		"1.1":                                  1100 * time.Millisecond,
		"4.35":                                 4350 * time.Millisecond,
		"0.001":                                time.Millisecond,
		"1e-3":                                 time.Millisecond,
		"0.001000001":                          1000001,
		"1.000000001":                          1000000001,
		"2147483646.999999999":                 2147483646999999999,
		"2147483647":                           2147483647 * time.Second,
		"2147483647.0000000000000000000":       2147483647 * time.Second,
		"21474.83647e5":                        2147483647 * time.Second,
		"1.5":                                  1500 * time.Millisecond,
		"+1.":                                  time.Second,
		".5":                                   500 * time.Millisecond,
		"1E+1":                                 10 * time.Second,
		"0x10":                                 16 * time.Second,
		"0o17":                                 15 * time.Second,
		"017":                                  15 * time.Second,
		"019":                                  19 * time.Second,
		"1_000":                                1000 * time.Second,
		"00000000000000000000000000000001":     time.Second,
		"1" + strings.Repeat("0", 50) + "e-50": time.Second,
		"0.000":                                10 * time.Second, // the default
		"0e999999999":                          10 * time.Second,
		"-0":                                   10 * time.Second,
		"null":                                 10 * time.Second,
		"!!float 1":                            time.Second,
		"!!int '2'":                            2 * time.Second,
	} {
		target := mustLoad(t, "targets: [{name: a, livenessProbe: {grpc: {port: 1}, periodSeconds: "+text+"}}]")
		if got := target.LivenessProbe.Period; got != want {
			t.Errorf("%s is %d ns, want %d", text, got, want)
		}
	}
}

// A number that is not exact, not in range or no number is an error.
func TestSecondsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"-1":                     notNegative,
		"-0.0000000001":          notNegative,
		"-1e999999999":           notNegative,
		"0.000999999":            "must be 0 (unset) or at least 0.001",
		"1e-99999999999999999":   "must be 0 (unset) or at least 0.001",
		"0.0010000000001":        "must be a whole number of nanoseconds",
		"9.99999999999999999999": "must be a whole number of nanoseconds",
		"2147483647.000000001":   "must be less than or equal to 2147483647",
		"2147483647.0000000001":  "must be",
		"9999999999":             "must be less than or equal to 2147483647",
		"1e10":                   "must be less than or equal to 2147483647",
		"1e99999999999999999999": "must be less than or equal to 2147483647",
		"-.inf":                  "must be a number, is -.inf",
		".NaN":                   "must be a number, is .NaN",
		"1e":                     "must be a number, is a string",
		"1e+-1":                  "must be a number, is a string",
		"1e--1":                  "must be a number, is a string",
		".":                      "must be a number, is a string",
		"1.2.3":                  "must be a number, is a string",
		"--1":                    "must be a number, is a string",
		"1:30":                   "must be a number, is a string",
		"2006-01-02":             "must be a number, is a string",
		"!!float x":              "must be a number, is x",
		"!x 1":                   "must be a number, is a value with a tag of its own",
		"{}":                     "must be a number, is a mapping",
	} {
		_, _, err := load(t, "targets: [{name: a, livenessProbe: {grpc: {port: 1}, periodSeconds: "+text+"}}]")
		prefix := "prober.yml:1: targets[0].livenessProbe.periodSeconds: "
		if err == nil || !strings.HasPrefix(err.Error(), prefix+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s gives %v, want %s", text, err, want)
		}
	}
}

// Thresholds are whole numbers of 32 bits, and the grace period is a whole number of 64 bits.
func TestIntegers(t *testing.T) {
	target := mustLoad(t, "targets: [{name: a, livenessProbe: {grpc: {port: 65535}, failureThreshold: 2147483647, terminationGracePeriodSeconds: 9223372036854775807}}]")
	p := target.LivenessProbe
	if p.GRPC.Port != 65535 || p.FailureThreshold != 2147483647 || *p.TerminationGracePeriodSeconds != 9223372036854775807 {
		t.Errorf("%+v", p)
	}
}

// formatSeconds writes a duration as a decimal that reads as the same duration.
func TestFormatSeconds(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0": 0, "0.001": time.Millisecond, "0.1": 100 * time.Millisecond, "10": 10 * time.Second,
		"1.000000001": time.Second + 1, "2147483646.999999999": 2147483646999999999,
	} {
		got := formatSeconds(d)
		if got != want {
			t.Errorf("%d ns is %s, want %s", d, got, want)
		}
		x, ok := parseDecimal(got)
		if ns, exact := x.scaled(9); !ok || !exact || ns != uint64(d) {
			t.Errorf("%s is read as %d ns", got, ns)
		}
	}
}

// parseDecimal reads any decimal that fmt writes exactly.
func FuzzDecimal(f *testing.F) {
	f.Add(uint64(1500), uint8(3))
	f.Fuzz(func(t *testing.T, n uint64, places uint8) {
		n %= 1e18
		p := int(places % 10)
		text := fmt.Sprintf("%0*d", p+1, n)
		text = text[:len(text)-p] + "." + text[len(text)-p:]
		x, ok := parseDecimal(text)
		if got, exact := x.scaled(p); !ok || !exact || got != n {
			t.Errorf("%s × 10^%d is %d (%t, %t), want %d", text, p, got, ok, exact, n)
		}
	})
}
