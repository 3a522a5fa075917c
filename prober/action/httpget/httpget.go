// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpget asks a target over HTTP, as the kubelet does. An attempt writes its
// request itself and reads a plain final answer itself (direct.go). Package net/http gets
// all other attempts, with what has been heard so far (handover.go).
package httpget

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

const (
	// maxRedirects is how many requests there may have been before a redirect is
	// refused: nine are followed, the tenth is not (rule 9.12).
	maxRedirects = 10

	// maxResponseHeader is how much header is read. It is ours: the kubelet's 10 MiB,
	// times the attempts in flight, are more than an agent has.
	maxResponseHeader = 64 << 10

	// maxBody is how much is kept of a body that a failure's Output does not have.
	maxBody = 1 << 10

	// http2Window is how much a server may send ahead over HTTP/2. The default, 4 MiB,
	// would be buffered although 10 KiB are read.
	http2Window = 64 << 10

	// tlsHandshakeTimeout comes on top of the probe's own, which may be longer.
	tlsHandshakeTimeout = 10 * time.Second
)

// httpGet is what the attempts of an httpGet probe have in common.
type httpGet struct {
	target *config.Target
	probe  *config.Probe
	plan   atomic.Pointer[plan] // made by the first attempt
	http2  bool                 // is offered over TLS
}

// New returns the action that asks a URL. Where the URL cannot be built, each
// attempt is an error: that says something of the configuration, nothing of the
// target (rule 7.6).
func New(t *config.Target, p *config.Probe) action.Func {
	g := &httpGet{target: t, probe: p, http2: os.Getenv("DISABLE_HTTP2") == ""}
	return g.attempt
}

// newRequest returns a probe's request, which its attempts only read.
func newRequest(t *config.Target, h *config.HTTPGet) (*http.Request, error) {
	if h.Port.Number < 1 || h.Port.Number > 65535 {
		return nil, fmt.Errorf("build request: invalid port number: %d", h.Port.Number)
	}
	target := probeURL(h, cmp.Or(h.Host, t.Host)).String()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, http.NoBody)
	if err != nil {
		// As text, without its chain: that would hold the URL with its password.
		return nil, errors.New("build request: " + action.Redact(err.Error()))
	}
	request.Header = probeHeader(h.Headers)
	// The client keeps it over redirects to a relative Location (rule 9.6).
	request.Host = request.Header.Get("Host")
	return request, nil
}

// probeURL returns the URL of a probe. Its path is a URL reference, of which scheme
// and host are ignored; userinfo, query and fragment are kept. What cannot be parsed
// is a path as it stands (rule 9.2).
func probeURL(h *config.HTTPGet, host string) *url.URL {
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme = strings.ToLower(cmp.Or(h.Scheme, "http"))
	u.Host = dial.HostPort(host, h.Port.Number)
	return u
}

// probeHeader returns the header of a probe: what the configuration says, and where
// it is silent, the kubelet's User-Agent and an Accept. One that is present and empty
// means that none is sent: net/http does so for User-Agent, not for Accept, of which
// the first value decides (rules 9.3 to 9.5).
func probeHeader(list []config.Header) http.Header {
	header := make(http.Header, len(list)+2)
	for _, h := range list {
		header.Add(h.Name, h.Value)
	}
	if _, ok := header["User-Agent"]; !ok {
		header.Set("User-Agent", action.UserAgent)
	}
	if accept, ok := header["Accept"]; !ok {
		header.Set("Accept", "*/*")
	} else if accept[0] == "" {
		header.Del("Accept")
	}
	return header
}

// protocols returns what is spoken. HTTP/2 comes by ALPN over TLS only, unless a
// probe asks for h2c with prior knowledge; then HTTP/1 is off, because net/http would
// prefer it (rules 9.9 and 9.16).
func (g *httpGet) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(g.http2)
	if g.probe.HTTPGet.Protocol == "HTTP2" {
		p.SetUnencryptedHTTP2(true)
	} else {
		p.SetHTTP1(true)
	}
	return p
}

// transport returns a transport for one attempt: what an attempt opens, no other one
// ever uses, not even over HTTP/2, which pools connections in spite of
// DisableKeepAlives. Proxy is nil on purpose: a probe goes straight to its target.
func (g *httpGet) transport(conns *dial.Conns) *http.Transport {
	return &http.Transport{
		DialContext:            conns.Dial,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // a probe asks who is well, not who it is
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeader,
		Protocols:              g.protocols(),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: http2Window,
			MaxReceiveBufferPerStream:     http2Window,
		},
	}
}

// attempt asks once.
func (g *httpGet) attempt(ctx context.Context) (action.Outcome, error) {
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	p := g.plan.Load()
	if p == nil {
		var err error
		if p, err = newPlan(g.target, g.probe.HTTPGet); err != nil {
			return action.Outcome{Reason: action.Other}, err
		}
		g.plan.Store(p)
	}
	if !p.direct() {
		watch := dial.NewStopwatch(g.probe.Timeout)
		made, err := g.library(ctx, watch, nil)
		return watch.Judge(made, err)
	}
	x := exchanges.Get().(*exchange) //nolint:forcetypeassert // what the pool holds
	defer x.done()
	x.watch = &x.own
	x.watch.Start(g.probe.Timeout)
	made, err := g.direct(ctx, p, x)
	return x.watch.Judge(made, err)
}

// library asks by means of net/http; if there is a connection on which the attempt was
// begun, it goes on there.
func (g *httpGet) library(ctx context.Context, watch *dial.Stopwatch, begun *handed) (action.Outcome, error) {
	conns := dial.NewConns(ctx, watch)
	defer conns.Close()
	// A stop ends what waits for HTTP/2 or TLS to write to a server that does not read.
	defer context.AfterFunc(ctx, conns.Reset)()
	transport := g.transport(conns)
	defer transport.CloseIdleConnections()
	if begun != nil {
		begun.enter(conns, transport)
	}
	request, err := newRequest(g.target, g.probe.HTTPGet)
	if err != nil {
		return action.Outcome{Reason: action.Other}, err
	}
	// The client has no timeout: whatever it waits for, it waits for a connection, and
	// these know when to end.
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}

	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		if wrapper, ok := errors.AsType[*url.Error](err); ok && watch.RanOut(err) {
			wrapper.Err = errLateHeader
		}
		return answerless(ctx, err)
	}
	defer response.Body.Close()
	body, err := readBody(response)
	switch {
	case err != nil && ctx.Err() != nil:
		return action.CutShort(ctx)
	case err != nil:
		return bodiless(err)
	}
	outcome := judge(response.StatusCode, body)
	if asked := response.Request.URL; asked != request.URL && !outcome.Success {
		outcome.Address = shownURL(asked)
	}
	return outcome, nil
}

// unanswered is the outcome of a request that err has ended, as net/http's client
// would put it.
func (g *httpGet) unanswered(ctx context.Context, watch *dial.Stopwatch, err error) (action.Outcome, error) {
	request, requestErr := newRequest(g.target, g.probe.HTTPGet)
	if requestErr != nil {
		return action.Outcome{Reason: action.Other}, requestErr
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	if watch.RanOut(err) {
		err = errLateHeader
	}
	where := request.URL.String()
	if user := request.URL.User; user != nil {
		if _, ok := user.Password(); ok {
			where = strings.Replace(where, user.String()+"@", user.Username()+":***@", 1)
		}
	}
	return answerless(ctx, &url.Error{Op: "Get", URL: where, Err: err})
}

// answerless is the outcome of a request without a response.
func answerless(ctx context.Context, err error) (action.Outcome, error) {
	text := action.Redact(err.Error())
	// The error proper, so that what failed passes on holds no URL.
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		err = wrapper.Err
	}
	return action.Failed(ctx, err, text)
}

// checkRedirect follows a redirect as long as it stays on the host of the first
// request; port and scheme may change. One that leads away is itself the answer, a
// warning: who sits elsewhere says nothing of this target (rule 9.12).
func checkRedirect(next *http.Request, via []*http.Request) error {
	switch {
	case next.URL.Hostname() != via[0].URL.Hostname():
		return http.ErrUseLastResponse
	case len(via) >= maxRedirects:
		return action.ErrRedirects
	}
	return nil
}

// readBody returns the first 10 KiB of the body; what comes after them is not awaited
// (rule 9.13).
func readBody(response *http.Response) (string, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The connection itself, which nothing would stop us from reading for ever.
		return "", nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, action.MaxOutput))
	return string(body), err
}

// judge is the outcome of a response (rule 9.14).
func judge(status int, body string) action.Outcome {
	switch {
	case status < 200 || status > 399:
		return action.Outcome{
			Reason: action.HTTPStatus,
			Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", status),
			Body:   action.Redact(body[:min(len(body), maxBody)]),
		}
	case status > 299:
		// Servers like to say where to go in the body, too: with a password if it is in
		// the Location.
		return action.Outcome{Success: true, Warning: true, Output: action.Clip("Probe terminated redirects, Response body: " + action.Redact(body))}
	}
	return action.Outcome{Success: true, Output: body}
}

// Address returns the URL that a probe asks, for people to read: without its userinfo.
func Address(t *config.Target, p *config.Probe) string {
	return shownURL(probeURL(p.HTTPGet, cmp.Or(p.HTTPGet.Host, t.Host)))
}

// shownURL returns a URL with "<redacted>" as its userinfo, if it has one.
func shownURL(u *url.URL) string {
	if u.User == nil {
		return u.String()
	}
	shown := *u
	shown.User = nil
	return strings.Replace(shown.String(), "//", "//<redacted>@", 1)
}

// Files returns how many files an attempt has open at most.
func Files(t *config.Target, p *config.Probe) int { return dial.Files(cmp.Or(p.HTTPGet.Host, t.Host)) }
