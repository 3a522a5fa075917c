// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxPodBytes bounds an answer and an event. etcd takes 1.5 MiB of a pod in its
// binary form, which is less than this as JSON.
const maxPodBytes = 4 << 20

// podTrouble is a kind of trouble.
type podTrouble uint16

const (
	troubleSetup        podTrouble = 1 << iota // the environment or the service account's files
	troubleConnection                          // no answer
	troubleCertificate                         // of the API server
	troubleUnauthorized                        // 401
	troubleForbidden                           // 403
	troubleMissing                             // no such pod
	troubleExpired                             // 410: what the watch would go on from is no more
	troubleAnswer                              // any other answer that is not what was asked for
	troubleCut                                 // a watch that was cut off
)

// podError is trouble with a request.
type podError struct {
	trouble podTrouble
	err     error
	after   time.Duration // the server asks to be left alone for so long
}

func (e *podError) Error() string { return e.err.Error() }

func (e *podError) Unwrap() error { return e.err }

func podErrorf(trouble podTrouble, format string, args ...any) *podError {
	return &podError{trouble: trouble, err: fmt.Errorf(format, args...)}
}

// podAPI asks the API server for the agent's own pod, over HTTP/1.1: one connection
// with one request at a time, whose peer is known to be alive by TCP. It belongs to
// one goroutine.
type podAPI struct {
	env    kubernetesEnv
	ca     string
	client *http.Client
}

// get returns the pod as it is now.
func (a *podAPI) get(ctx context.Context, self podSelf) (*pod, error) {
	ctx, cancel := context.WithTimeout(ctx, a.env.request)
	defer cancel()
	resp, err := a.do(ctx, self, "get", self.path(self.name))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	s := newPodStream(resp.Body)
	p := new(pod)
	if err := s.decode(p); err != nil {
		return nil, podErrorf(troubleAnswer, "read %s: %w", self, err)
	}
	io.CopyN(io.Discard, resp.Body, 4<<10) //nolint:errcheck // read to its end, the connection can be used again
	if p.Metadata.UID == "" || p.Metadata.ResourceVersion == "" {
		return nil, podErrorf(troubleAnswer, "read %s: the answer is no pod", self)
	}
	return p, nil
}

// watch returns the events of the pod from a version on, until the server ends them
// after the given time.
func (a *podAPI) watch(ctx context.Context, self podSelf, version string, end time.Duration) (*podStream, error) {
	query := url.Values{
		"watch":               {"1"},
		"fieldSelector":       {"metadata.name=" + self.name}, // a Role with resourceNames allows this form
		"resourceVersion":     {version},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(int(max(end, time.Second) / time.Second))},
	}
	resp, err := a.do(ctx, self, "watch", self.path("")+"?"+query.Encode()) //nolint:bodyclose // the stream's close does
	if err != nil {
		return nil, err
	}
	return newPodStream(resp.Body), nil
}

func (a *podAPI) do(ctx context.Context, self podSelf, verb, address string) (*http.Response, error) {
	if err := a.trust(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, podErrorf(troubleSetup, "%s %s: %w", verb, self, err)
	}
	req.Header.Set("Authorization", "Bearer "+self.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "prober_exporter")
	resp, err := a.client.Do(req)
	if err != nil {
		trouble := troubleConnection
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			trouble = troubleCertificate
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // its method and address say less than self
		}
		return nil, podErrorf(trouble, "%s %s at %s: %w", verb, self, self.server, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(self, verb, resp)
}

// podStatus is how the API server says no, as an answer or as an event of a watch.
type podStatus struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// refusal says what an answer other than 200 means and what to do about it. What the
// server says is passed on, cut and without the token, should it be in there.
func refusal(self podSelf, verb string, resp *http.Response) *podError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10)) // what has come is all that can be said
	status := podStatus{Message: resp.Status}
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		status = podStatus{Message: resp.Status}
	}
	said := self.quote(status.Message)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return podErrorf(troubleUnauthorized, "%s %s: the API server does not accept the service account's token (401): %s", verb, self, said)
	case resp.StatusCode == http.StatusForbidden:
		return podErrorf(troubleForbidden, "%s %s: the Role of its service account in that namespace lacks the rule %s: %s", verb, self, self.rule(verb), said)
	case resp.StatusCode == http.StatusGone:
		return podErrorf(troubleExpired, "%s %s: %s", verb, self, said)
	case resp.StatusCode == http.StatusNotFound && status.Kind == "Status" && status.Reason == "NotFound":
		return podErrorf(troubleMissing, "%s %s: there is no such pod; set POD_NAME and POD_NAMESPACE by the downward API", verb, self)
	}
	e := podErrorf(troubleAnswer, "%s %s: the API server answers %d: %s", verb, self, resp.StatusCode, said)
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.after = min(time.Duration(n)*time.Second, time.Minute)
	}
	return e
}

// quote makes a text of the server's fit for a log.
func (s podSelf) quote(text string) string {
	text = strings.ReplaceAll(text, s.token, "[token]")
	return strconv.Quote(text[:min(len(text), 256)])
}

// trust makes the client that verifies the API server by ca.crt, again when that has
// changed.
func (a *podAPI) trust() error {
	ca, err := a.env.read("ca.crt")
	if err != nil {
		return err
	}
	if a.client != nil && ca == a.ca {
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return podErrorf(troubleSetup, "read the service account's ca.crt: no certificate in it")
	}
	a.close()
	dialer := &net.Dialer{
		Timeout:         a.env.request,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	a.ca = ca
	a.client = &http.Client{
		Transport: &http.Transport{ // no proxy: the way to the API server is the cluster's own
			DialContext:           dialer.DialContext,
			TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   a.env.request,
			ResponseHeaderTimeout: a.env.request,
			Protocols:             protocols,
			DisableCompression:    true,
			MaxIdleConns:          1,
			IdleConnTimeout:       time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token stays here
	}
	return nil
}

// close lets go of the connection, if it is idle.
func (a *podAPI) close() {
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}

// podEvent is an event of a watch.
type podEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// podStream decodes one JSON value after the other, each of a bounded size.
type podStream struct {
	body    io.ReadCloser
	limited io.LimitedReader
	dec     *json.Decoder
	end     error // of the connection
}

// errTooLarge is the end of a stream whose next value is beyond all measure.
var errTooLarge = fmt.Errorf("larger than %d bytes", maxPodBytes)

func newPodStream(body io.ReadCloser) *podStream {
	s := &podStream{body: body, limited: io.LimitedReader{R: body}}
	s.dec = json.NewDecoder(s)
	return s
}

// Read passes on what comes, within the bound.
func (s *podStream) Read(b []byte) (int, error) {
	if s.limited.N <= 0 {
		return 0, errTooLarge
	}
	n, err := s.limited.Read(b)
	if err != nil {
		s.end = err
	}
	return n, err
}

// cut reports whether err, of decode, means that the connection ended, and not that
// what came over it was wrong.
func (s *podStream) cut(err error) bool {
	return s.end != nil && (errors.Is(err, s.end) || errors.Is(err, io.ErrUnexpectedEOF))
}

func (s *podStream) decode(v any) error {
	s.limited.N = maxPodBytes
	return s.dec.Decode(v)
}

func (s *podStream) close() { s.body.Close() }

// object decodes what an event is about.
func (e podEvent) object(v any) error {
	return json.NewDecoder(bytes.NewReader(e.Object)).Decode(v)
}
