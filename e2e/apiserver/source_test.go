// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

var (
	first  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	second = first.Add(5 * time.Minute)
)

// The source finds the pod by its token alone. It follows a container from waiting over two
// lives to the deletion of the pod with its grace period. The log has two lines in all.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.log("level=INFO", "watching the pod", "namespace="+w.namespace, "pod=web-0")
	w.status("Pending", "app= "+waits)
	testutil.Within(t, time.Minute, "waits", func() bool { return a.Describe("app").Message == "ContainerCreating" })
	a.sees("app", gate.Instance{})
	w.status("Running", "app=a "+runs, "job=j "+runs, "logger=l "+runs)
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Running, StartedAt: first})
	w.status("Running", "app=a "+ended("a", 137), "job=j "+ended("j", 1), "logger=l "+ended("l", 1))
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Terminated, StartedAt: first})
	a.sees("job", gate.Instance{ID: "containerd://j", Phase: gate.Terminated, Final: true, StartedAt: first})
	a.sees("logger", gate.Instance{ID: "containerd://l", Phase: gate.Terminated, StartedAt: first})
	if d := a.Describe("app"); d.ExitCode == nil || *d.ExitCode != 137 || !d.OOMKilled {
		t.Errorf("app ended as %+v, want 137 and OOMKilled", d)
	}
	w.status("Running", "app=b "+later, "job=j "+ended("j", 1))
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, StartedAt: second})
	w.must("DELETE", w.core("pods/web-0"), `{"gracePeriodSeconds":30}`)
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, Deleting: true, StartedAt: second})
	w.must("DELETE", w.core("pods/web-0"), `{"gracePeriodSeconds":0}`)
	a.sees("app", gate.Instance{Final: true, Deleting: true})
	a.log("level=INFO", "pod has been deleted")
	a.quiet()
	if !a.Up() {
		t.Error("the source is down, although it has nothing left to see")
	}
}

// A container that a rule for its exit code, 42, starts again is not final.
func TestRestartRule(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	w.status("Running", "job=j "+ended("j", 42))
	a.sees("job", gate.Instance{ID: "containerd://j", Phase: gate.Terminated, StartedAt: first})
}

// With the Role of the documents the source works, and the server refuses 8 other requests with
// its token. Without the verb watch the log names the missing rule, and the source still looks
// at the pod. With the verb again, the source is up.
func TestRole(t *testing.T) {
	w := newWorld(t)
	w.pod("web-1")
	b, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		t.Fatal(err)
	}
	token := string(b)
	for _, refused := range []struct{ method, path string }{
		{"GET", w.core("pods/web-1")},
		{"GET", w.core("pods")},
		{"GET", w.core("pods?fieldSelector=metadata.name%3Dweb-0")},
		{"GET", w.core("pods?watch=1&timeoutSeconds=1")},
		{"GET", w.core("pods?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dweb-1")},
		{"DELETE", w.core("pods/web-0")},
		{"PATCH", w.core("pods/web-0/status")},
		{"GET", "/api/v1/nodes/node-1"},
	} {
		if code := w.code(token, refused.method, refused.path); code != 403 {
			t.Errorf("%s %s: %d, want 403", refused.method, refused.path, code)
		}
	}

	w.must("PUT", w.rbac("roles/prober-exporter"), strings.Replace(w.role, "[get, watch]", "[get]", 1))
	watch := w.core("pods?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dweb-0")
	testutil.Within(t, time.Minute, "the Role lacks watch", func() bool { return w.code(token, "GET", watch) == 403 })
	w.status("Running", "app=a "+runs)
	a := w.agent()
	a.log("level=WARN", `lacks the rule {apiGroups: [\"\"], resources: [pods], resourceNames: [web-0], verbs: [watch]}`)
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Running, StartedAt: first})
	w.status("Running", "app=b "+later)
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, StartedAt: second})
	if a.Up() {
		t.Error("the source is up without a watch")
	}
	w.must("PUT", w.rbac("roles/prober-exporter"), w.role)
	a.log("level=INFO", "watching the pod")
	a.quiet()
}

// The server refuses a deleted token with 401. The log says so once, and the view stays. The
// source then uses the next token in the file. If a token is replaced in time, nobody notices.
func TestTokenRotation(t *testing.T) {
	w := newWorld(t)
	secret := between(w.must("POST", w.core("secrets"), `{"metadata":{"name":"bound"}}`), `"uid":"`, `"`)
	old := w.token("Secret", "bound", secret)
	w.file("token", old)
	t.Setenv("POD_NAME", "web-0") // this token does not name the pod
	w.status("Running", "app=a "+runs)
	a := w.agent()
	a.log("watching the pod")
	w.must("DELETE", w.core("secrets/bound"), "")
	testutil.Within(t, time.Minute, "the old token is refused", func() bool { return w.code(old, "GET", w.core("pods/web-0")) == 401 })

	w.line.blink()
	a.log("level=WARN", "does not accept the service account's token (401)")
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Running, StartedAt: first})
	w.file("token", w.token("Pod", "web-0", w.uid))
	a.log("level=INFO", "watching the pod")

	secret = between(w.must("POST", w.core("secrets"), `{"metadata":{"name":"bound"}}`), `"uid":"`, `"`)
	w.file("token", w.token("Secret", "bound", secret))
	w.line.blink()
	w.status("Running", "app=b "+later)
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, StartedAt: second})
}

// etcd and the API server have dropped the version from which the watch would go on, and the
// server answers 410. The source then looks again, and sees the newest of the three lives that
// it has missed.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	w.status("Running", "app=a "+runs)
	a := w.agent()
	a.log("watching the pod")
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Running, StartedAt: first})
	version := between(w.must("GET", w.core("pods/web-0"), ""), `"resourceVersion":"`, `"`)

	w.line.cut()
	a.log("level=WARN", "cannot watch the pod")
	for _, id := range []string{"b", "c", "d"} {
		w.status("Running", "app="+id+" "+later)
	}
	kube.stopAPI()
	if err := kube.compact(); err != nil {
		t.Fatal(err)
	}
	if err := kube.startAPI(); err != nil {
		t.Fatal(err)
	}
	if answer := w.must("GET", w.core("pods?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dweb-0&resourceVersion="+version), ""); !strings.Contains(answer, `"code":410`) {
		t.Fatalf("a watch from version %s: %s, want 410", version, answer)
	}
	if got := a.Instance("app").ID; got != "containerd://a" {
		t.Errorf("%s, with the line cut; want the last view", got)
	}
	w.line.mend()
	a.sees("app", gate.Instance{ID: "containerd://d", Phase: gate.Running, StartedAt: second})
	testutil.Within(t, time.Minute, "up", a.Up)
}

// While the API server is away the last view stays, the source is down, and the log says so
// once. When the server is back, the watch goes on.
func TestServerRestart(t *testing.T) {
	w := newWorld(t)
	w.status("Running", "app=a "+runs)
	a := w.agent()
	a.log("watching the pod")
	kube.stopAPI()
	a.log("level=WARN", "cannot watch the pod")
	if a.Up() {
		t.Error("the source is up without a server")
	}
	a.sees("app", gate.Instance{ID: "containerd://a", Phase: gate.Running, StartedAt: first})
	if err := kube.startAPI(); err != nil {
		t.Fatal(err)
	}
	w.status("Running", "app=b "+later)
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, StartedAt: second})
	testutil.Within(t, time.Minute, "up", a.Up)
}

// The source replaces a lost connection without a line in the log.
func TestLostConnection(t *testing.T) {
	w := newWorld(t)
	w.status("Running", "app=a "+runs)
	a := w.agent()
	a.log("watching the pod")
	w.line.blink()
	w.status("Running", "app=b "+later)
	a.sees("app", gate.Instance{ID: "containerd://b", Phase: gate.Running, StartedAt: second})
	a.quiet()
	if !a.Up() {
		t.Error("the source is down after one lost connection")
	}
}
