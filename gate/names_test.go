// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
)

// Every name is a name of the glossary, and the name of an invalid value says so.
func TestNames(t *testing.T) {
	var got []string
	for k := range Kind(NumKinds + 1) {
		got = append(got, k.String())
	}
	for r := Unknown; r <= Failure+1; r++ {
		got = append(got, r.String())
	}
	for p := PhaseUnknown; p <= Terminated+1; p++ {
		got = append(got, p.String())
	}
	for v := Wait; v <= Quit+1; v++ {
		got = append(got, v.String())
	}
	want := "startup readiness liveness invalid UNKNOWN Success Failure invalid unknown waiting running terminated invalid wait attempt quit invalid"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got %q, want %q", s, want)
	}
	if got := Kind(NumKinds).initial(); got != Unknown {
		t.Errorf("initial result of an invalid kind: got %v, want UNKNOWN", got)
	}
	if p := (Params{InitialDelay: 3}); one(Startup, p).Params(Startup, 0).InitialDelay != 3 {
		t.Error("Params does not return what New was given")
	}
}
