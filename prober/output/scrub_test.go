// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// form is a way to write a text.
type form struct {
	name  string
	write func(string) string
}

func in64(e *base64.Encoding) func(string) string {
	return func(s string) string { return e.EncodeToString([]byte(s)) }
}

func inJSON(escapeHTML bool) func(string) string {
	return func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		if err := e.Encode(s); err != nil {
			panic(err)
		}
		return strings.TrimSpace(b.String())
	}
}

// forms are the forms in which Clean looks for a secret.
var forms = []form{
	{"as it is", func(s string) string { return s }},
	{"Go", strconv.Quote},
	{"Go, ASCII", strconv.QuoteToASCII},
	{"an error", func(s string) string { return fmt.Sprintf("%q", s) }},
	{"JSON", inJSON(false)},
	{"JSON for HTML", inJSON(true)},
	{"JSON, ASCII", func(s string) string {
		var b strings.Builder
		for _, r := range inJSON(false)(s) {
			if r < utf8.RuneSelf {
				b.WriteRune(r)
			} else if r < 0x10000 {
				fmt.Fprintf(&b, `\u%04X`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			}
		}
		return b.String()
	}},
	{"JSON with \\/", func(s string) string { return strings.ReplaceAll(inJSON(false)(s), "/", `\/`) }},
	{"octal", func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, `\%03o`, s[i])
		}
		return b.String()
	}},
	{"HTML", html.EscapeString},
	{"HTML, by numbers", func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, "&#x%x;", r)
		}
		return b.String()
	}},
	{"a query", url.QueryEscape},
	{"a path", url.PathEscape},
	{"base64", in64(base64.StdEncoding)},
	{"base64, raw", in64(base64.RawStdEncoding)},
	{"base64 for URLs", in64(base64.URLEncoding)},
	{"base64 for URLs, raw", in64(base64.RawURLEncoding)},
	{"base64 in lines", func(s string) string {
		var b strings.Builder
		for i, c := range base64.StdEncoding.EncodeToString([]byte(s)) {
			if b.WriteRune(c); i%7 == 6 {
				b.WriteString("\r\n")
			}
		}
		return b.String()
	}},
}

// leaks returns what is wrong with a cleaned text. The text had a secret in two forms, one
// inside the other, with something around it. leaks returns "" if the text hides the secret and
// nothing else.
func leaks(got, written, around string, outer form) string {
	left, right, found := strings.Cut(got, hidden)
	frame := outer.write(around + "\r\n==") // this may stay on either side, with some of the inner form
	switch {
	case !found || strings.Contains(right, hidden):
		return "not hidden once"
	case !strings.HasPrefix("<< "+written, left) || !strings.HasSuffix(written+" >>", right):
		return "something else has changed"
	case len(left) > len("<< ")+len(frame)+1 || len(right) > len(" >>")+len(frame)+1:
		return "too much is left"
	}
	return ""
}

// Clean finds a secret in every form, alone and inside another form, whatever is around the
// secret, and leaves the text around it.
func TestCleanForms(t *testing.T) {
	secrets := []string{`ab"cd`, `pass\word`, "sécret <&> 100%+1", "日本語😀key", "line one\nline two", "Bearer abc/def==", "tok.en", "a b c d"}
	for _, secret := range secrets {
		s := NewScrubber([]string{secret})
		for _, outer := range forms {
			for _, inner := range forms {
				for _, around := range []string{"", "x", "xy", "xyz"} {
					written := outer.write(around + inner.write(secret) + around)
					got := s.Clean("<< "+written+" >>", 4096)
					if wrong := leaks(got, written, around, outer); wrong != "" {
						t.Errorf("%q as %s in %s, %q: %s: %q", secret, inner.name, outer.name, written, wrong, got)
					}
				}
			}
		}
	}
}

// Text that is no secret stays, byte for byte, whatever escapes it has.
func TestCleanLeavesTheRest(t *testing.T) {
	s := NewScrubber([]string{"s3cret", "ab\xffcd"})
	for _, text := range []string{
		"", "ok", `\`, `\x`, `\ud83d`, `\ud83d\u0`, "&", "&amp", "%", "%2", "+", "c2Vj", "s3cre", "S3CRET", "s3 cret",
		`a\u00e9\ud83d\ude00 \xff \777 &eacute;&#0;&nosuch; %zz%20+ dGhlIHF1aWNrIGJyb3duIGZveA==`, "\xff\x00\u202e",
	} {
		if got := s.Clean(text, 1000); got != text {
			t.Errorf("%q has become %q", text, got)
		}
	}
	if got := s.Clean("as3crets3cretb s3crets3cre", 1000); got != "a"+hidden+hidden+"b "+hidden+"s3cre" {
		t.Errorf("got %q", got)
	}
	// Bytes that are not UTF-8 differ in JSON.
	if got := s.Clean(inJSON(true)("ab\xffcd"), 1000); got != `"`+hidden+`"` {
		t.Errorf("got %q", got)
	}
	if got := (*Scrubber)(nil).Clean("s3cret", 4); got != "s3cr" || NewScrubber(nil) != nil {
		t.Errorf("without secrets: %q", got)
	}
}

// Secrets that overlap are hidden together: no part of either is left.
func TestCleanOverlap(t *testing.T) {
	s := NewScrubber([]string{"abcdef", "defghi", "cdefg"})
	if got := s.Clean("1abcdefghi2cdefghi3", 1000); got != "1"+hidden+"2"+hidden+"3" {
		t.Errorf("got %q", got)
	}
}

// A cut text ends without a part of a secret, in any form.
func TestCleanCut(t *testing.T) {
	const limit = 64
	secret := `0"123<45&6789 abc%def\ghi-` + strings.Repeat("a&b ", 15)
	for _, f := range forms {
		written := f.write(secret)
		text := strings.Repeat(written+"\n", 5)
		for cut := reach * limit; cut < reach*limit+len(written)+2 && cut < len(text); cut++ {
			got := NewScrubber([]string{secret}).Clean(text[:cut], limit)
			left := strings.NewReplacer(hidden, "", "\n", "", "\r", "", `"`, "", "=", "").Replace(got)
			if left != "" || !strings.Contains(got, hidden) {
				t.Errorf("%s, cut at %d: %q", f.name, cut, got)
			}
		}
	}
}

// FuzzClean writes random secrets in random forms. Clean never leaves one.
func FuzzClean(f *testing.F) {
	f.Add([]byte("s3cret"), "before", "after", uint8(3), uint8(9))
	f.Add([]byte("a\"b\\c\xff"), "", "\\", uint8(1), uint8(4))
	f.Add([]byte("é&<>%+ 😀"), "AA", "BBB", uint8(12), uint8(15))
	f.Fuzz(func(t *testing.T, raw []byte, before, after string, i, j uint8) {
		secret := string(raw)
		inner, outer := forms[int(i)%len(forms)], forms[int(j)%len(forms)]
		odd := func(r rune) bool { return r == 0 || 0x80 <= r && r < 0xa0 } // HTML has no number for these
		if len(secret) < 4 || len(before+secret+after) > 1000 || strings.Contains(hidden, secret) || !utf8.ValidString(before+secret+after) || strings.ContainsFunc(secret, odd) {
			return
		}
		written := outer.write("," + inner.write(secret) + ",")
		got := NewScrubber([]string{secret}).Clean(before+" "+written+" "+after, 1<<20)
		if strings.Contains(got, written) || strings.Contains(got, secret) && !strings.Contains(before+after, secret) {
			t.Errorf("%q as %s in %s: %q", secret, inner.name, outer.name, got)
		}
		if NewScrubber([]string{secret}).Clean(before, 1<<20) == before && NewScrubber([]string{secret}).Clean(after, 1<<20) == after &&
			!strings.Contains(got, hidden) {
			t.Errorf("%q as %s in %s: nothing is hidden: %q", secret, inner.name, outer.name, got)
		}
	})
}
