// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// EarliestExpiry returns when the first of these certificates expires, in seconds since the epoch;
// 0 if there are none.
func EarliestExpiry(shown []*x509.Certificate) (at int64) {
	for _, c := range shown {
		at = Earlier(at, c.NotAfter.Unix())
	}
	return at
}

// Earlier returns the earlier of two times, of which 0 is none.
func Earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// ShownTo returns the certificates that a client with this error has refused.
func ShownTo(err error) []*x509.Certificate {
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return refused.UnverifiedCertificates
	}
	return nil
}

// Unverified returns err in words that are the same at each attempt, if err means that a server's
// certificate did not verify: those of package x509 have the present time.
func Unverified(err error) error {
	refused, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return err
	}
	invalid, ok := errors.AsType[x509.CertificateInvalidError](refused.Err)
	if !ok || invalid.Reason != x509.Expired || invalid.Cert == nil {
		return err
	}
	return &unverified{because: expired(invalid.Cert, time.Now()), err: err}
}

// expired says of a certificate that is not valid now when it is.
func expired(c *x509.Certificate, now time.Time) string {
	const longest = 64 // of a name, which is the server's
	name := c.Subject.CommonName
	if name != "" {
		name = fmt.Sprintf(" of %q", name[:min(len(name), longest)])
	}
	if now.Before(c.NotBefore) {
		return fmt.Sprintf("the certificate%s is not valid before %s", name, c.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the certificate%s has expired: it was valid until %s", name, c.NotAfter.UTC().Format(time.RFC3339))
}

// unverified is a refused certificate, in other words.
type unverified struct {
	because string
	err     error
}

func (u *unverified) Error() string { return "tls: failed to verify certificate: " + u.because }
func (u *unverified) Unwrap() error { return u.err }
