// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// overTLS starts a gRPC server with this configuration.
func overTLS(t *testing.T, c *tls.Config) (address string) {
	t.Helper()
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(c)))
	healthpb.RegisterHealthServer(s, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// guardedBy returns a probe with this tlsConfig.
func guardedBy(address string, timeout time.Duration, c config.TLS) action.Func {
	if c.MinVersion == "" {
		c.MinVersion = "TLS12"
	}
	target, probe := actiontest.GRPC(address, timeout, "", "TLS")
	probe.GRPC.TLS = &c
	return New(target, probe)
}

// A server whose certificate does not verify fails the probe at once, with the reason tls_verify
// and what is wrong. A server that wants another client certificate fails the probe with the reason
// tls, over either version of TLS. The probe sees when the server's certificate expires either way.
func TestVerified(t *testing.T) {
	good, other := testutil.NewAuthority(t, "good"), testutil.NewAuthority(t, "other")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		testutil.Rewrite(t, path, content)
		return path
	}
	ca := write("ca", good.PEM())
	pair := func(of *testutil.Authority, name string) config.TLS {
		certificate, key := of.Issue(t)
		return config.TLS{CAFile: ca, CertFile: write(name+".crt", certificate), KeyFile: write(name+".key", key)}
	}
	elsewhere := func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = nil, []string{"shop.example"}
	}
	plain := func(of *testutil.Authority, change ...func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{of.IssuePair(t, change...)}}
	}
	wanting := func(version uint16) *tls.Config {
		c := plain(good)
		c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, good.Pool(), version
		return c
	}
	var all sync.WaitGroup
	for _, c := range []struct {
		name   string
		server *tls.Config
		tls    config.TLS
		reason action.Reason // empty: success
		output string
	}{
		{"good", plain(good), config.TLS{CAFile: ca}, "", "service healthy"},
		{"expired", plain(good, testutil.Expired), config.TLS{CAFile: ca}, action.TLSVerify, `: tls: failed to verify certificate: the certificate of "leaf" has expired: it was valid until 20`},
		{"unknown authority", plain(other), config.TLS{CAFile: ca}, action.TLSVerify, "certificate signed by unknown authority"},
		{"another name", plain(good, elsewhere), config.TLS{CAFile: ca}, action.TLSVerify, "127.0.0.1"},
		{"another name, as asked", plain(good, elsewhere), config.TLS{CAFile: ca, ServerName: "shop.example"}, "", "service healthy"},
		{"unverified", plain(other, testutil.Expired), config.TLS{InsecureSkipVerify: true}, "", "service healthy"},
		{"client certificate", wanting(tls.VersionTLS13), pair(good, "mine"), "", "service healthy"},
		{"no client certificate", wanting(tls.VersionTLS13), config.TLS{CAFile: ca}, action.TLS, ""},
		{"no client certificate, TLS 1.2", wanting(tls.VersionTLS12), config.TLS{CAFile: ca}, action.TLS, ""},
		{"another client certificate", wanting(tls.VersionTLS13), pair(other, "foreign"), action.TLS, ""},
	} {
		all.Go(func() {
			timeout := 10 * time.Second
			if c.reason == action.TLS {
				timeout = time.Second // which passes
			}
			got := actiontest.Attempt(t, guardedBy(overTLS(t, c.server), timeout, c.tls))
			if got.Success != (c.reason == "") || got.Reason != c.reason || !strings.Contains(got.Output, c.output) {
				t.Errorf("%s: got %+v, want %s %q", c.name, got, c.reason, c.output)
			}
			want := c.server.Certificates[0].Leaf.NotAfter.Unix()
			if c.server.MaxVersion == tls.VersionTLS12 {
				want = 0 // this handshake never ends
			}
			if got.CertExpires != want {
				t.Errorf("%s: expires at %d, want %d", c.name, got.CertExpires, want)
			}
		})
	}
	all.Wait()
}

// Without a tlsConfig nothing is verified, and the probe sees when the certificate expires.
func TestExpiry(t *testing.T) {
	pair := testutil.NewAuthority(t, "one").IssuePair(t, testutil.Expired)
	got := actiontest.Attempt(t, grpcProbe(overTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}}), 10*time.Second, "", "TLS"))
	if !got.Success || got.CertExpires != pair.Leaf.NotAfter.Unix() {
		t.Errorf("got %+v, want %d", got, pair.Leaf.NotAfter.Unix())
	}
}

// An attempt without its files is unknown, and so is one that a server refuses because of a client
// certificate that has expired.
func TestLocalFile(t *testing.T) {
	authority := testutil.NewAuthority(t, "one")
	server := &tls.Config{Certificates: []tls.Certificate{authority.IssuePair(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool()}
	certificate, key := authority.Issue(t, testutil.Expired)
	secret := testutil.NewSecret(t).Put(t, map[string]string{"tls.crt": certificate, "tls.key": key})
	address := overTLS(t, server)
	for name, c := range map[string]config.TLS{
		"no such file or directory":          {CAFile: secret.Path("none")},
		"the client certificate has expired": {InsecureSkipVerify: true, CertFile: secret.Path("tls.crt"), KeyFile: secret.Path("tls.key")},
	} {
		got, err := guardedBy(address, time.Second, c)(t.Context())
		if err == nil || got.Reason != action.LocalFile || !strings.Contains(got.Output, name) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
	}
}
