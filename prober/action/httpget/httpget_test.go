// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// A path is a URL reference whose scheme and host do not matter. A path that is no URL
// reference is used as it stands.
func TestHTTPGetURL(t *testing.T) {
	for _, c := range []struct {
		scheme, host string
		port         int
		path, want   string
	}{
		{"HTTP", "localhost", 93, "", "http://localhost:93"},
		{"", "localhost", 93, "/", "http://localhost:93/"},
		{"HTTPS", "localhost", 93, "/path", "https://localhost:93/path"},
		{"HTTP", "localhost", 93, "?foo", "http://localhost:93?foo"},
		{"HTTP", "localhost", 93, "/path?bar", "http://localhost:93/path?bar"},
		{"HTTP", "localhost", 93, "path", "http://localhost:93/path"},
		{"HTTP", "localhost", 93, "//x/y", "http://localhost:93/y"},
		{"HTTP", "localhost", 93, "http://u:p@x/y", "http://u:p@localhost:93/y"},
		{"HTTP", "localhost", 93, "/bad%zz?x=1", "http://localhost:93/bad%25zz%3Fx=1"},
		{"HTTP", "localhost", 93, "/sp ace", "http://localhost:93/sp%20ace"},
		{"HTTP", "::1", 93, "/", "http://[::1]:93/"},
		{"HTTP", "fe80::1%eth0", 93, "/", "http://[fe80::1%25eth0]:93/"},
	} {
		h := &config.HTTPGet{Scheme: c.scheme, Path: c.path, Port: config.PortRef{Number: c.port}}
		if got := probeURL(h, c.host).String(); got != c.want {
			t.Errorf("%+v: got %s, want %s", c, got, c.want)
		}
	}
}

// The host of the probe overrides the host of the target.
func TestHTTPGetHost(t *testing.T) {
	host, port := actiontest.Split(actiontest.Web(t, actiontest.Site()))
	h := config.HTTPGet{Host: host, Port: config.PortRef{Number: port}, Path: "/"}
	f := New(&config.Target{Host: "192.0.2.1"}, &config.Probe{HTTPGet: &h, Timeout: 10 * time.Second})
	if got := actiontest.Attempt(t, f); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// The server sees exactly Accept, Connection and User-Agent, and the probe's own headers.
func TestHTTPGetHeader(t *testing.T) {
	seen := make(chan *http.Request, 1)
	address := actiontest.Web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r }))
	for _, c := range []struct {
		name, value string
		want        http.Header
	}{
		{"", "", http.Header{"Accept": {"*/*"}, "Connection": {"close"}, "User-Agent": {"kube-probe/1.37"}}},
		{"Accept-Encoding", "gzip", http.Header{"Accept-Encoding": {"gzip"}}},
		{"Accept-Encoding", "foo", http.Header{"Accept-Encoding": {"foo"}}},
		{"Accept-Encoding", "", http.Header{"Accept-Encoding": {""}}},
		{"user-agent", "foo/1.0", http.Header{"User-Agent": {"foo/1.0"}}},
		{"User-Agent", "", http.Header{"User-Agent": nil}},
		{"Accept", "text/html", http.Header{"Accept": {"text/html"}}},
		{"ACCEPT", "", http.Header{"Accept": nil}},
		{"Connection", "Keep-Alive", http.Header{"Connection": {"close", "Keep-Alive"}}},
		{"FOO-bAR", "x", http.Header{"Foo-Bar": {"x"}}},
	} {
		var list []config.Header
		if c.name != "" {
			list = []config.Header{{Name: c.name, Value: c.value}}
		}
		if got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/", Headers: list})); !got.Success {
			t.Fatalf("%+v: got %+v", c, got)
		}
		r := <-seen
		want := http.Header{"Accept": {"*/*"}, "Connection": {"close"}, "User-Agent": {"kube-probe/1.37"}}
		for name, values := range c.want {
			want[name] = values
			if values == nil {
				delete(want, name)
			}
		}
		// Both lines of a repeated Connection count, in the order of net/http.
		if c.name == "Connection" && len(r.Header["Connection"]) == 2 {
			r.Header["Connection"] = want["Connection"]
		}
		if !reflect.DeepEqual(r.Header, want) {
			t.Errorf("%+v: got %v, want %v", c, r.Header, want)
		}
	}
}

// The probe follows a redirect to its own host, whatever the port. A redirect to another host
// is itself the answer, with a warning.
func TestHTTPGetRedirects(t *testing.T) {
	fail := actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	well := actiontest.Web(t, actiontest.Site())
	mux := http.NewServeMux()
	mux.HandleFunc("/go", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.FormValue("c"), &code)
		if to := r.FormValue("to"); to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(code)
		io.WriteString(w, r.FormValue("body"))
	})
	mux.HandleFunc("/new", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/host", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "example.com" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	address := actiontest.Web(t, mux)
	const terminated = "Probe terminated redirects, Response body: "
	for _, c := range []struct {
		path string
		want action.Outcome
	}{
		{"/go?c=301&to=/new", action.Outcome{Success: true}},
		{"/go?c=302&to=/new", action.Outcome{Success: true}},
		{"/go?c=307&to=/new", action.Outcome{Success: true}},
		{"/go?c=308&to=/new", action.Outcome{Success: true}},
		{"/go?c=301&to=/fail", action.Outcome{Reason: action.HTTPStatus, Output: "HTTP probe failed with statuscode: 500", Address: "http://" + address + "/fail"}},
		{"/go?c=308&to=/fail", action.Outcome{Reason: action.HTTPStatus, Output: "HTTP probe failed with statuscode: 500", Address: "http://" + address + "/fail"}},
		{"/go?c=308&to=/go?c=308", action.Outcome{Success: true, Warning: true, Output: terminated}},
		{"/go?c=308&body=ok+body", action.Outcome{Success: true, Warning: true, Output: terminated + "ok body"}},
		{"/go?c=302&to=http://" + well + "/len?n=2", action.Outcome{Success: true, Output: "aa"}},
		{"/go?c=302&to=http://" + fail + "/", action.Outcome{Reason: action.HTTPStatus, Output: "HTTP probe failed with statuscode: 500", Address: "http://" + fail + "/"}},
		{"/go?c=302&to=http://0.0.0.0/fail", action.Outcome{Success: true, Warning: true, Output: terminated}},
		{"/loop", action.Outcome{Reason: action.HTTPProtocol, Output: `Get "/loop": stopped after 10 redirects`}},
		{"/go?c=302&to=ftp://127.0.0.1/x", action.Outcome{Reason: action.HTTPProtocol, Output: `Get "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"`}},
		{"/go?c=302&to=/host", action.Outcome{Success: true}},
	} {
		h := config.HTTPGet{Path: c.path, Headers: []config.Header{{Name: "Host", Value: "example.com"}}}
		if got := actiontest.Attempt(t, httpProbe(address, 5*time.Second, h)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.path, got, c.want)
		}
	}
}

// The probe follows nine redirects and refuses the tenth.
func TestHTTPGetTenthRedirect(t *testing.T) {
	address := actiontest.Web(t, actiontest.Site())
	for n, want := range map[int]bool{9: true, 10: false} {
		h := config.HTTPGet{Path: fmt.Sprintf("/loop?n=%d", n)}
		if got := actiontest.Attempt(t, httpProbe(address, 5*time.Second, h)); got.Success != want {
			t.Errorf("%d redirects: got %+v", n, got)
		}
	}
}

// The agent keeps a body up to 10240 bytes. A longer body has no consequence.
func TestHTTPGetBody(t *testing.T) {
	address := actiontest.Web(t, actiontest.Site())
	for n, want := range map[int]int{0: 0, 10239: 10239, 10240: 10240, 10241: 10240, 1 << 20: 10240} {
		h := config.HTTPGet{Path: fmt.Sprintf("/len?n=%d", n)}
		if got := actiontest.Attempt(t, httpProbe(address, 5*time.Second, h)); got != (action.Outcome{Success: true, Output: strings.Repeat("a", want)}) {
			t.Errorf("%d: got %d bytes, %+.100v", n, len(got.Output), got)
		}
	}
}

// The probe speaks HTTP/2 over TLS if ALPN agrees and HTTP/2 is not disabled. Without TLS the
// probe speaks HTTP/2 only with prior knowledge.
func TestHTTPGetProtocols(t *testing.T) {
	h1, h2, h2c := (*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2, (*http.Protocols).SetUnencryptedHTTP2
	for _, c := range []struct {
		name     string
		server   *http.Protocols
		https    bool
		protocol string
		disable  string
		want     string // a part of the output
	}{
		{"plain", actiontest.Protocols(h1, h2c), false, "HTTP1", "", "HTTP/1.1"},
		{"https", actiontest.Protocols(h1, h2), true, "", "", "HTTP/2.0"},
		{"https, server without h2", actiontest.Protocols(h1), true, "", "", "HTTP/1.1"},
		{"https, disabled", actiontest.Protocols(h1, h2), true, "", "true", "HTTP/1.1"},
		{"h2c", actiontest.Protocols(h2c), false, "HTTP2", "", "HTTP/2.0"},
		{"h2c, ALPN disabled", actiontest.Protocols(h1, h2c), false, "HTTP2", "true", "HTTP/2.0"},
		{"h2c, server without", actiontest.Protocols(h1), false, "HTTP2", "", "http2: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DISABLE_HTTP2", c.disable)
			address := actiontest.WebServer(t, actiontest.Site(), c.server, c.https).Listener.Addr().String()
			h := config.HTTPGet{Path: "/h", Scheme: "HTTP", Protocol: c.protocol}
			if c.https {
				h.Scheme = "HTTPS"
			}
			if got := actiontest.Attempt(t, httpProbe(address, 5*time.Second, h)); !strings.Contains(got.Output, c.want) {
				t.Errorf("got %+v, want %s", got, c.want)
			}
		})
	}
}

// Whatever the environment says of proxies, a probe goes to its target.
func TestHTTPGetIgnoresProxy(t *testing.T) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+actiontest.ClosedPort(t))
	}
	t.Setenv("no_proxy", "")
	t.Setenv("NO_PROXY", "")
	// This is an address of the machine itself, because net/http uses no proxy for
	// 127.0.0.1.
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(actiontest.Site())
	s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	_, port := actiontest.Split(l.Addr().String())
	if got := actiontest.Attempt(t, httpProbe(dial.HostPort("0.0.0.0", port), 10*time.Second, config.HTTPGet{Path: "/len?n=1"})); got.Output != "a" {
		t.Errorf("got %+v", got)
	}
}

// Userinfo in a path becomes basic authentication, and its password appears in no output, error
// or log.
func TestHTTPGetHidesPasswords(t *testing.T) {
	const secret = "s3cret"
	var seen string
	address := actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		http.Redirect(w, r, r.FormValue("to"), http.StatusFound)
	}))
	path := "http://user:" + secret + "@x/y"
	back := "http://user:" + secret + "@"
	for _, c := range []struct {
		address string
		h       config.HTTPGet
	}{
		{actiontest.ClosedPort(t), config.HTTPGet{Path: path}},
		{actiontest.ClosedPort(t), config.HTTPGet{Path: path + "/%zz"}}, // no URL, so a path as it stands
		{"a b:1", config.HTTPGet{Path: path}},
		{address, config.HTTPGet{Path: path + "?to=/y"}},
		{address, config.HTTPGet{Path: path + "?to=" + back + "elsewhere/"}},
		{address, config.HTTPGet{Path: path + "?to=" + back + "127.0.0.1:1/"}},
		{address, config.HTTPGet{Path: path + "?to=" + back + address + "/?to=/"}},
		{address, config.HTTPGet{Path: path + "?to=" + back + "%5b::1/"}}, // a Location that is no URL
		{address, config.HTTPGet{Path: path, Scheme: "HTTPS"}},
		{address, config.HTTPGet{Path: path, Headers: []config.Header{{Name: "X", Value: "\n"}}}},
	} {
		got, err := httpProbe(c.address, 10*time.Second, c.h)(t.Context())
		if strings.Contains(got.Output, secret) || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: got %+v, error %v", c, got, err)
		}
	}
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret)); seen != want {
		t.Errorf("the server saw %q, want %q", seen, want)
	}
}

// A stop ends an attempt at once with an error.
func TestHTTPGetStop(t *testing.T) {
	address := actiontest.Web(t, actiontest.Site())
	for _, path := range []string{"/slow", "/slowbody"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		began := time.Now()
		got, err := httpProbe(address, time.Minute, config.HTTPGet{Path: path})(ctx)
		if took := time.Since(began); err == nil || took > 5*time.Second {
			t.Errorf("%s: got %+v, error %v after %v; want an error after 50ms", path, got, err, took)
		}
	}
}

// A failure has the beginning of the body, without passwords in URLs, and the address to which
// a redirect has led. The output is the kubelet's.
func TestFailureTellsMore(t *testing.T) {
	const kubelet = "HTTP probe failed with statuscode: 500"
	long := strings.Repeat("x", maxBody) + "y"
	address := actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/from":
			http.Redirect(w, r, "//user:pass@"+r.Host+"/to?a=b", http.StatusFound)
		case "/long":
			w.WriteHeader(500)
			io.WriteString(w, long)
		case "/well":
			io.WriteString(w, "well")
		default:
			w.WriteHeader(500)
			io.WriteString(w, "no database at postgres://shop:hunter2@db/shop\n")
		}
	}))
	for path, want := range map[string]action.Outcome{
		"/x":    {Reason: action.HTTPStatus, Output: kubelet, Body: "no database at postgres://shop:***@db/shop\n"},
		"/from": {Reason: action.HTTPStatus, Output: kubelet, Body: "no database at postgres://shop:***@db/shop\n", Address: "http://<redacted>@" + address + "/to?a=b"},
		"/long": {Reason: action.HTTPStatus, Output: kubelet, Body: long[:maxBody]},
		"/well": {Success: true, Output: "well"},
	} {
		if got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: path})); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// httpProbe returns an httpGet action.
func httpProbe(address string, timeout time.Duration, h config.HTTPGet) action.Func {
	return New(actiontest.HTTPGet(address, timeout, h))
}
