// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is a client of the API server for the agent's own pod, with the pod's
// service account.
package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// MaxObject bounds how many bytes an answer or an event may have. etcd accepts 1.5 MiB of a
// pod in binary form, which as JSON is less than MaxObject.
const MaxObject = 4 << 20

// Client asks the API server over HTTP/1.1: one connection with one request at a time, with TCP
// keep-alive. A Client is not safe for concurrent use.
type Client struct {
	env     Env
	timeout time.Duration
	ca      string
	client  *http.Client
}

// New returns a client that looks for its API server and its pod in env. The timeout bounds
// each answer, and the beginning of each watch. New does not connect.
func New(env Env, timeout time.Duration) *Client { return &Client{env: env, timeout: timeout} }

// Self finds the agent's own pod. Callers call Self before each request, because the token is
// replaced every hour or so.
func (a *Client) Self() (Self, error) { return a.env.self() }

// Get asks for the agent's pod and decodes the answer into pod. Every error of the client
// is an *Error.
func (a *Client) Get(ctx context.Context, self Self, pod any) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	resp, err := a.do(ctx, self, "get", self.path(self.Name))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := newStream(self, resp.Body).decode(pod); err != nil {
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
	resp, err := a.do(ctx, self, "watch", self.path("")+"?"+query.Encode()) //nolint:bodyclose // the stream's Close does
	if err != nil {
		return nil, err
	}
	return newStream(self, resp.Body), nil
}

func (a *Client) do(ctx context.Context, self Self, verb, address string) (*http.Response, error) {
	if err := a.trust(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, Errorf(TroubleSetup, "%s %s: %w", verb, self, err)
	}
	req.Header.Set("Authorization", "Bearer "+self.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "prober_exporter")
	resp, err := a.client.Do(req)
	if err != nil {
		trouble := TroubleConnection
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			trouble = TroubleCertificate
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // method and address of a url.Error say less than self
		}
		return nil, Errorf(trouble, "%s %s at %s: %w", verb, self, self.server, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(self, verb, resp)
}

// trust makes an HTTP client that verifies the API server by ca.crt, anew after each change of
// that file.
func (a *Client) trust() error {
	ca, err := a.env.read("ca.crt")
	if err != nil {
		return err
	}
	if a.client != nil && ca == a.ca {
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return Errorf(TroubleSetup, "read the service account's ca.crt: no certificate in it")
	}
	a.Close()
	dialer := &net.Dialer{
		Timeout:         a.timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	a.ca = ca
	a.client = &http.Client{
		Transport: &http.Transport{ // no proxy: the way to the API server is the cluster's own
			DialContext:           dialer.DialContext,
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
	return nil
}

// Close closes the connection if it is idle.
func (a *Client) Close() {
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}
