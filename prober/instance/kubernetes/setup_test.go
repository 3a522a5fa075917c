// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
)

// The source says once what is missing at its start, and what to do, for each kind of trouble. The
// test mends each while the source runs: one Run leads from an empty environment to a watched pod.
func TestKubernetesSetup(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	port, _ := r.Environ.Load("KUBERNETES_SERVICE_PORT")
	r.Environ.Delete("KUBERNETES_SERVICE_PORT")
	r.start(t)
	r.log(t, "level=WARN", "KUBERNETES_SERVICE_PORT", "works only inside a pod")
	if r.Up() || r.Instance("app") != (gate.Instance{}) {
		t.Error("the source is up, or has an instance, without a pod")
	}
	r.Environ.Store("KUBERNETES_SERVICE_PORT", port)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	s.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod")
}

// The error names each part of the environment that is missing or broken, and never a token.
func TestKubernetesSetupErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, r *podRun)
		want  string
	}{
		{"no token", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.Dir, "token")) }, "read the service account's token: open"},
		{"an empty token", func(t *testing.T, r *podRun) { r.File(t, "token", " \n") }, "automountServiceAccountToken: true"},
		{"no namespace", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.Dir, "namespace")) }, "read the service account's namespace"},
		{"no ca.crt", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.Dir, "ca.crt")) }, "read the service account's ca.crt"},
		{"ca.crt is garbage", func(t *testing.T, r *podRun) { r.File(t, "ca.crt", "x") }, "no certificate in it"},
		{"a token of two lines", func(t *testing.T, r *podRun) { r.File(t, "token", "secret-1\nsecret-2") }, "invalid header field value"},
		{"no host name", func(t *testing.T, r *podRun) {
			r.Environ.Delete("POD_NAME")
			r.Hostname = func() (string, error) { return "", errors.New("unnamed") }
		}, "set POD_NAME through the downward API"},
		{"a port that is none", func(t *testing.T, r *podRun) { r.Environ.Store("KUBERNETES_SERVICE_PORT", "http s") }, "invalid port"},
		{"another UID", func(t *testing.T, r *podRun) { r.Environ.Store("POD_UID", "u9") }, "its UID is u1, but that of the agent's own pod is u9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewServer(t)
			r := newPodRun(t, s)
			tt.spoil(t, r)
			r.start(t)
			if tt.name == "another UID" {
				s.Next(t, "get").Answer(200, podOf("10", runsA))
			}
			r.log(t, "level=WARN", tt.want)
			if r.Up() || r.Instance("app") != (gate.Instance{}) {
				t.Error("the source is up, or has an instance, without a pod")
			}
		})
	}
}
