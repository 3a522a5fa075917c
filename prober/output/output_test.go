// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package output

import "testing"

// Unprintable characters are escaped; newlines, tabs and printable characters stay.
func TestVisible(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Visible("plain, é, 日本\u3000\n\ttext"), "plain, é, 日本\u3000\n\ttext"},
		{Visible("\r\n\r\x1b\x7f\u0085\u200b\u202e\ufeff\U000e0001\xff\xc3"), "\n" + `\x0d\x1b\x7f\u0085\u200b\u202e\ufeff\ue0001\xff\xc3`},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// A text is cut between characters.
func TestCut(t *testing.T) {
	for limit, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "aü", 4: "aüb", 9: "aüb"} {
		if got := Cut("aüb", limit); got != want {
			t.Errorf("cut at %d: %q, want %q", limit, got, want)
		}
	}
}
