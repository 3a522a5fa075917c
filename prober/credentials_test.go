// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/credential"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// A probe remembers when the certificates that it saw last expire: over attempts that saw none,
// over failures and unknown attempts, and over a reload, unless the reload changes what the probe
// asks.
func TestCertExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		seconds := 0
		want := func(kind gate.Kind, at int64) {
			t.Helper()
			seconds++
			w.sleepUntil(time.Duration(seconds)*time.Second + 500*ms)
			got := w.probe("app", kind).CertExpires
			if at == 0 && !got.IsZero() || at != 0 && got.Unix() != at {
				t.Errorf("after %d s %v: %v, want %d", seconds, kind, got, at)
			}
		}
		c := app("app", nil, every(time.Second), every(time.Second))
		c.LivenessProbe.HTTPGet.Path = "/other"
		w.apply(c)
		want(gate.Readiness, 0)
		w.says("app/readiness", action.Outcome{Success: true, CertExpires: 100})
		want(gate.Readiness, 100)
		w.says("app/readiness", action.Outcome{Reason: action.ConnectionRefused})
		want(gate.Readiness, 100)
		w.says("app/readiness", action.Outcome{Reason: action.TLSVerify, CertExpires: 50})
		want(gate.Readiness, 50)
		w.on("app/readiness", func(context.Context) (action.Outcome, error) {
			return action.Outcome{Reason: action.LocalFile, CertExpires: 60}, errPanic
		})
		want(gate.Readiness, 60)
		w.says("app/readiness", good)
		w.says("app/liveness", action.Outcome{Success: true, CertExpires: 70})
		want(gate.Liveness, 70)
		w.says("app/liveness", good)

		c = labelled(c, "x")
		c.ReadinessProbe = every(2 * time.Second)
		w.apply(c)
		want(gate.Readiness, 60)
		want(gate.Liveness, 70)
		c.ReadinessProbe = every(2 * time.Second)
		c.ReadinessProbe.HTTPGet.TLS = &config.TLS{CAFile: "/ca"}
		w.apply(c)
		want(gate.Readiness, 0)
		want(gate.Liveness, 70)
		c.LivenessProbe = nil
		w.apply(c)
		c.LivenessProbe = every(time.Second)
		w.apply(c)
		want(gate.Liveness, 0)
	})
}

// The members of a list each have a certificate of their own, whatever the order of the list. A
// member that is renamed begins without one.
func TestCertExpiresOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		list := func(names ...string) config.Target {
			c := app("app", nil, nil, nil)
			c.Several = new([gate.NumKinds]config.Probes)
			for _, name := range names {
				p := every(time.Second)
				p.Name = name
				c.Several[gate.Readiness].Members = append(c.Several[gate.Readiness].Members, p)
			}
			c.Several[gate.Readiness].Require = len(names)
			return c
		}
		want := func(until time.Duration, names string, want ...int64) {
			t.Helper()
			w.sleepUntil(until)
			s, _ := w.m.Target("app", Brief)
			for i, p := range s.Probes {
				if at := p.CertExpires; p.Name != names[i:i+1] || max(at.Unix(), 0) != want[i] {
					t.Errorf("%s after %v: %v, want %d", p.Name, until, at, want[i])
				}
			}
			if len(s.Probes) != len(want) {
				t.Errorf("%d probes", len(s.Probes))
			}
		}
		w.says("app/readiness/a", action.Outcome{Success: true, CertExpires: 100})
		w.says("app/readiness/b", action.Outcome{Success: true, CertExpires: 200})
		w.apply(list("a", "b"))
		want(1500*ms, "ab", 100, 200)
		w.says("app/readiness/a", good)
		w.says("app/readiness/b", good)
		w.apply(list("b", "c", "a"))
		want(2500*ms, "bca", 200, 0, 100)
	})
}

// No log line and no status contains what a file has, or had before it was replaced, in whatever
// form a target repeats it. The token itself is secret without its prefix, too.
func TestSecretsFromFiles(t *testing.T) {
	secret := testutil.NewSecret(t).Put(t, map[string]string{"token": "hunter2-plugh\n", "basic": "am9lOmh1bnRlcjItYmFzaWM=", "spaced": "hunter2-spaced \n"})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		said := []string{}
		w.on("app/readiness", func(ctx context.Context) (action.Outcome, error) {
			token, err := credential.NewToken(secret.Path("token")).Get(ctx)
			if err != nil {
				t.Error(err)
			}
			for _, name := range []string{"basic", "spaced"} {
				if _, err = credential.NewToken(secret.Path(name)).Get(ctx); err != nil {
					t.Error(err)
				}
			}
			if len(said) == 0 || said[len(said)-1] != token {
				said = append(said, token)
			}
			return action.Outcome{
				Reason: action.HTTPStatus,
				Output: strings.Join(said, " or ") + ": Bearer " + token + ", joe:hunter2-basic, hunter2-spaced",
				Body:   base64.StdEncoding.EncodeToString([]byte("x " + said[0])),
			}, nil
		})
		member := every(time.Hour)
		member.Name = "member"
		member.HTTPGet.Headers = []config.Header{{Name: "Proxy-Authorization", ValueFile: secret.Path("basic"), Prefix: "Basic "}, {Name: "X-Key", ValueFile: secret.Path("spaced"), Prefix: "key="}}
		c := app("app", nil, every(time.Second), nil)
		c.ReadinessProbe.HTTPGet.Headers = []config.Header{{Name: "Authorization", ValueFile: secret.Path("token"), Prefix: "Bearer "}}
		c.Several = new([gate.NumKinds]config.Probes)
		c.Several[gate.Liveness] = config.Probes{Require: 1, Members: []*config.Probe{member}}
		w.apply(c)
		w.sleepUntil(1500 * ms)
		secret.Put(t, map[string]string{"token": "hunter2-xyzzy\n", "basic": "am9lOmh1bnRlcjItYmFzaWM=", "spaced": "hunter2-spaced \n"})
		w.sleepUntil(4500 * ms)
		w.apply(labelled(c, "x")) // the new target knows the old token as well
		w.sleepUntil(6500 * ms)
		status, err := json.Marshal(w.m.Status(Full))
		if err != nil {
			t.Fatal(err)
		}
		if len(said) != 2 {
			t.Errorf("the tokens were %q", said)
		}
		seen := w.logged() + string(status)
		for _, part := range []string{"hunter2", "plugh", "xyzzy", "joe", "aHVudGVyM", "h1bnRlcj"} {
			if strings.Contains(seen, part) {
				t.Errorf("%q is visible: %s", part, seen)
			}
		}
		if !strings.Contains(seen, "<redacted> or <redacted>: <redacted>, <redacted>, <redacted>") {
			t.Errorf("the output is missing: %s", seen)
		}
	})
}
