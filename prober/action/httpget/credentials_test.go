// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

const long = 10 * time.Second

// guardedBy returns a probe with this tlsConfig and these headers.
func guardedBy(address string, timeout time.Duration, c *config.TLS, headers ...config.Header) action.Func {
	if c != nil && c.MinVersion == "" {
		c.MinVersion = "TLS12"
	}
	return httpProbe(address, timeout, config.HTTPGet{Path: "/", Scheme: "HTTPS", TLS: c, Headers: headers})
}

// overTLS serves site with a certificate, over both versions of HTTP if h2.
func overTLS(t *testing.T, h2 bool, certificate tls.Certificate, change ...func(*tls.Config)) (address string) {
	t.Helper()
	p := actiontest.Protocols((*http.Protocols).SetHTTP1)
	p.SetHTTP2(h2)
	address, _ = greeted(t, p, func(c *tls.Config) {
		c.Certificates = []tls.Certificate{certificate}
		for _, f := range change {
			f(c)
		}
	})
	return address
}

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testutil.Rewrite(t, path, content)
	return path
}

// clientPair writes a pair and returns a tlsConfig with it.
func clientPair(t *testing.T, certificate, key string) config.TLS {
	t.Helper()
	return config.TLS{CertFile: file(t, certificate), KeyFile: file(t, key)}
}

// A server whose certificate does not verify fails the probe with the reason tls_verify, and says
// what is wrong, over both versions of HTTP. So does a client certificate that a server misses or
// refuses, with the reason tls. The probe sees when the server's certificate expires either way.
func TestVerified(t *testing.T) {
	good, other := testutil.NewAuthority(t, "good"), testutil.NewAuthority(t, "other")
	ca := file(t, good.PEM())
	wanting := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, good.Pool() }
	clientCert, clientKey := good.Issue(t)
	mine := clientPair(t, clientCert, clientKey)
	foreignCert, foreignKey := other.Issue(t)
	foreign := clientPair(t, foreignCert, foreignKey)
	elsewhere := func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(10, 1, 2, 3)}, []string{"shop.example"}
	}
	coming := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	for _, h2 := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			server tls.Certificate
			change func(*tls.Config)
			tls    config.TLS
			reason action.Reason // empty: success
			output string
		}{
			{"good", good.IssuePair(t), nil, config.TLS{CAFile: ca}, "", ""},
			{"good, TLS 1.3", good.IssuePair(t), nil, config.TLS{CAFile: ca, MinVersion: "TLS13"}, "", ""},
			{"expired", good.IssuePair(t, testutil.Expired), nil, config.TLS{CAFile: ca}, action.TLSVerify, `tls: failed to verify certificate: the certificate of "leaf" has expired: it was valid until 20`},
			{"not yet valid", good.IssuePair(t, coming), nil, config.TLS{CAFile: ca}, action.TLSVerify, `the certificate of "leaf" is not valid before 20`},
			{"unknown authority", other.IssuePair(t), nil, config.TLS{CAFile: ca}, action.TLSVerify, "certificate signed by unknown authority"},
			{"another name", good.IssuePair(t, elsewhere), nil, config.TLS{CAFile: ca}, action.TLSVerify, "certificate is valid for 10.1.2.3, not 127.0.0.1"},
			{"another name, as asked", good.IssuePair(t, elsewhere), nil, config.TLS{CAFile: ca, ServerName: "shop.example"}, "", ""},
			{"not the name asked", good.IssuePair(t), nil, config.TLS{CAFile: ca, ServerName: "shop.example"}, action.TLSVerify, "certificate is valid for localhost, not shop.example"},
			{"unverified", other.IssuePair(t, testutil.Expired), nil, config.TLS{InsecureSkipVerify: true}, "", ""},
			{"old protocol", good.IssuePair(t), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, config.TLS{CAFile: ca, MinVersion: "TLS13"}, action.TLS, "protocol version not supported"},
			{"client certificate", good.IssuePair(t), wanting, config.TLS{CAFile: ca, CertFile: mine.CertFile, KeyFile: mine.KeyFile}, "", ""},
			{"client certificate, unverified", good.IssuePair(t), wanting, config.TLS{InsecureSkipVerify: true, CertFile: mine.CertFile, KeyFile: mine.KeyFile}, "", ""},
			{"client certificate missing", good.IssuePair(t), wanting, config.TLS{CAFile: ca}, action.TLS, "certificate"},
			{"client certificate of another authority", good.IssuePair(t), wanting, config.TLS{CAFile: ca, CertFile: foreign.CertFile, KeyFile: foreign.KeyFile}, action.TLS, "certificate"},
		} {
			var changes []func(*tls.Config)
			if c.change != nil {
				changes = append(changes, c.change)
			}
			got := actiontest.Attempt(t, guardedBy(overTLS(t, h2, c.server, changes...), long, &c.tls))
			if got.Success != (c.reason == "") || got.Reason != c.reason || !strings.Contains(got.Output, c.output) {
				t.Errorf("%s, HTTP/2 %t: got %+v, want %s %q", c.name, h2, got, c.reason, c.output)
			}
			if proto := fmt.Sprintf("|HTTP/%d", map[bool]int{false: 1, true: 2}[h2]); got.Success && !strings.Contains(got.Output, proto) {
				t.Errorf("%s: %s, want %s", c.name, got.Output, proto)
			}
			want := c.server.Leaf.NotAfter.Unix()
			if c.name == "old protocol" {
				want = 0 // the server has shown nothing
			}
			if got.CertExpires != want {
				t.Errorf("%s, HTTP/2 %t: expires at %d, want %d", c.name, h2, got.CertExpires, want)
			}
		}
	}
}

// A server at an address with a zone verifies: its certificate has the address alone.
func TestVerifiedZone(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		needs.Missing(t, "IPv6")
	}
	loopback, err := net.InterfaceByIndex(1)
	if err != nil || loopback.Flags&net.FlagLoopback == 0 {
		needs.Missing(t, "the name of the loopback interface")
	}
	authority := testutil.NewAuthority(t, "one")
	s := actiontest.WebServerOn(t, l, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), true)
	s.TLS.Certificates = []tls.Certificate{authority.IssuePair(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv6loopback} })}
	address := net.JoinHostPort("::1%"+loopback.Name, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	if got := actiontest.Attempt(t, guardedBy(address, long, &config.TLS{CAFile: file(t, authority.PEM())})); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// An empty tlsConfig verifies by the authorities of the machine.
func TestVerifiedBySystem(t *testing.T) {
	if pool, err := x509.SystemCertPool(); err != nil || pool.Equal(x509.NewCertPool()) {
		needs.Missing(t, "certificate authorities of the machine")
	}
	address := overTLS(t, false, testutil.NewAuthority(t, "unknown").IssuePair(t))
	got := actiontest.Attempt(t, guardedBy(address, long, &config.TLS{}))
	if got.Reason != action.TLSVerify || !strings.Contains(got.Output, "certificate signed by unknown authority") {
		t.Errorf("got %+v", got)
	}
}

// Without a tlsConfig nothing is verified, and the probe sees when the first certificate of the
// chain expires, whichever way it asks and whether it succeeds.
func TestExpiry(t *testing.T) {
	authority := testutil.NewAuthority(t, "one")
	sooner, later := authority.IssuePair(t, testutil.Expired), authority.IssuePair(t)
	chain := tls.Certificate{Certificate: [][]byte{later.Certificate[0], sooner.Certificate[0]}, PrivateKey: later.PrivateKey}
	for _, h2 := range []bool{false, true} {
		address := overTLS(t, h2, chain)
		for path, success := range map[string]bool{"/": true, "/code?c=500": false, "/loop?n=2": true, "/loop?n=20": false} {
			direct, library := bothWays(address, long, config.HTTPGet{Path: path, Scheme: "HTTPS"})
			got, want := actiontest.Attempt(t, direct), actiontest.Attempt(t, library)
			if got != want || got.Success != success || got.CertExpires != sooner.Leaf.NotAfter.Unix() {
				t.Errorf("%s, HTTP/2 %t: got %+v, want %+v at %d", path, h2, got, want, sooner.Leaf.NotAfter.Unix())
			}
		}
	}
	if got := actiontest.Attempt(t, httpProbe(actiontest.Web(t, actiontest.Site()), long, config.HTTPGet{Path: "/"})); got.CertExpires != 0 {
		t.Errorf("plain: %+v", got)
	}
}

// An attempt whose files cannot be read is unknown, with the reason local_file, and says which
// file. The attempt asks nobody.
func TestLocalFile(t *testing.T) {
	asked := make(chan struct{}, 100)
	address := actiontest.Raw(t, func(net.Conn) { asked <- struct{}{} })
	authority := testutil.NewAuthority(t, "one")
	ca, none := file(t, authority.PEM()), filepath.Join(t.TempDir(), "none")
	certificate, key := authority.Issue(t)
	for name, f := range map[string]action.Func{
		"no CA":              guardedBy(address, long, &config.TLS{CAFile: none}),
		"broken CA":          guardedBy(address, long, &config.TLS{CAFile: file(t, "hunter2")}),
		"no certificate":     guardedBy(address, long, &config.TLS{CAFile: ca, CertFile: none, KeyFile: file(t, key)}),
		"no key":             guardedBy(address, long, &config.TLS{CAFile: ca, CertFile: file(t, certificate), KeyFile: none}),
		"broken key":         guardedBy(address, long, &config.TLS{CAFile: ca, CertFile: file(t, certificate), KeyFile: file(t, "hunter2")}),
		"no token":           guardedBy(address, long, nil, config.Header{Name: "Authorization", ValueFile: none}),
		"empty token":        guardedBy(address, long, nil, config.Header{Name: "Authorization", ValueFile: file(t, "\n")}),
		"token of two lines": guardedBy(address, long, nil, config.Header{Name: "Authorization", ValueFile: file(t, "hunter2\nhunter2")}),
	} {
		got, err := f(t.Context())
		if err == nil || got.Reason != action.LocalFile || got.Success || !strings.Contains(got.Output, os.TempDir()) || strings.Contains(got.Output, "hunter2") {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("%d attempts connected", len(asked))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := guardedBy(address, long, &config.TLS{CAFile: ca})(ctx); err == nil || got.Reason != action.Other {
		t.Errorf("stopped: got %+v, error %v", got, err)
	}
}

// A certificate authority, a client's certificate and a token that are replaced while the probe
// runs are used from then on: the server is restarted with others, and no attempt needs a reload.
func TestRotated(t *testing.T) {
	var mu sync.Mutex
	authority, token := testutil.NewAuthority(t, "first"), "token of first"
	current := func() (*testutil.Authority, string) {
		mu.Lock()
		defer mu.Unlock()
		return authority, token
	}
	secret := testutil.NewSecret(t)
	put := func() {
		a, token := current()
		certificate, key := a.Issue(t)
		secret.Put(t, map[string]string{"ca.crt": a.PEM(), "tls.crt": certificate, "tls.key": key, "token": token + "\n"})
	}
	put()
	server := actiontest.WebServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token := current(); r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}), actiontest.Protocols((*http.Protocols).SetHTTP1), true)
	server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		a, _ := current()
		return &tls.Config{Certificates: []tls.Certificate{a.IssuePair(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}, nil
	}
	f := guardedBy(server.Listener.Addr().String(), long, &config.TLS{
		CAFile: secret.Path("ca.crt"), CertFile: secret.Path("tls.crt"), KeyFile: secret.Path("tls.key"),
	}, config.Header{Name: "Authorization", ValueFile: secret.Path("token"), Prefix: "Bearer "})
	if got := actiontest.Attempt(t, f); !got.Success {
		t.Fatalf("got %+v", got)
	}
	next := testutil.NewAuthority(t, "second")
	mu.Lock()
	authority, token = next, "token of second"
	mu.Unlock()
	if got := actiontest.Attempt(t, f); got.Reason != action.TLSVerify {
		t.Errorf("before the rotation: got %+v", got)
	}
	put()
	testutil.Until(t, "the probe uses the new files", func() bool { return actiontest.Attempt(t, f).Success })
}

// While certificate and key do not fit, the last pair stays in use, and the attempt says so. A
// server that refuses this pair, or one that has expired, may be right: the attempt is unknown,
// however the server says so. A server that does not ask for a certificate fails on its own account.
func TestDoubtfulPair(t *testing.T) {
	first, second := testutil.NewAuthority(t, "first"), testutil.NewAuthority(t, "second")
	certificate, key := first.Issue(t)
	_, otherKey := first.Issue(t)
	old, oldKey := first.Issue(t, testutil.Expired)
	secret := testutil.NewSecret(t).Put(t, map[string]string{"tls.crt": certificate, "tls.key": key})
	pair := config.TLS{InsecureSkipVerify: true, CertFile: secret.Path("tls.crt"), KeyFile: secret.Path("tls.key")}
	accepting := overTLS(t, false, first.IssuePair(t), func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, first.Pool() })
	refusing := map[string]action.Func{}
	for version, name := range map[uint16]string{tls.VersionTLS12: "TLS 1.2", tls.VersionTLS13: "TLS 1.3"} {
		refusing[name] = guardedBy(overTLS(t, true, first.IssuePair(t), func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, second.Pool(), version
		}), long, &pair)
	}
	polite := pair
	bad := config.HTTPGet{Path: "/code?c=400", Scheme: "HTTPS", TLS: &polite}
	refusing["a status"] = httpProbe(overTLS(t, false, first.IssuePair(t), func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }), long, bad)
	careless := httpProbe(overTLS(t, false, first.IssuePair(t)), long, bad) // asks for no certificate
	f := guardedBy(accepting, long, &pair)
	gone := guardedBy(actiontest.ClosedPort(t), long, &pair)

	if got := actiontest.Attempt(t, f); !got.Success || got.Warning {
		t.Errorf("good: got %+v", got)
	}
	for name, f := range refusing {
		if got := actiontest.Attempt(t, f); got.Success || got.Reason == action.LocalFile {
			t.Errorf("good, refused by %s: got %+v", name, got)
		}
	}
	for _, step := range []struct {
		certificate, key, want string
		success                bool
	}{
		{certificate, otherKey, "an old client certificate is in use: ", true},
		{old, oldKey, "the client certificate has expired: it was valid until 20", false},
	} {
		secret.Put(t, map[string]string{"tls.crt": step.certificate, "tls.key": step.key})
		testutil.Until(t, "a doubt: "+step.want, func() bool {
			got, err := f(t.Context())
			return strings.Contains(got.Output, step.want) && got.Success == step.success && got.Warning == step.success && (err == nil) == step.success
		})
		for name, f := range refusing {
			if got, err := f(t.Context()); err == nil || got.Reason != action.LocalFile || !strings.Contains(got.Output, step.want) {
				t.Errorf("%s by %s: got %+v, error %v", step.want, name, got, err)
			}
		}
		if got := actiontest.Attempt(t, gone); got.Reason != action.ConnectionRefused {
			t.Errorf("%s, nobody listens: got %+v", step.want, got)
		}
		if got, err := careless(t.Context()); err != nil || got.Reason != action.HTTPStatus {
			t.Errorf("%s, no certificate is asked for: got %+v, error %v", step.want, got, err)
		}
	}
}

// A header from a file goes to the target's own scheme and port alone, wherever the target's
// redirects lead; other headers go wherever net/http sends them. A request to another host is not
// made.
func TestHeaderFromFileRedirected(t *testing.T) {
	headers := []config.Header{
		{Name: "Authorization", ValueFile: file(t, "hunter2\n"), Prefix: "Bearer "},
		{Name: "X-Plain", Value: "plain"},
		{Name: "User-Agent", ValueFile: file(t, "mine")},
	}
	authority := testutil.NewAuthority(t, "one")
	other, first := overTLS(t, false, authority.IssuePair(t)), overTLS(t, false, authority.IssuePair(t))
	plain := actiontest.Web(t, actiontest.Site())
	for path, want := range map[string]bool{
		"/":                                      true,
		"/code?c=302&loc=/there":                 true,
		"/code?c=302&loc=https://" + first + "/": true,
		"/code?c=302&loc=https://" + other + "/": false,
		"/code?c=302&loc=http://" + plain + "/":  false,
		"/code?c=302&loc=https://" + other + "/code?c=302%26loc=https://" + first + "/": true,
	} {
		got := actiontest.Attempt(t, httpProbe(first, long, config.HTTPGet{Path: path, Scheme: "HTTPS", Headers: headers}))
		if !got.Success || strings.Contains(got.Output, "Bearer hunter2") != want || strings.Contains(got.Output, "User-Agent:[mine]") != want || !strings.Contains(got.Output, "X-Plain:[plain]") {
			t.Errorf("%s: got %+v, with the header %t", path, got, want)
		}
	}
	got := actiontest.Attempt(t, httpProbe(first, long, config.HTTPGet{Path: "/code?c=302&loc=https://localhost/", Scheme: "HTTPS", Headers: headers}))
	if !got.Warning {
		t.Errorf("another host: got %+v", got)
	}
}
