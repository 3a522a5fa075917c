// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// An error keeps its cause. Each kind of trouble has bits of its own.
func TestKubernetesErrors(t *testing.T) {
	cause := errors.New("cause")
	if err := Errorf(TroubleAnswer, "ask: %w", cause); !errors.Is(err, cause) || err.Error() != "ask: cause" {
		t.Errorf("%v", err)
	}
	var all Trouble
	for i, tr := range []Trouble{TroubleSetup, TroubleConnection, TroubleCertificate, TroubleUnauthorized, TroubleForbidden, TroubleMissing, TroubleExpired, TroubleAnswer, TroubleCut, TroubleConflict, TroubleInvalid} {
		if tr != 1<<i || all&tr != 0 {
			t.Errorf("trouble %s shares a bit with another", strconv.Itoa(i))
		}
		all |= tr
	}
}

// The client obeys a server's Retry-After, for a minute at most.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "9999": time.Minute, "-1": 0, "soon": 0} {
		resp := &http.Response{StatusCode: 429, Status: "429 Too Many Requests", Body: http.NoBody, Header: http.Header{"Retry-After": {header}}}
		if e := refusal(Self{token: "x"}, request{}, resp); e.After != want {
			t.Errorf("Retry-After %s: %v, want %v", header, e.After, want)
		}
	}
}
