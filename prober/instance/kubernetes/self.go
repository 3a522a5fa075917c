// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// podSelf is which pod is the agent's own, where to ask for it and as whom. It is
// found anew for each request: the token is replaced every hour or so.
type podSelf struct {
	server               string // the URL of the API server
	token                string
	namespace, name, uid string // the UID is empty if nobody tells it
	namespaceBy, nameBy  string // who said so
}

// self finds the agent's own pod: what the environment names, else what the token
// is bound to, else the host name, which is the pod's but on the host's network.
func (e kubernetesEnv) self() (podSelf, error) {
	host, port := e.getenv("KUBERNETES_SERVICE_HOST"), e.getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return podSelf{}, podErrorf(troubleSetup, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set: the source kubernetes works only inside a pod")
	}
	s := podSelf{server: "https://" + net.JoinHostPort(strings.Trim(host, "[]"), port)}
	token, err := e.read("token")
	if err != nil {
		return podSelf{}, err
	}
	s.token = token
	bound := boundPod(token)

	if s.namespace, s.namespaceBy = e.getenv("POD_NAMESPACE"), "POD_NAMESPACE"; s.namespace == "" {
		if s.namespace, err = e.read("namespace"); err != nil {
			return podSelf{}, err
		}
		s.namespaceBy = filepath.Join(e.dir, "namespace")
	}

	s.name, s.nameBy = e.getenv("POD_NAME"), "POD_NAME"
	if s.name == "" && bound.Namespace == s.namespace {
		s.name, s.nameBy = bound.Pod.Name, "the service account's token"
	}
	if s.name == "" {
		s.name, s.nameBy = e.getenv("HOSTNAME"), "HOSTNAME"
	}
	if s.name == "" {
		if s.name, err = e.hostname(); err != nil || s.name == "" {
			return podSelf{}, podErrorf(troubleSetup, "find the pod's name: no host name (%w): set POD_NAME by the downward API (metadata.name)", err)
		}
		s.nameBy = "the host name"
	}

	s.uid = e.getenv("POD_UID")
	if s.uid == "" && bound.Namespace == s.namespace && bound.Pod.Name == s.name {
		s.uid = bound.Pod.UID
	}
	return s, nil
}

// read returns the content of a file of the service account, which is never empty.
func (e kubernetesEnv) read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(e.dir, name))
	if err == nil && len(strings.TrimSpace(string(b))) == 0 {
		err = fmt.Errorf("%s is empty", filepath.Join(e.dir, name))
	}
	if err != nil {
		return "", podErrorf(troubleSetup, "read the service account's %s: %w; the pod needs one (automountServiceAccountToken: true)", name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// String names the pod and who named it.
func (s podSelf) String() string {
	return fmt.Sprintf("pod %q (from %s) in namespace %q (from %s)", s.name, s.nameBy, s.namespace, s.namespaceBy)
}

// path returns the pod's path, or with an empty name that of all pods of its namespace.
func (s podSelf) path(name string) string {
	p := s.server + "/api/v1/namespaces/" + url.PathEscape(s.namespace) + "/pods"
	if name == "" {
		return p
	}
	return p + "/" + url.PathEscape(name)
}

// rule returns what a Role must have for a request of the source.
func (s podSelf) rule(verb string) string {
	return fmt.Sprintf(`{apiGroups: [""], resources: [pods], resourceNames: [%s], verbs: [%s]}`, s.name, verb)
}

// boundClaims is what a bound service account token says of its pod.
type boundClaims struct {
	Namespace string `json:"namespace"`
	Pod       struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"pod"`
}

// boundPod reads that. It checks nothing: the token is the agent's own, and what it
// says only chooses what to ask for. A token of another kind says nothing.
func boundPod(token string) boundClaims {
	var claims struct {
		Kubernetes boundClaims `json:"kubernetes.io"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return boundClaims{}
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return boundClaims{}
	}
	return claims.Kubernetes
}
