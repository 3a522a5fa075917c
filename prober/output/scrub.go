// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// hidden stands in place of a secret.
const hidden = "<redacted>"

const (
	// reach is how many bytes of a text are searched for each byte shown. The surplus is
	// for a text that begins with secrets, which may be longer than hidden.
	reach = 4
	// depth is how many nested escapes are undone: JSON quoted in an error has two.
	depth = 2
	// longest is the length of the longest character written with two escapes.
	longest = 36
)

// Scrubber takes secrets out of texts, both literal and escaped: quoted as in Go, C or JSON, as
// HTML, in a URL, in base64, and in two of these nested. A nil Scrubber knows no secrets.
type Scrubber struct {
	secrets []string
	run     int // the number of base64 digits that the shortest secret fills

	late func() []string // all secrets of this moment; nil if none come later
}

// NewLateScrubber returns a scrubber for the secrets that late returns at each call of Clean.
func NewLateScrubber(late func() []string) *Scrubber { return &Scrubber{late: late} }

// NewScrubber returns a scrubber for these secrets; nil if there are none.
func NewScrubber(secrets []string) *Scrubber {
	if len(secrets) == 0 {
		return nil
	}
	s := &Scrubber{secrets: secrets}
	shortest := len(secrets[0])
	for _, secret := range secrets {
		shortest = min(shortest, len(secret))
		if !utf8.ValidString(secret) {
			// JSON can repeat the secret only in this form.
			s.secrets = append(slices.Clip(s.secrets), string([]rune(secret)))
		}
	}
	s.run = shortest * 8 / 6
	return s
}

// Clean returns at most limit bytes of text, without secrets. Clean takes secrets out before it
// cuts, so that no secret is cut in two. A text of limit × 4 bytes or more may have been cut
// already: Clean also takes out what may be the beginning of a secret at the end of these bytes.
func (s *Scrubber) Clean(text string, limit int) string {
	if s != nil && s.late != nil {
		s = NewScrubber(s.late())
	}
	if s == nil {
		return Cut(text, limit)
	}
	raw := view{text: Cut(text, reach*limit)}
	if len(text) >= reach*limit {
		// As long as nothing else is hidden, the end is not shown. It matters only if a secret
		// begins in the shown part and reaches to the end.
		raw.tail = max((reach-1)*limit/longest, 1)
	}
	// Most texts have no secret. This first look needs no map back to the text.
	if len(s.look(nil, &raw, depth)) == 0 {
		return Cut(text, limit)
	}
	raw.maps, raw.tail = true, min(raw.tail, 1)
	raw.whole = len(raw.text)
	return Cut(hide(raw.text, s.look(nil, &raw, depth)), limit)
}

// span is a part of a text.
type span struct{ from, to int }

// hide replaces the spans found in text by hidden.
func hide(text string, found []span) string {
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var b strings.Builder
	end := 0
	for _, f := range found {
		if f.from >= end {
			b.WriteString(text[end:f.from])
			b.WriteString(hidden)
		}
		end = max(end, f.to)
	}
	b.WriteString(text[end:])
	return b.String()
}

// look appends the spans of secrets in a view, and in the views made by undoing up to depth
// nested escapes.
func (s *Scrubber) look(found []span, v *view, depth int) []span {
	for _, secret := range s.secrets {
		found = v.find(found, secret)
	}
	if depth == 0 {
		return found
	}
	for i := range escapes {
		if undone := v.unescape(&escapes[i]); undone != nil {
			found = s.look(found, undone, depth-1)
		}
	}
	for shift := range 4 {
		if undone := v.unbase64(shift, s.run); undone != nil {
			found = s.look(found, undone, depth-1)
		}
	}
	return found
}

// find appends the spans of a secret in the view.
func (v *view) find(found []span, secret string) []span {
	for at := 0; ; at++ {
		i := strings.Index(v.text[at:], secret)
		if i < 0 {
			break
		}
		at += i
		found = append(found, v.span(at, at+len(secret)))
	}
	if v.tail == 0 {
		return found
	}
	for n := min(len(secret)-1, len(v.text)); n >= v.tail; n-- {
		if at := len(v.text) - n; v.text[at:] == secret[:n] {
			return append(found, span{v.span(at, at+1).from, v.whole})
		}
	}
	return found
}
