// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Errors of this project that say why an attempt failed.
var (
	ErrRedirects = errors.New("stopped after 10 redirects")
	ErrHandshake = errors.New("TLS handshake")
	ErrNotHTTP2  = errors.New("the answer is not HTTP/2")
)

// ErrLocalFile marks the error of a file that the agent itself needs: such an error says nothing about
// the target.
var ErrLocalFile = errors.New("local file")

// errnoReason is a group of system errors with one reason.
type errnoReason struct {
	reason Reason
	errs   []error
}

// texts are the beginnings of errors of net/http and crypto/tls that have neither a type nor a
// value to compare with. Only the beginning of the innermost error counts, because the rest may
// quote the server.
var texts = []struct {
	prefix string
	reason Reason
}{
	{"tls: ", TLS}, // alerts of the peer, and errors of the agent's side

	// HTTP/1: the header of a response …
	{"malformed ", HTTPProtocol},
	{"bad Content-Length", HTTPProtocol},
	{"invalid empty Content-Length", HTTPProtocol},
	{"http: message cannot contain multiple Content-Length headers", HTTPProtocol},
	{"unsupported transfer encoding", HTTPProtocol},
	{"too many transfer encodings", HTTPProtocol},
	{"net/http: server response headers exceeded", HTTPProtocol},
	// … and its body.
	{"header line too long", HTTPProtocol},
	{"chunked ", HTTPProtocol},
	{"invalid CR in chunked line", HTTPProtocol},
	{"invalid byte in chunk length", HTTPProtocol},
	{"empty hex number for chunk length", HTTPProtocol},
	{"http chunk length too large", HTTPProtocol},
	{"http: suspiciously long trailer", HTTPProtocol},
	{"http: unexpected EOF reading trailer", ConnectionReset},

	// HTTP/2.
	{"http2: ", HTTPProtocol},
	{"stream error: ", HTTPProtocol},
	{"connection error: ", HTTPProtocol},
	{"malformed response from server", HTTPProtocol},

	// Redirects that cannot be followed.
	{"failed to parse Location header", HTTPProtocol},
	{"unsupported protocol scheme", HTTPProtocol},
	{"http: no Host in request URL", HTTPProtocol},

	{"http: server closed idle connection", ConnectionReset},
}

// Classify returns the reason of an error.
//
// Timeouts come first, whatever was being done: they are the only reason for which the agent
// itself may be to blame (it may have been frozen).
func Classify(err error) Reason {
	if IsTimeout(err) {
		return Timeout
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return TLSVerify
	}
	if errors.Is(err, ErrHandshake) || errors.Is(err, http.ErrSchemeMismatch) {
		return TLS
	}
	if Exhausted(err) {
		return Other
	}
	for _, group := range errnos {
		if slices.ContainsFunc(group.errs, func(errno error) bool { return errors.Is(err, errno) }) {
			return group.reason
		}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return TLS
	}
	// Alerts: crypto/tls has no exported type for them, but marks their direction.
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return TLS
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return HTTPProtocol
	}
	if errors.Is(err, ErrRedirects) || errors.Is(err, ErrNotHTTP2) {
		return HTTPProtocol
	}
	text := Innermost(err).Error()
	for _, t := range texts {
		if strings.HasPrefix(text, t.prefix) {
			return t.reason
		}
	}
	// Last, because many of the errors above are caused by the end of the stream.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ConnectionReset
	}
	return Other
}

// IsTimeout reports whether err means that time ran out.
func IsTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// Exhausted reports whether err means that the agent or its machine lacked a resource.
func Exhausted(err error) bool {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	return slices.ContainsFunc(exhausted, func(errno error) bool {
		// The resolver turns the errors of its own sockets into text.
		return errors.Is(err, errno) || isLookup && strings.HasSuffix(lookup.Err, errno.Error())
	})
}

// Innermost returns the last error of the chain of err.
func Innermost(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// Failed returns the outcome of an attempt that ended with err; text is what the kubelet would
// say.
//
// In a kubelet, a dial that finds no descriptor, memory or ephemeral port is a failure, so that
// an agent without resources would have healthy applications killed. Failed returns an error,
// which does not count.
func Failed(ctx context.Context, err error, text string) (Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return CutShort(ctx)
	case Exhausted(err):
		return Outcome{Reason: Other, Output: Clip(text)}, fmt.Errorf("the agent is out of resources: %w", err)
	case errors.Is(err, ErrLocalFile):
		return Outcome{Reason: LocalFile, Output: Clip(text)}, fmt.Errorf("the agent could not do its part: %w", err)
	}
	return Outcome{Reason: Classify(err), Output: Clip(text)}, nil
}

// CutShort returns the outcome of an attempt that ctx has ended.
func CutShort(ctx context.Context) (Outcome, error) {
	return Outcome{Reason: Other}, fmt.Errorf("attempt cut short: %w", context.Cause(ctx))
}

// userinfo finds a user and a password in a URL. As in the URL's own syntax, the
// authority ends at the first slash, question mark or hash, and the last @ in it
// ends the userinfo.
var userinfo = regexp.MustCompile(`//([^/?#\s":]*):[^/?#\s"]*@`)

// Redact hides passwords in URLs, as net/http does in most of its errors, but neither in a
// Location that it quotes nor in a URL that it cannot parse.
func Redact(text string) string {
	return userinfo.ReplaceAllString(text, "//$1:***@")
}
