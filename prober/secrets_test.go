// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// No log line and no status contains a secret, in whatever form and place a target repeats the
// secret.
func TestSecretsInEveryForm(t *testing.T) {
	const secret = `tr0ub"xyzzy\plugh & frobozz`
	inJSON, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"plain":  secret,
		"Go":     fmt.Sprintf("malformed MIME header line: %q", "X-Key "+secret),
		"JSON":   string(inJSON),
		"HTML":   html.EscapeString(secret),
		"query":  url.QueryEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			long := strings.Repeat(" ", maxSuccessOutput-len(form)/2) // the cut of the output is within the secret
			w.says("app/startup", action.Outcome{Success: true, Output: long + form})
			w.says("app/readiness", action.Outcome{Reason: action.HTTPStatus, Output: form, Body: long + form, Address: "http://h/?" + form})
			w.on("app/liveness", func(context.Context) (action.Outcome, error) {
				if time.Since(w.begin) > time.Second {
					panic(form)
				}
				return action.Outcome{Reason: action.ExecStart}, errors.New(form)
			})
			c := app("app", every(time.Second), every(time.Second), every(time.Second))
			c.Env = []config.EnvVar{{Name: "TOKEN", Value: secret}}
			c.LivenessProbe.HTTPGet.Path = "/?key=" + form
			w.apply(c)
			w.sleepUntil(3 * time.Second)
			status, err := json.Marshal(w.m.Status(Full))
			if err != nil {
				t.Fatal(err)
			}
			seen := w.logged() + string(status)
			for _, part := range []string{"tr0ub", "xyzzy", "plugh", "frobozz", form[len(form)/2:]} {
				if strings.Contains(seen, part) {
					t.Errorf("%s: %q is visible: %s", name, part, seen)
				}
			}
			if !strings.Contains(seen, "<redacted>") || w.m.Status(Brief).Panics == 0 {
				t.Errorf("%s: the output is missing: %s", name, seen)
			}
		})
	}
}
