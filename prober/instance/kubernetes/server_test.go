// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// podServer is an API server whose every answer is given by the test.
type podServer struct {
	*httptest.Server
	calls chan *podCall
}

// podCall is a request that waits for the test's answer.
type podCall struct {
	r    *http.Request
	acts chan func(http.ResponseWriter)
}

func newPodServer(t *testing.T, certificates ...tls.Certificate) *podServer {
	t.Helper()
	s := &podServer{calls: make(chan *podCall)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &podCall{r: r, acts: make(chan func(http.ResponseWriter))}
		select {
		case s.calls <- c:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
		for {
			select {
			case act, ok := <-c.acts:
				if !ok {
					return
				}
				act(w)
			case <-r.Context().Done():
				// The client has given up and may still be reading: to return would be an answer.
				panic(http.ErrAbortHandler)
			}
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{Certificates: certificates} // none: that of httptest
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ca returns the certificate that verifies the server.
func (s *podServer) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// next returns the next request, which must ask for what it says: "get" or the
// version from which to watch.
func (s *podServer) next(t *testing.T, want string) *podCall {
	t.Helper()
	c := testutil.Receive(t, s.calls, "a request: "+want)
	query := c.r.URL.Query()
	switch {
	case c.r.URL.Path == "/api/v1/namespaces/shop/pods/web-0" && want == "get":
	case c.r.URL.Path == "/api/v1/namespaces/shop/pods" && query.Get("watch") == "1" && query.Get("resourceVersion") == want &&
		query.Get("fieldSelector") == "metadata.name=web-0" && query.Get("allowWatchBookmarks") == "true":
	default:
		t.Fatalf("asked %s, want %s", c.r.URL, want)
	}
	return c
}

// send sends a part of the body.
func (c *podCall) send(body string) {
	c.acts <- func(w http.ResponseWriter) {
		w.Write([]byte(body))
		w.(http.Flusher).Flush()
	}
}

// open begins a watch that says nothing yet.
func (c *podCall) open() *podCall { c.send(""); return c }

func (c *podCall) end() { close(c.acts) }

// cut ends the connection in the middle.
func (c *podCall) cut() { c.acts <- func(http.ResponseWriter) { panic(http.ErrAbortHandler) } }

// answer is a whole answer.
func (c *podCall) answer(code int, body string) {
	c.acts <- func(w http.ResponseWriter) { w.WriteHeader(code); w.Write([]byte(body)) }
	c.end()
}

// event sends an event of a watch.
func (c *podCall) event(kind, object string) {
	c.send(`{"type":"` + kind + `","object":` + object + "}\n")
}

// podRun is a running source under test.
type podRun struct {
	*Source
	dir     string
	environ sync.Map
	logs    chan string
	changes chan string
	stop    func() // and waits
}

// newPodRun returns a source in an environment of its own, for the pod web-0 in the
// namespace shop with the target app; it does not run yet.
func newPodRun(t *testing.T, s *podServer) *podRun {
	t.Helper()
	r := &podRun{dir: t.TempDir(), logs: make(chan string, 1000), changes: make(chan string, 1000)}
	r.Source = New(slog.New(slog.NewTextHandler(r, nil)))
	r.env.Dir = r.dir
	r.env.Getenv = func(name string) string {
		v, _ := r.environ.Load(name)
		s, _ := v.(string)
		return s
	}
	r.retryMin, r.retryMax = time.Millisecond, 4*time.Millisecond
	r.environ.Store("POD_NAME", "web-0")
	r.file(t, "namespace", "shop")
	r.file(t, "token", "secret-1")
	r.at(t, s)
	r.Watch(appTarget("app", "app"))
	return r
}

// at makes a server the one of the environment, and its certificate the one to trust.
func (r *podRun) at(t *testing.T, s *podServer) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.environ.Store("KUBERNETES_SERVICE_HOST", host)
	r.environ.Store("KUBERNETES_SERVICE_PORT", port)
	r.file(t, "ca.crt", s.ca())
}

// Write takes a line of the log.
func (r *podRun) Write(line []byte) (int, error) {
	r.logs <- string(line)
	return len(line), nil
}

func (r *podRun) file(t *testing.T, name, content string) {
	t.Helper()
	// In one step, as a kubelet does it: half a file is not what is tested here.
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func (r *podRun) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(target string) {
			r.Instance(target) // as the manager does
			r.Describe(target)
			r.Up()
			r.changes <- target
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := testutil.Receive(t, done, "the end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
		if r.Up() {
			t.Error("up after the end of Run")
		}
	})
	t.Cleanup(r.stop)
}

// log waits for the next line, which must hold all of want, and not the token.
func (r *podRun) log(t *testing.T, want ...string) {
	t.Helper()
	line := testutil.Receive(t, r.logs, strings.Join(want, " "))
	for _, w := range want {
		if !strings.Contains(line, w) {
			t.Fatalf("log %swant %q in it", line, w)
		}
	}
	if strings.Contains(line, "secret-") {
		t.Fatalf("a token in the log: %s", line)
	}
}

// quiet wants no line of the log to be waiting.
func (r *podRun) quiet(t *testing.T) {
	t.Helper()
	select {
	case line := <-r.logs:
		t.Fatalf("unwanted log: %s", line)
	default:
	}
}

// change waits for the word that app has changed.
func (r *podRun) change(t *testing.T) {
	t.Helper()
	if got := testutil.Receive(t, r.changes, "a change"); got != "app" {
		t.Fatalf("changed %q, want app", got)
	}
}

func appTarget(name, container string) *config.Target {
	t := &config.Target{Name: name}
	t.Instance.Source, t.Instance.Container = config.SourceKubernetes, container
	return t
}

// podOf is the pod web-0 with the given version and status of its container app.
func podOf(version, status string) string {
	return `{"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"` + version + `"},` +
		`"spec":{"restartPolicy":"Always","containers":[{"name":"app"}]},` +
		`"status":{"phase":"Running","containerStatuses":[` + status + `]}}`
}

const (
	runsA        = `{"name":"app","containerID":"containerd://a","started":true,"state":{"running":{"startedAt":"2026-11-21T12:00:00Z"}}}`
	endsA        = `{"name":"app","containerID":"containerd://a","state":{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":"2026-11-21T12:00:00Z","containerID":"containerd://a"}}}`
	runsB        = `{"name":"app","containerID":"containerd://b","started":true,"state":{"running":{"startedAt":"2026-11-21T12:01:00Z"}}}`
	podForbidden = `{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}`
)

// newOtherServer returns a server with a certificate that no other one has.
func newOtherServer(t *testing.T) *podServer {
	t.Helper()
	certificate, key, err := testutil.Certificate(net.IPv4(127, 0, 0, 1), net.IPv6loopback)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return newPodServer(t, pair)
}
