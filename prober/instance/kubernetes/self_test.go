// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/gate"
)

// tokenOf is a token that is bound to a pod.
func tokenOf(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

// The own pod is what the environment names, else what the token is bound to, else the
// host name; the address of an IPv6 server has brackets.
func TestKubernetesSelf(t *testing.T) {
	const bound = `{"kubernetes.io":{"namespace":"shop","pod":{"name":"web-7","uid":"u7"}}}`
	for _, tt := range []struct {
		name    string
		environ map[string]string
		token   string
		want    podSelf
	}{
		{"downward API", map[string]string{"POD_NAME": "p", "POD_NAMESPACE": "n", "POD_UID": "u"}, tokenOf(bound), podSelf{namespace: "n", name: "p", uid: "u", namespaceBy: "POD_NAMESPACE", nameBy: "POD_NAME"}},
		{"name only", map[string]string{"POD_NAME": "p"}, tokenOf(bound), podSelf{namespace: "shop", name: "p", namespaceBy: "DIR/namespace", nameBy: "POD_NAME"}},
		{"the name that the token has too", map[string]string{"POD_NAME": "web-7"}, tokenOf(bound), podSelf{namespace: "shop", name: "web-7", uid: "u7", namespaceBy: "DIR/namespace", nameBy: "POD_NAME"}},
		{"nothing but the token", map[string]string{"HOSTNAME": "node-1"}, tokenOf(bound), podSelf{namespace: "shop", name: "web-7", uid: "u7", namespaceBy: "DIR/namespace", nameBy: "the service account's token"}},
		{"a token of another namespace", map[string]string{"HOSTNAME": "h", "POD_NAMESPACE": "n"}, tokenOf(bound), podSelf{namespace: "n", name: "h", namespaceBy: "POD_NAMESPACE", nameBy: "HOSTNAME"}},
		{"HOSTNAME", map[string]string{"HOSTNAME": "h"}, "opaque", podSelf{namespace: "shop", name: "h", namespaceBy: "DIR/namespace", nameBy: "HOSTNAME"}},
		{"the host name", nil, "a.!.c", podSelf{namespace: "shop", name: "os", namespaceBy: "DIR/namespace", nameBy: "the host name"}},
		{"a token of no JSON", nil, "a.e2.c", podSelf{namespace: "shop", name: "os", namespaceBy: "DIR/namespace", nameBy: "the host name"}},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{"token": tt.token + "\n", "namespace": "shop\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for host, server := range map[string]string{"10.0.0.1": "https://10.0.0.1:443", "fd00::1": "https://[fd00::1]:443", "[fd00::1]": "https://[fd00::1]:443", "api.test": "https://api.test:443"} {
			e := kubernetesEnv{dir: dir, hostname: func() (string, error) { return "os", nil }, getenv: func(name string) string {
				switch name {
				case "KUBERNETES_SERVICE_HOST":
					return host
				case "KUBERNETES_SERVICE_PORT":
					return "443"
				}
				return tt.environ[name]
			}}
			want := tt.want
			want.server, want.token = server, tt.token
			want.namespaceBy = strings.Replace(want.namespaceBy, "DIR", dir, 1)
			if got, err := e.self(); err != nil || got != want {
				t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, want)
			}
		}
	}
}

// What is missing at start is said once a kind with what to do about it, and each is put
// right while the source runs: 1 Run from an empty environment to a watched pod.
func TestKubernetesSetup(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	port, _ := r.environ.Load("KUBERNETES_SERVICE_PORT")
	r.environ.Delete("KUBERNETES_SERVICE_PORT")
	r.start(t)
	r.log(t, "level=WARN", "KUBERNETES_SERVICE_PORT", "works only inside a pod")
	if r.Up() || r.Instance("app") != (gate.Instance{}) {
		t.Error("up, or an instance, out of nothing")
	}
	r.environ.Store("KUBERNETES_SERVICE_PORT", port)
	s.next(t, "get").answer(200, podOf("10", runsA))
	s.next(t, "10").open()
	r.log(t, "level=INFO", "pod is watched")
}

// Each part of the environment that is missing or broken is named in the error, and no
// token ever is.
func TestKubernetesSetupErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, r *podRun)
		want  string
	}{
		{"no token", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.dir, "token")) }, "read the service account's token: open"},
		{"an empty token", func(t *testing.T, r *podRun) { r.file(t, "token", " \n") }, "automountServiceAccountToken: true"},
		{"no namespace", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.dir, "namespace")) }, "read the service account's namespace"},
		{"no ca.crt", func(t *testing.T, r *podRun) { os.Remove(filepath.Join(r.dir, "ca.crt")) }, "read the service account's ca.crt"},
		{"ca.crt is garbage", func(t *testing.T, r *podRun) { r.file(t, "ca.crt", "x") }, "no certificate in it"},
		{"a token of two lines", func(t *testing.T, r *podRun) { r.file(t, "token", "secret-1\nsecret-2") }, "invalid header field value"},
		{"no host name", func(t *testing.T, r *podRun) {
			r.environ.Delete("POD_NAME")
			r.env.hostname = func() (string, error) { return "", errors.New("unnamed") }
		}, "set POD_NAME by the downward API"},
		{"a port that is none", func(t *testing.T, r *podRun) { r.environ.Store("KUBERNETES_SERVICE_PORT", "http s") }, "invalid port"},
		{"another UID", func(t *testing.T, r *podRun) { r.environ.Store("POD_UID", "u9") }, "its UID is u1, and the agent's own pod has u9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newPodServer(t)
			r := newPodRun(t, s)
			tt.spoil(t, r)
			r.start(t)
			if tt.name == "another UID" {
				s.next(t, "get").answer(200, podOf("10", runsA))
			}
			r.log(t, "level=WARN", tt.want)
			if r.Up() || r.Instance("app") != (gate.Instance{}) {
				t.Error("up, or an instance, out of nothing")
			}
		})
	}
}

// Out of the box the source looks where a kubelet puts the files of the service account.
func TestKubernetesDefaults(t *testing.T) {
	e := New(slog.New(slog.DiscardHandler)).env
	if e.dir != "/var/run/secrets/kubernetes.io/serviceaccount" {
		t.Errorf("service account in %s", e.dir)
	}
	t.Setenv("POD_NAME", "web-0")
	if got := e.getenv("POD_NAME"); got != "web-0" {
		t.Errorf("POD_NAME %q", got)
	}
}
