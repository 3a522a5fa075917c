// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tokenOf is a token that is bound to a pod.
func tokenOf(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

// The agent's own pod is the pod that the environment names, or else the pod to which the token is
// bound, or else the host name. The address of an IPv6 server has brackets.
func TestKubernetesSelf(t *testing.T) {
	const bound = `{"kubernetes.io":{"namespace":"shop","pod":{"name":"web-7","uid":"u7"}}}`
	for _, tt := range []struct {
		name    string
		environ map[string]string
		token   string
		want    Self
	}{
		{"downward API", map[string]string{"POD_NAME": "p", "POD_NAMESPACE": "n", "POD_UID": "u"}, tokenOf(bound), Self{Namespace: "n", Name: "p", UID: "u", namespaceBy: "POD_NAMESPACE", nameBy: "POD_NAME"}},
		{"name only", map[string]string{"POD_NAME": "p"}, tokenOf(bound), Self{Namespace: "shop", Name: "p", namespaceBy: "DIR/namespace", nameBy: "POD_NAME"}},
		{"the name that the token has too", map[string]string{"POD_NAME": "web-7"}, tokenOf(bound), Self{Namespace: "shop", Name: "web-7", UID: "u7", namespaceBy: "DIR/namespace", nameBy: "POD_NAME"}},
		{"nothing but the token", map[string]string{"HOSTNAME": "node-1"}, tokenOf(bound), Self{Namespace: "shop", Name: "web-7", UID: "u7", namespaceBy: "DIR/namespace", nameBy: "the service account's token"}},
		{"a token of another namespace", map[string]string{"HOSTNAME": "h", "POD_NAMESPACE": "n"}, tokenOf(bound), Self{Namespace: "n", Name: "h", namespaceBy: "POD_NAMESPACE", nameBy: "HOSTNAME"}},
		{"HOSTNAME", map[string]string{"HOSTNAME": "h"}, "opaque", Self{Namespace: "shop", Name: "h", namespaceBy: "DIR/namespace", nameBy: "HOSTNAME"}},
		{"the host name", nil, "a.!.c", Self{Namespace: "shop", Name: "os", namespaceBy: "DIR/namespace", nameBy: "the host name"}},
		{"a token of no JSON", nil, "a.e2.c", Self{Namespace: "shop", Name: "os", namespaceBy: "DIR/namespace", nameBy: "the host name"}},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{"token": tt.token + "\n", "namespace": "shop\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for host, server := range map[string]string{"10.0.0.1": "https://10.0.0.1:443", "fd00::1": "https://[fd00::1]:443", "[fd00::1]": "https://[fd00::1]:443", "api.test": "https://api.test:443"} {
			e := Env{Dir: dir, Hostname: func() (string, error) { return "os", nil }, Getenv: func(name string) string {
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

// In a pod the client reads the files of the service account where a kubelet puts them.
func TestKubernetesDefaults(t *testing.T) {
	e := InPod()
	if e.Dir != "/var/run/secrets/kubernetes.io/serviceaccount" {
		t.Errorf("the service account is in %s", e.Dir)
	}
	t.Setenv("POD_NAME", "web-0")
	if got := e.Getenv("POD_NAME"); got != "web-0" {
		t.Errorf("POD_NAME is %q", got)
	}
}
