// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns a new authority.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{certificate, key}
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() string { return pemText("CERTIFICATE", a.certificate.Raw) }

// Pool returns a pool of the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Issue returns a certificate and its key for 127.0.0.1 and localhost, valid for a day, as PEM.
// The functions change the template before that.
func (a *Authority) Issue(t testing.TB, change ...func(*x509.Certificate)) (certificate, key string) {
	t.Helper()
	pair := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, c := range change {
		c(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, pair.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	return pemText("CERTIFICATE", der), pemText("EC PRIVATE KEY", keyDER)
}

// IssuePair is Issue for a server or a client of a test.
func (a *Authority) IssuePair(t testing.TB, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	certificate, key := a.Issue(t, change...)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Expired makes Issue return a certificate that was valid until an hour ago.
func Expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Secret is a mounted Secret of Kubernetes: its files are symbolic links that lead through one
// link to a directory, which a kubelet swaps for another.
type Secret struct {
	dir      string
	versions int
}

// NewSecret mounts a Secret without files.
func NewSecret(t testing.TB) *Secret {
	t.Helper()
	return &Secret{dir: t.TempDir()}
}

// Path returns the path of a file.
func (s *Secret) Path(name string) string { return filepath.Join(s.dir, name) }

// Put replaces all files at once, as a kubelet does, and returns s.
func (s *Secret) Put(t testing.TB, files map[string]string) *Secret {
	t.Helper()
	s.versions++
	version, data := "..version-"+strconv.Itoa(s.versions), s.Path("..data")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(s.Path(version), 0o755))
	for name, content := range files {
		Rewrite(t, filepath.Join(s.dir, version, name), content)
	}
	before, _ := os.Readlink(data)
	must(os.Symlink(version, data+"_tmp"))
	must(os.Rename(data+"_tmp", data))
	for name := range files {
		if _, err := os.Lstat(s.Path(name)); err != nil {
			must(os.Symlink(filepath.Join("..data", name), s.Path(name)))
		}
	}
	if before != "" {
		must(os.RemoveAll(s.Path(before)))
	}
	return s
}
