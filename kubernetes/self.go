// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Env is the environment in which a container finds its API server and its pod.
type Env struct {
	Dir      string // of the service account's files
	Getenv   func(string) string
	Hostname func() (string, error)
	// Dial connects to the API server; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// InPod returns the environment of this process, which runs in a pod.
func InPod() Env {
	return Env{Dir: "/var/run/secrets/kubernetes.io/serviceaccount", Getenv: os.Getenv, Hostname: os.Hostname}
}

// Self identifies the agent's own pod, its API server and its token.
type Self struct {
	Namespace, Name string
	UID             string // empty if unknown

	server              string // the URL of the API server
	token               string
	namespaceBy, nameBy string // where namespace and name come from
}

// self finds the agent's own pod: from the environment, else from the pod to which the token
// is bound, else from the host name, which is the pod's name except on the host's network.
func (e Env) self() (Self, error) {
	host, port := e.Getenv("KUBERNETES_SERVICE_HOST"), e.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Self{}, Errorf(TroubleSetup, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set: the source kubernetes works only inside a pod")
	}
	s := Self{server: "https://" + net.JoinHostPort(strings.Trim(host, "[]"), port)}
	token, err := e.read("token")
	if err != nil {
		return Self{}, err
	}
	s.token = token
	bound := boundPod(token)

	if s.Namespace, s.namespaceBy = e.Getenv("POD_NAMESPACE"), "POD_NAMESPACE"; s.Namespace == "" {
		if s.Namespace, err = e.read("namespace"); err != nil {
			return Self{}, err
		}
		s.namespaceBy = filepath.Join(e.Dir, "namespace")
	}

	s.Name, s.nameBy = e.Getenv("POD_NAME"), "POD_NAME"
	if s.Name == "" && bound.Namespace == s.Namespace {
		s.Name, s.nameBy = bound.Pod.Name, "the service account's token"
	}
	if s.Name == "" {
		s.Name, s.nameBy = e.Getenv("HOSTNAME"), "HOSTNAME"
	}
	if s.Name == "" {
		if s.Name, err = e.Hostname(); err != nil || s.Name == "" {
			return Self{}, Errorf(TroubleSetup, "find the pod's name: no host name (%w): set POD_NAME through the downward API (metadata.name)", err)
		}
		s.nameBy = "the host name"
	}

	s.UID = e.Getenv("POD_UID")
	if s.UID == "" && bound.Namespace == s.Namespace && bound.Pod.Name == s.Name {
		s.UID = bound.Pod.UID
	}
	return s, nil
}

// read returns the content of a file of the service account, which is never empty.
func (e Env) read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(e.Dir, name))
	if err == nil && len(strings.TrimSpace(string(b))) == 0 {
		err = fmt.Errorf("%s is empty", filepath.Join(e.Dir, name))
	}
	if err != nil {
		return "", Errorf(TroubleSetup, "read the service account's %s: %w; the pod needs one (automountServiceAccountToken: true)", name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// String returns the pod's name and where the name comes from.
func (s Self) String() string {
	return fmt.Sprintf("pod %q (from %s) in namespace %q (from %s)", s.Name, s.nameBy, s.Namespace, s.namespaceBy)
}

// path returns the path of a pod or, with an empty name, that of all pods of the namespace.
func (s Self) path(name string) string {
	p := s.server + "/api/v1/namespaces/" + url.PathEscape(s.Namespace) + "/pods"
	if name == "" {
		return p
	}
	return p + "/" + url.PathEscape(name)
}

// events returns the path of the events of the namespace.
func (s Self) events() string {
	return s.server + "/api/v1/namespaces/" + url.PathEscape(s.Namespace) + "/events"
}

// boundClaims is what a bound service account token says of its pod.
type boundClaims struct {
	Namespace string `json:"namespace"`
	Pod       struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"pod"`
}

// boundPod reads the claims of a token; they are empty for a token of another kind. boundPod
// verifies nothing: the token is the agent's own, and the claims only decide what to ask for.
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
