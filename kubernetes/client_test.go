// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inCluster returns the pod web-0 of the namespace shop, and a client whose API server is handler.
func inCluster(t *testing.T, handler http.HandlerFunc) (*Client, Self) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{"token": "secret-1", "namespace": "shop", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "POD_NAME": "web-0"}
	c := New(Env{Dir: dir, Getenv: func(name string) string { return environ[name] }, Hostname: os.Hostname}, 20*time.Second)
	t.Cleanup(c.Close)
	self, err := c.Self()
	if err != nil {
		t.Fatal(err)
	}
	return c, self
}

// A request for the pod has the pod's path and the token only. The client decodes the answer.
func TestGet(t *testing.T) {
	c, self := inCluster(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/api/v1/namespaces/shop/pods/web-0" || r.Header.Get("Authorization") != "Bearer secret-1" {
			t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, `{"metadata":{"uid":"u1"}}`)
	})
	var pod struct{ Metadata struct{ UID string } }
	if err := c.Get(t.Context(), self, &pod); err != nil || pod.Metadata.UID != "u1" {
		t.Errorf("got %+v, %v", pod, err)
	}
}

// The error for a refusal has a kind, says what to do, and does not repeat the token.
func TestRefused(t *testing.T) {
	for code, want := range map[int]struct {
		trouble Trouble
		text    string
	}{
		401: {TroubleUnauthorized, "does not accept the service account's token"},
		403: {TroubleForbidden, "verbs: [get]"},
		410: {TroubleExpired, "I saw [token]"},
		418: {TroubleAnswer, "answers 418"},
	} {
		c, self := inCluster(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, `{"kind":"Status","message":"I saw secret-1"}`)
		})
		err := c.Get(t.Context(), self, new(struct{}))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Trouble != want.trouble || !strings.Contains(e.Error(), want.text) || strings.Contains(e.Error(), "secret-1") {
			t.Errorf("%d: got %v, want %q in it", code, err, want.text)
		}
	}
}

// A watch delivers its events. It ends in an error whose kind is that of an ERROR event, of
// nonsense, or of a connection that was cut.
func TestWatch(t *testing.T) {
	for last, want := range map[string]Trouble{
		`{"type":"ERROR","object":{"code":410,"message":"too old"}}`:  TroubleExpired,
		`{"type":"ERROR","object":{"code":500,"message":"no store"}}`: TroubleAnswer,
		`{"type":"ERROR","object":[]}`:                                TroubleAnswer,
		`<html>`:                                                      TroubleAnswer,
		`{"type":"MODIFIED","object":{"meta`:                          TroubleCut,
		``:                                                            TroubleCut,
	} {
		c, self := inCluster(t, func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			if query.Get("watch") != "1" || query.Get("resourceVersion") != "10" || query.Get("timeoutSeconds") != "7" {
				t.Errorf("asked %s", r.URL)
			}
			fmt.Fprint(w, `{"type":"MODIFIED","object":{"metadata":{"uid":"u1"}}}`+"\n"+last)
		})
		stream, err := c.Watch(t.Context(), self, "10", 7*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var pod struct{ Metadata struct{ UID string } }
		event, err := stream.Next()
		if err != nil || event.Type != "MODIFIED" || event.Decode(&pod) != nil || pod.Metadata.UID != "u1" {
			t.Errorf("before %q: got %+v, %v", last, event, err)
		}
		event, err = stream.Next()
		if e, ok := errors.AsType[*Error](err); !ok || e.Trouble != want {
			t.Errorf("%q: got %+v, %v", last, event, err)
		}
		stream.Close()
	}
}
