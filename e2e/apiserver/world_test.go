// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	source "github.com/prober-exporter/prober_exporter/prober/instance/kubernetes"
)

// world is a namespace for one test. It has a pod on a node that does not exist, the pod's
// service account, and a line to the API server that the test can cut.
type world struct {
	t         *testing.T
	namespace string
	uid       string // the UID of the pod web-0
	role      string // the Role of the documents, as YAML
	line      *line
}

// example is the Role, with its binding, that the documents tell a user to create.
const example = "../../examples/kubernetes/role.yaml"

var worlds int

// newWorld makes a world, and puts the pod's files of the service account in their place.
func newWorld(t *testing.T) *world {
	t.Helper()
	worlds++
	w := &world{t: t, namespace: fmt.Sprintf("shop-%d", worlds), line: newLine(t, kube.addr)}
	w.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+w.namespace+`"}}`)
	w.must("POST", w.core("serviceaccounts"), `{"metadata":{"name":"agent"}}`)
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	yaml := strings.NewReplacer("namespace: shop", "namespace: "+w.namespace, "name: web\n", "name: agent\n").Replace(string(text))
	var binding string
	w.role, binding, _ = strings.Cut(yaml, "\n---\n")
	w.must("POST", w.rbac("roles"), w.role)
	w.must("POST", w.rbac("rolebindings"), binding)
	w.uid = w.pod("web-0")
	w.file("ca.crt", string(kube.ca))
	w.file("namespace", w.namespace)
	token := w.token("Pod", "web-0", w.uid)
	w.file("token", token)
	testutil.Within(t, time.Minute, "the Role holds", func() bool { return w.code(token, "GET", w.core("pods/web-0")) == 200 })
	w.inPod()
	t.Cleanup(func() {
		for _, pod := range []string{"web-0", "web-1"} {
			kube.call(kube.admin, "DELETE", w.core("pods/"+pod), `{"gracePeriodSeconds":0}`)
		}
	})
	return w
}

func (w *world) core(rest string) string { return "/api/v1/namespaces/" + w.namespace + "/" + rest }

func (w *world) rbac(rest string) string {
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + w.namespace + "/" + rest
}

// must asks the API server as the administrator.
func (w *world) must(method, path, body string) string {
	w.t.Helper()
	code, answer, err := kube.call(kube.admin, method, path, body)
	if err != nil || code/100 != 2 {
		w.t.Fatalf("%s %s: %d %s (%v)", method, path, code, answer, err)
	}
	return answer
}

// pod creates a pod and returns its UID.
func (w *world) pod(name string) string {
	w.t.Helper()
	answer := w.must("POST", w.core("pods"), `{"metadata":{"name":"`+name+`"},"spec":{"nodeName":"node-1","serviceAccountName":"agent",
		"automountServiceAccountToken":false,"containers":[{"name":"app","image":"example.test/app:1"},
		{"name":"job","image":"example.test/job:1","restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]}],
		"initContainers":[{"name":"logger","image":"example.test/logger:1","restartPolicy":"Always"}]}}`)
	var p struct {
		Metadata struct{ UID string }
	}
	if err := json.Unmarshal([]byte(answer), &p); err != nil || p.Metadata.UID == "" {
		w.t.Fatalf("created %s (%v)", answer, err)
	}
	return p.Metadata.UID
}

// token returns a token of the agent that is valid while an object exists.
func (w *world) token(kind, name, uid string) string {
	w.t.Helper()
	return w.accountToken("agent", kind, name, uid)
}

// accountToken returns a token of a service account, bound to an object if it has a name.
func (w *world) accountToken(account, kind, name, uid string) string {
	w.t.Helper()
	bound := ""
	if name != "" {
		bound = `,"boundObjectRef":{"apiVersion":"v1","kind":"` + kind + `","name":"` + name + `","uid":"` + uid + `"}`
	}
	answer := w.must("POST", w.core("serviceaccounts/"+account+"/token"), `{"spec":{"expirationSeconds":600`+bound+`}}`)
	var r struct {
		Status struct{ Token string }
	}
	if err := json.Unmarshal([]byte(answer), &r); err != nil || r.Status.Token == "" {
		w.t.Fatalf("no token (%v)", err)
	}
	return r.Status.Token
}

// file puts a file of the service account in its place, in one step.
func (w *world) file(name, content string) {
	w.t.Helper()
	path := filepath.Join(account, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

// status sets the status of the containers, as a kubelet would: app=ID:STATE.
func (w *world) status(phase string, containers ...string) {
	w.t.Helper()
	lists := map[string][]string{}
	for _, c := range containers {
		name, rest, _ := strings.Cut(c, "=")
		id, state, _ := strings.Cut(rest, " ")
		list := "containerStatuses"
		if name == "logger" {
			list = "initContainerStatuses"
		}
		if id != "" {
			id = `"containerID":"containerd://` + id + `",`
		}
		lists[list] = append(lists[list], `{"name":"`+name+`","image":"i","imageID":"i","ready":false,"restartCount":0,`+id+`"state":{`+state+`}}`)
	}
	body := `"phase":"` + phase + `"`
	for list, statuses := range lists {
		body += `,"` + list + `":[` + strings.Join(statuses, ",") + `]`
	}
	w.must("PATCH", w.core("pods/web-0/status"), `{"status":{`+body+`}}`)
}

const (
	waits = `"waiting":{"reason":"ContainerCreating"}`
	runs  = `"running":{"startedAt":"2026-11-21T12:00:00Z"}`
	later = `"running":{"startedAt":"2026-11-21T12:05:00Z"}`
)

func ended(id string, code int) string {
	return fmt.Sprintf(`"terminated":{"exitCode":%d,"reason":"OOMKilled","startedAt":"2026-11-21T12:00:00Z","finishedAt":"2026-11-21T12:04:00Z","containerID":"containerd://%s"}`, code, id)
}

// agent is a running source.
type agent struct {
	*source.Source
	t    *testing.T
	logs chan string
}

// agent starts the source for the containers app, job and logger, until the test ends.
func (w *world) agent() *agent {
	a := &agent{t: w.t, logs: make(chan string, 1000)}
	log := slog.New(slog.NewTextHandler(a, nil))
	a.Source = source.New(kubernetes.NewFollower(kubernetes.InPod(), kubernetes.DefaultPace(), log), log)
	for _, name := range []string{"app", "job", "logger"} {
		t := &config.Target{Name: name}
		t.Instance.Source, t.Instance.Container = config.SourceKubernetes, name
		a.Watch(t)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Run(ctx, func(target string) { a.Instance(target); a.Describe(target) }); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	return a
}

// Write reads a line of the log, which must not contain a token.
func (a *agent) Write(line []byte) (int, error) {
	if token, err := os.ReadFile(filepath.Join(account, "token")); err != nil || strings.Contains(string(line), string(token)) {
		a.t.Errorf("a token in the log, or none in the file: %v", err)
	}
	a.logs <- string(line)
	return len(line), nil
}

// log waits for a line that contains all of want. No other line may come before that line.
func (a *agent) log(want ...string) {
	a.t.Helper()
	timer := time.NewTimer(60 * time.Second)
	defer timer.Stop()
	select {
	case line := <-a.logs:
		for _, part := range want {
			if !strings.Contains(line, part) {
				a.t.Fatalf("log %swant %q in it", line, part)
			}
		}
	case <-timer.C:
		a.t.Fatalf("waited 60 s for the line %q", want)
	}
}

func (a *agent) quiet() {
	a.t.Helper()
	select {
	case line := <-a.logs:
		a.t.Fatalf("unwanted log: %s", line)
	default:
	}
}

// sees waits until a target has this instance.
func (a *agent) sees(target string, want gate.Instance) {
	a.t.Helper()
	testutil.Within(a.t, time.Minute, fmt.Sprintf("%s is %+v", target, want), func() bool { return a.Instance(target) == want })
}

// line passes connections on until the test cuts the line.
type line struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &line{Listener: l, to: to, conns: make(map[net.Conn]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { n.pass(c) })
		}
	})
	t.Cleanup(func() { l.Close(); n.cut(); wg.Wait() })
	return n
}

func (n *line) pass(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", n.to)
	if err != nil {
		return
	}
	defer far.Close()
	n.mu.Lock()
	down := n.down
	if !down {
		n.conns[c] = true
	}
	n.mu.Unlock()
	if down {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(far, c)
		far.Close()
	}()
	io.Copy(c, far)
	c.Close()
	<-done
	n.mu.Lock()
	delete(n.conns, c)
	n.mu.Unlock()
}

// cut ends all connections; new ones end at once until mend.
func (n *line) cut() { n.set(true, true) }

func (n *line) mend() { n.set(false, false) }

// blink ends all connections. New connections work.
func (n *line) blink() { n.set(true, false) }

func (n *line) set(end, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	if !end {
		return
	}
	for c := range n.conns {
		c.Close()
	}
}

// code returns the status code of a request with a token.
func (w *world) code(token, method, path string) int {
	w.t.Helper()
	code, _, err := kube.call(token, method, path, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// inPod gives this process the environment of a program in a pod, at the end of the line.
func (w *world) inPod() {
	w.t.Helper()
	host, port, err := net.SplitHostPort(w.line.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
		"POD_NAME": "", "POD_NAMESPACE": "", "POD_UID": "", "HOSTNAME": "node-1",
	} {
		w.t.Setenv(name, value)
	}
}
