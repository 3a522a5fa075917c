// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package credential reads what attempts need from files: certificate authorities, client
// certificates with their keys, and tokens.
//
// A file is read when it is first needed, and again when it has changed, which the package looks
// for at most every second. The look follows symbolic links, so it sees how a kubelet rotates a
// mounted Secret. A file that is missing or broken is an error, which says nothing about any
// target: the caller's attempt is then unknown.
//
// All users of the same files share what was read. No read is waited for longer than the
// caller's context lasts: the file system may never answer.
package credential

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxPEM is the size beyond which a file with certificates or a key is refused. The
	// certificate authorities of a whole system need a third of it.
	maxPEM = 1 << 20
	// maxToken is the same for a token. No server takes a longer header.
	maxToken = 16 << 10
	// maxValues is how many values of a token are remembered: a target may repeat one that
	// has been replaced since.
	maxValues = 8
)

// CA is the certificate authorities of a file, or those of the system.
type CA struct{ files *source[*x509.CertPool] }

// system is the key of the authorities of the system.
const system = ""

// NewCA returns the authorities in a file of PEM blocks. If path is empty, they are those of the
// system, which are read once.
func NewCA(path string) *CA {
	return authorities.get(path, func() *CA {
		if path == system {
			return &CA{newSource(nil, 0, parseSystem)}
		}
		return &CA{newSource([]string{path}, maxPEM, parseCA)}
	})
}

// Get returns the authorities; nil stands for those of the system.
func (c *CA) Get(ctx context.Context) (*x509.CertPool, error) {
	f, err := c.files.get(ctx)
	return f.value, err
}

func parseCA(contents [][]byte) (*x509.CertPool, error) {
	if cutOff(contents[0]) {
		return nil, errCutOff
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("has no certificate in PEM form")
	}
	return pool, nil
}

// errCutOff is for a file that somebody is still writing, or has not written to its end. Without its
// last authorities or intermediate certificates, servers would be refused, or refuse the agent.
var errCutOff = errors.New("ends in the middle of a PEM block")

// cutOff reports whether the last PEM block of a file has no end.
func cutOff(content []byte) bool {
	for block := new(pem.Block); block != nil; {
		block, content = pem.Decode(content)
	}
	return bytes.Contains(content, []byte("-----BEGIN "))
}

// parseSystem makes sure that the system has authorities. Without any, as in an image without
// certificates, no server would verify, and that is no server's fault.
func parseSystem([][]byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	switch {
	case err != nil:
		return nil, err
	case pool.Equal(x509.NewCertPool()):
		return nil, errors.New("this machine has no certificate authorities of its own: set caFile")
	}
	return nil, nil //nolint:nilnil // crypto/tls has its own pool of the system's
}

// Pair is a certificate and its key.
type Pair struct {
	certFile string
	files    *source[*tls.Certificate]
}

// NewPair returns the certificate and the key of two files of PEM blocks. While the files do not
// fit together, the last certificate that had its key stays in use.
func NewPair(certFile, keyFile string) *Pair {
	return pairs.get([2]string{certFile, keyFile}, func() *Pair {
		p := &Pair{certFile, newSource([]string{certFile, keyFile}, maxPEM, parsePair)}
		p.files.keeps = true
		return p
	})
}

func parsePair(contents [][]byte) (*tls.Certificate, error) {
	if cutOff(contents[0]) {
		return nil, errCutOff
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	return &pair, nil
}

// Get returns the pair. doubt, if not empty, says why a server may refuse the pair, through no
// fault of its own: the pair is an old one, or a certificate of its chain has expired.
func (p *Pair) Get(ctx context.Context) (pair *tls.Certificate, doubt string, err error) {
	f, err := p.files.get(ctx)
	if err != nil {
		return nil, "", err
	}
	return f.value, p.doubt(&f), nil
}

func (p *Pair) doubt(f *found[*tls.Certificate]) string {
	if f.stale != nil {
		return fmt.Sprintf("an old client certificate is in use: %v", f.stale)
	}
	what := "the client certificate"
	for i, der := range f.value.Certificate {
		c := f.value.Leaf
		if i > 0 {
			what = "an intermediate of the client certificate"
			c, _ = x509.ParseCertificate(der) // a server may understand it all the same
		}
		if wrong := invalid(c, time.Now()); wrong != "" {
			return fmt.Sprintf("%s: %s %s", name(p.certFile), what, wrong)
		}
	}
	return ""
}

// invalid says when a certificate is valid, if that is not now; empty if it is. c may be nil.
func invalid(c *x509.Certificate, now time.Time) string {
	switch {
	case c == nil:
	case now.After(c.NotAfter):
		return "has expired: it was valid until " + c.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return "is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}

// Token is a secret text that goes into a header.
type Token struct {
	files *source[string]

	mu   sync.Mutex
	seen []string // the newest last
}

// NewToken returns the token of a file.
func NewToken(path string) *Token {
	return tokens.get(path, func() *Token {
		t := new(Token)
		t.files = newSource([]string{path}, maxToken, t.parse)
		return t
	})
}

// Get returns the text of the file without the newline at its end.
func (t *Token) Get(ctx context.Context) (string, error) {
	f, err := t.files.get(ctx)
	return f.value, err
}

// Values returns the values that Get has returned lately, and may return next.
func (t *Token) Values() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.seen)
}

// parse returns the token of a file. It remembers a token before anybody can send it.
func (t *Token) parse(contents [][]byte) (string, error) {
	value := strings.TrimRight(string(contents[0]), "\r\n")
	switch {
	case strings.TrimSpace(value) == "": // as a server would see it
		return "", errors.New("is empty")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		// Without the text, which is secret.
		return "", errors.New("has a newline or another control character: such a header cannot be sent")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(slices.DeleteFunc(t.seen, func(s string) bool { return s == value }), value)
	t.seen = t.seen[max(0, len(t.seen)-maxValues):]
	return value, nil
}
