// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is a client of the API server for the agent's own pod, with the pod's
// service account.
package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Resources of the core API, as a Role spells them.
const (
	resourcePods   = "pods"
	resourceEvents = "events"
)

// MaxObject bounds how many bytes an answer or an event may have. etcd accepts 1.5 MiB of a
// pod in binary form, which as JSON is less than MaxObject.
const MaxObject = 4 << 20

// Client asks the API server over HTTP/1.1 with TCP keep-alive: one connection for a watch,
// and one for all other requests if they come one after another. A Client is safe for
// concurrent use.
type Client struct {
	env     Env
	timeout time.Duration

	mu     sync.Mutex
	ca     string
	client *http.Client
}

// New returns a client that looks for its API server and its pod in env. The timeout bounds
// each answer, and the beginning of each watch. New does not connect.
func New(env Env, timeout time.Duration) *Client { return &Client{env: env, timeout: timeout} }

// Self finds the agent's own pod. Callers call Self before each request, because the token is
// replaced every hour or so.
func (a *Client) Self() (Self, error) { return a.env.self() }

// request is a request about a pod, and the right that it needs.
type request struct {
	verb     string // as a Role spells it
	resource string
	named    bool // a Role may name the pod
	address  string
	method   string
	body     any // of PATCH or POST; nil: none
}

// Get asks for the agent's pod and decodes the answer into pod. Every error of the client
// is an *Error.
func (a *Client) Get(ctx context.Context, self Self, pod any) error {
	return a.ask(ctx, self, request{verb: "get", resource: resourcePods, named: true, method: http.MethodGet, address: self.path(self.Name)}, pod)
}

// PatchStatus patches the status of the agent's pod by a strategic merge, and decodes the pod
// after that into pod.
func (a *Client) PatchStatus(ctx context.Context, self Self, patch, pod any) error {
	return a.ask(ctx, self, request{
		verb: "patch", resource: "pods/status", named: true,
		method: http.MethodPatch, address: self.path(self.Name) + "/status", body: patch,
	}, pod)
}

// CreateEvent creates an event in the namespace of the agent's pod.
func (a *Client) CreateEvent(ctx context.Context, self Self, event any) error {
	return a.ask(ctx, self, request{verb: "create", resource: resourceEvents, method: http.MethodPost, address: self.events(), body: event}, new(struct{}))
}

// PatchEvent patches an event in the namespace of the agent's pod. The error is of the kind
// TroubleMissing if the event is no longer there.
func (a *Client) PatchEvent(ctx context.Context, self Self, name string, patch any) error {
	return a.ask(ctx, self, request{
		verb: "patch", resource: resourceEvents,
		method: http.MethodPatch, address: self.events() + "/" + url.PathEscape(name), body: patch,
	}, new(struct{}))
}

// ask makes a request and decodes the answer.
func (a *Client) ask(ctx context.Context, self Self, r request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	resp, err := a.do(ctx, self, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := newStream(self, resp.Body).decode(answer); err != nil {
		return Errorf(TroubleAnswer, "read %s: %w", self, err)
	}
	io.CopyN(io.Discard, resp.Body, 4<<10) //nolint:errcheck // once read to the end, the connection can be used again
	return nil
}

// Watch returns the events of the pod from a version on, until the server ends them after
// the given time.
func (a *Client) Watch(ctx context.Context, self Self, version string, end time.Duration) (*Stream, error) {
	query := url.Values{
		"watch":               {"1"},
		"fieldSelector":       {"metadata.name=" + self.Name}, // a Role with resourceNames allows this form
		"resourceVersion":     {version},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(int(max(end, time.Second) / time.Second))},
	}
	resp, err := a.do(ctx, self, request{verb: "watch", resource: resourcePods, named: true, method: http.MethodGet, address: self.path("") + "?" + query.Encode()}) //nolint:bodyclose // the stream's Close does
	if err != nil {
		return nil, err
	}
	return newStream(self, resp.Body), nil
}

func (a *Client) do(ctx context.Context, self Self, r request) (*http.Response, error) {
	client, err := a.trust()
	if err != nil {
		return nil, err
	}
	var body io.Reader = http.NoBody
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, Errorf(TroubleSetup, "%s: %w", r.of(self), err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.address, body)
	if err != nil {
		return nil, Errorf(TroubleSetup, "%s: %w", r.of(self), err)
	}
	req.Header.Set("Authorization", "Bearer "+self.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "prober_exporter")
	switch r.method {
	case http.MethodPatch:
		req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		trouble := TroubleConnection
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			trouble = TroubleCertificate
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // method and address of a url.Error say less than self
		}
		return nil, Errorf(trouble, "%s at %s: %w", r.of(self), self.server, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(self, r, resp)
}

// trust returns an HTTP client that verifies the API server by ca.crt, a new one after each
// change of that file.
func (a *Client) trust() (*http.Client, error) {
	ca, err := a.env.read("ca.crt")
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil && ca == a.ca {
		return a.client, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, Errorf(TroubleSetup, "read the service account's ca.crt: no certificate in it")
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	dialer := &net.Dialer{
		Timeout:         a.timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	dial := dialer.DialContext
	if a.env.Dial != nil {
		dial = a.env.Dial
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	a.ca = ca
	a.client = &http.Client{
		Transport: &http.Transport{ // no proxy: the way to the API server is the cluster's own
			DialContext:           dial,
			TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   a.timeout,
			ResponseHeaderTimeout: a.timeout,
			Protocols:             protocols,
			DisableCompression:    true,
			MaxIdleConns:          1,
			IdleConnTimeout:       time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token stays here
	}
	return a.client, nil
}

// Close closes the connections that are idle.
func (a *Client) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}
