// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// expecting is a file with a probe that expects something.
func expecting(what string) string {
	return "targets: [{name: a, readinessProbe: {httpGet: {port: 80, expect: {" + what + "}}}}]"
}

// The same file has the same expectation whenever it is loaded, so that a reload changes no probe.
// Another expectation is different.
func TestExpectIsComparable(t *testing.T) {
	var all []*Config
	for _, what := range []string{
		"statusCodes: [200]", "statusCodes: [201]", "statusCodes: [200, 201]", "bodyMatches: a", "bodyMatches: b", "bodyDoesNotMatch: a",
		"headers: [{name: A, matches: a}]", "headers: [{name: B, matches: a}]", "headers: [{name: A, matches: b}]",
	} {
		cfg, _, err := load(t, expecting(what))
		if err != nil {
			t.Fatal(err)
		}
		again, _, _ := load(t, expecting(what))
		if !reflect.DeepEqual(cfg, again) {
			t.Errorf("%s is not equal to itself", what)
		}
		for _, other := range all {
			if reflect.DeepEqual(cfg, other) || cfg.Targets[0].ReadinessProbe.HTTPGet.Expect.key() == other.Targets[0].ReadinessProbe.HTTPGet.Expect.key() {
				t.Errorf("%s is equal to another", what)
			}
		}
		all = append(all, cfg)
	}
}

// A regular expression may have 1,000 bytes and 500 instructions.
func TestExpectBounds(t *testing.T) {
	for text, want := range map[string]string{
		"[" + strings.Repeat("a", 998) + "]": "",
		"[" + strings.Repeat("a", 999) + "]": "at most 1000 bytes, has 1001",
		"a{498}":                             "",
		"a{499}":                             "compiles to 501 instructions, at most 500 are allowed",
		`(\\pL{100}){9}`:                     "at most 500 are allowed",
		"(a{100}){100}":                      "invalid repeat count",
	} {
		_, _, err := load(t, expecting(fmt.Sprintf("bodyMatches: \"%s\"", text)))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) && want != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
}
