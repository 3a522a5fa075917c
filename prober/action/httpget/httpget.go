// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpget asks a target over HTTP, as the kubelet does. An attempt writes its request
// itself and reads a plain final answer itself (direct.go). Package net/http takes over all other
// attempts, with what has been read so far (handover.go).
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
	// maxRedirects is how many requests an attempt makes at most: it follows nine redirects,
	// and not the tenth (rule 9.12).
	maxRedirects = 10

	// maxResponseHeader is how much header is read. The kubelet's 10 MiB, times the attempts
	// in flight, are more memory than an agent has.
	maxResponseHeader = 64 << 10

	// maxBody is how much of a failure's body an Outcome keeps.
	maxBody = 1 << 10

	// http2Window is how much a server may send ahead over HTTP/2. The agent would buffer the
	// default, 4 MiB, although it reads only 10 KiB.
	http2Window = 64 << 10

	// tlsHandshakeTimeout holds in addition to the probe's own timeout, which may be longer.
	tlsHandshakeTimeout = 10 * time.Second
)

// httpGet is what the attempts of an httpGet probe share.
type httpGet struct {
	target *config.Target
	probe  *config.Probe
	plan   atomic.Pointer[plan] // made by the first attempt
	http2  bool                 // HTTP/2 is offered over TLS
}

// New returns the action that asks a URL. If the URL cannot be built, each attempt is an error,
// because the cause is the configuration and not the target (rule 7.6).
func New(t *config.Target, p *config.Probe) action.Func {
	g := &httpGet{target: t, probe: p, http2: os.Getenv("DISABLE_HTTP2") == ""}
	if isGuarded(p.HTTPGet) {
		return newGuarded(g)
	}
	return g.attempt
}

// newRequest returns a probe's request, which attempts do not modify.
func newRequest(t *config.Target, h *config.HTTPGet) (*http.Request, error) {
	host := cmp.Or(h.Host, t.Host)
	if _, isSocket := config.SocketPath(host); !isSocket && (h.Port.Number < 1 || h.Port.Number > 65535) {
		return nil, fmt.Errorf("build request: invalid port number: %d", h.Port.Number)
	}
	target := probeURL(h, host).String()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, http.NoBody)
	if err != nil {
		// Without the chain, which would contain the URL with its password.
		return nil, errors.New("build request: " + action.Redact(err.Error()))
	}
	request.Header = probeHeader(h.Headers)
	// The client keeps Host over redirects to a relative Location (rule 9.6).
	request.Host = request.Header.Get("Host")
	return request, nil
}

// probeURL returns the URL of a probe. The probe's path is a URL reference: probeURL ignores its
// scheme and host, and keeps userinfo, query and fragment. A reference that cannot be parsed is a
// literal path (rule 9.2).
func probeURL(h *config.HTTPGet, host string) *url.URL {
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme = strings.ToLower(cmp.Or(h.Scheme, "http"))
	if _, isSocket := config.SocketPath(host); isSocket {
		u.Host = socketName
	} else {
		u.Host = dial.HostPort(host, h.Port.Number)
	}
	return u
}

// probeHeader returns the header of a probe: the configured fields and, unless configured, the
// kubelet's User-Agent and Accept. An empty User-Agent or Accept is not sent: net/http leaves out
// an empty User-Agent, and probeHeader an Accept whose first value is empty (rules 9.3 to 9.5).
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

// protocols returns the protocols of a probe. HTTP/2 needs ALPN over TLS, unless the probe asks
// for h2c with prior knowledge; then HTTP/1 is off, because net/http would prefer HTTP/1 (rules
// 9.9 and 9.16).
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

// transport returns a transport for one attempt: no other attempt uses its connections, not even
// over HTTP/2, which pools connections in spite of DisableKeepAlives. Proxy is nil on purpose: a
// probe goes straight to its target.
func (g *httpGet) transport(conns *dial.Conns, client *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            conns.Dial,
		TLSClientConfig:        client,
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
		made, err := g.library(ctx, watch, nil, nil)
		return watch.Judge(made, err)
	}
	x := exchanges.Get().(*exchange) //nolint:forcetypeassert // the pool holds nothing else
	defer x.done()
	x.watch = &x.own
	x.watch.Start(g.probe.Timeout)
	made, err := g.direct(ctx, p, x)
	made.CertExpires = action.Earlier(made.CertExpires, x.expires)
	return x.watch.Judge(made, err)
}

// library asks through net/http, over the connection on which the attempt began, if there is one.
// loaded is what was read from files, nil for most probes.
func (g *httpGet) library(ctx context.Context, watch *dial.Stopwatch, begun *handed, loaded *dial.Loaded) (made action.Outcome, err error) {
	seen := new(expiry)
	made, err = g.exchange(ctx, watch, begun, loaded, seen)
	made.CertExpires = seen.at.Load()
	return made, err
}

// exchange is library; it notes in seen what servers show.
func (g *httpGet) exchange(ctx context.Context, watch *dial.Stopwatch, begun *handed, loaded *dial.Loaded, seen *expiry) (action.Outcome, error) {
	get, headers := g.probe.HTTPGet, []config.Header(nil)
	client := unverified(seen)
	if loaded != nil {
		get, headers = withTokens(get, loaded), get.Headers
		if get.TLS != nil {
			client = verified(get.TLS, cmp.Or(get.Host, g.target.Host), loaded, seen)
		}
	}
	conns := dial.NewConns(ctx, watch)
	conns.Socket = g.socket()
	defer conns.Close()
	// A stop ends the writes of HTTP/2 and TLS to a server that does not read.
	defer context.AfterFunc(ctx, conns.Reset)()
	transport := g.transport(conns, client)
	defer transport.CloseIdleConnections()
	if begun != nil {
		begun.enter(conns, transport)
	}
	request, err := newRequest(g.target, get)
	if err != nil {
		return action.Outcome{Reason: action.Other}, err
	}
	// The client has no timeout: it waits only for connections, which end in time.
	asker := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		followTo(next, via[0].URL, headers)
		return g.checkRedirect(next, via)
	}}

	response, err := asker.Do(request.WithContext(ctx))
	if err != nil {
		seen.add(action.EarliestExpiry(action.ShownTo(err)))
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
	outcome := g.judge(response, body)
	if asked := response.Request.URL; asked != request.URL && !outcome.Success {
		outcome.Address = shown(asked, cmp.Or(g.probe.HTTPGet.Host, g.target.Host))
	}
	return outcome, nil
}

// unanswered returns the outcome of a request that err has ended, in the words of net/http's
// client.
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

// answerless returns the outcome of a request without a response.
func answerless(ctx context.Context, err error) (action.Outcome, error) {
	// The inner error, so that the outcome contains no URL.
	inner := err
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		wrapper.Err = action.Unverified(wrapper.Err)
		inner = wrapper.Err
	}
	text := action.Redact(err.Error())
	return action.Failed(ctx, inner, text)
}

// checkRedirect follows a redirect that stays on the host of the first request; port and scheme
// may change. A redirect to another host is itself the answer, a success with a warning, because
// another host says nothing about this target (rule 9.12). So is a redirect that leaves the socket,
// and a redirect that is expected.
func (g *httpGet) checkRedirect(next *http.Request, via []*http.Request) error {
	switch {
	case next.URL.Hostname() != via[0].URL.Hostname(), g.socket() != "" && leavesSocket(next.URL, via[0].URL):
		return http.ErrUseLastResponse
	case g.expects(next.Response.StatusCode):
		return http.ErrUseLastResponse
	case len(via) >= maxRedirects:
		return action.ErrRedirects
	}
	return nil
}

// readBody returns the first 10 KiB of the body, and does not wait for the rest (rule 9.13).
func readBody(response *http.Response) (string, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The body is the connection itself, which may never end.
		return "", nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, action.MaxOutput))
	return string(body), err
}

// judge returns the outcome of a response (rule 9.14).
func judge(status int, body string) action.Outcome {
	switch {
	case status < 200 || status > 399:
		return action.Outcome{
			Reason: action.HTTPStatus,
			Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", status),
			Body:   action.Redact(body[:min(len(body), maxBody)]),
		}
	case status > 299:
		// The body often repeats the Location, which may have a password.
		return action.Outcome{Success: true, Warning: true, Output: action.Clip("Probe terminated redirects, Response body: " + action.Redact(body))}
	}
	return action.Outcome{Success: true, Output: body}
}

// Address returns the URL that a probe asks, without its userinfo.
func Address(t *config.Target, p *config.Probe) string {
	host := cmp.Or(p.HTTPGet.Host, t.Host)
	return shown(probeURL(p.HTTPGet, host), host)
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
