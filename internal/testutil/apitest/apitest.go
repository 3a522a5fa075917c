// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package apitest has an API server on loopback whose every answer is given by the test, and
// the environment of a pod that finds the server.
package apitest

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// Server is an API server whose every answer is given by the test.
type Server struct {
	*httptest.Server
	Calls chan *Call
	pipes *pipes // nil: on loopback
}

// Call is a request that waits for the test's answer.
type Call struct {
	R    *http.Request
	Body string
	Acts chan func(http.ResponseWriter)
}

// NewServer returns a Server with these certificates; none: that of httptest.
func NewServer(t testing.TB, certificates ...tls.Certificate) *Server {
	t.Helper()
	s := &Server{Calls: make(chan *Call)}
	s.start(t, nil, certificates)
	return s
}

// NewPiped returns a Server that is reached through pipes in memory, so that it works in a
// bubble of testing/synctest.
func NewPiped(t testing.TB) *Server {
	t.Helper()
	s := &Server{Calls: make(chan *Call), pipes: newPipes()}
	s.start(t, s.pipes, nil)
	return s
}

func (s *Server) start(t testing.TB, on net.Listener, certificates []tls.Certificate) {
	t.Helper()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c := &Call{R: r, Body: string(body), Acts: make(chan func(http.ResponseWriter))}
		select {
		case s.Calls <- c:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
		for {
			select {
			case act, ok := <-c.Acts:
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
	if on != nil {
		s.Listener.Close()
		s.Listener = on
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{Certificates: certificates}
	s.StartTLS()
	t.Cleanup(s.Close)
}

// CA returns the certificate that verifies the server.
func (s *Server) CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Next returns the next request, which must ask for what it says: "get", "patch" for the
// status of the pod, "event" for a new event, the name of an event, or the version from which
// to watch.
func (s *Server) Next(t testing.TB, want string) *Call {
	t.Helper()
	c := testutil.Receive(t, s.Calls, "a request: "+want)
	if got := c.Asks(); got != want {
		t.Fatalf("asked %s %s (%s), want %s", c.R.Method, c.R.URL, got, want)
	}
	return c
}

// Asks returns what a request asks for, in the words of Next.
func (c *Call) Asks() string {
	const namespace = "/api/v1/namespaces/shop/"
	query := c.R.URL.Query()
	switch at := c.R.Method + " " + c.R.URL.Path; at {
	case "GET " + namespace + "pods/web-0":
		return "get"
	case "PATCH " + namespace + "pods/web-0/status":
		return "patch"
	case "POST " + namespace + "events":
		return "event"
	case "GET " + namespace + "pods":
		if query.Get("watch") == "1" && query.Get("fieldSelector") == "metadata.name=web-0" && query.Get("allowWatchBookmarks") == "true" {
			return query.Get("resourceVersion")
		}
	default:
		if path, name := filepath.Split(at); path == "PATCH "+namespace+"events/" {
			return name
		}
	}
	return "something else"
}

// Send sends a part of the body.
func (c *Call) Send(body string) {
	c.Acts <- func(w http.ResponseWriter) {
		w.Write([]byte(body))
		w.(http.Flusher).Flush()
	}
}

// Open begins a watch that says nothing yet.
func (c *Call) Open() *Call { c.Send(""); return c }

// End ends the answer.
func (c *Call) End() { close(c.Acts) }

// Cut ends the connection in the middle.
func (c *Call) Cut() { c.Acts <- func(http.ResponseWriter) { panic(http.ErrAbortHandler) } }

// Answer is a whole answer; headers are pairs of name and value.
func (c *Call) Answer(code int, body string, headers ...string) {
	c.Acts <- func(w http.ResponseWriter) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		w.Write([]byte(body))
	}
	c.End()
}

// Event sends an event of a watch.
func (c *Call) Event(kind, object string) {
	c.Send(`{"type":"` + kind + `","object":` + object + "}\n")
}

// Pod is the environment of the pod web-0 in the namespace shop, whose token is secret-1.
type Pod struct {
	Dir      string
	Environ  sync.Map
	Hostname func() (string, error)

	pipes *pipes
}

// NewPod returns the environment of a pod that asks a server.
func NewPod(t testing.TB, s *Server) *Pod {
	t.Helper()
	p := &Pod{Dir: t.TempDir(), Hostname: os.Hostname, pipes: s.pipes}
	p.Environ.Store("POD_NAME", "web-0")
	p.File(t, "namespace", "shop")
	p.File(t, "token", "secret-1")
	p.At(t, s)
	return p
}

// Env returns the environment, which follows all changes of the pod.
func (p *Pod) Env() kubernetes.Env {
	env := kubernetes.Env{
		Dir: p.Dir,
		Getenv: func(name string) string {
			v, _ := p.Environ.Load(name)
			s, _ := v.(string)
			return s
		},
		Hostname: func() (string, error) { return p.Hostname() },
	}
	if p.pipes != nil {
		env.Dial = p.pipes.dial
	}
	return env
}

// At makes a server the one of the environment, and its certificate the one to trust.
func (p *Pod) At(t testing.TB, s *Server) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Environ.Store("KUBERNETES_SERVICE_HOST", host)
	p.Environ.Store("KUBERNETES_SERVICE_PORT", port)
	p.File(t, "ca.crt", s.CA())
}

// File writes a file of the service account in one step, as a kubelet does.
func (p *Pod) File(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(p.Dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}
