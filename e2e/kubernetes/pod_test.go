// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// pod is a pod of a manifest, with every state that the API server reported.
type pod struct {
	t               *testing.T
	namespace, name string

	mu   sync.Mutex
	seen []state // the oldest first
}

// state is the state of a pod that the API server reported at one moment.
type state struct {
	at   time.Time
	gone bool // the pod does not exist any more

	Status struct {
		PodIP      string
		Conditions []struct{ Type, Status string }
		Native     []container `json:"initContainerStatuses"`
		Containers []container `json:"containerStatuses"`
	}
}

// container is the status of a container.
type container struct {
	Name, ContainerID string
	Started           bool
	RestartCount      int
	State, LastState  struct {
		Running    *struct{}
		Terminated *struct {
			ExitCode int
			Reason   string
		}
		Waiting *struct{ Reason string }
	}
}

// container returns the status of a container; empty if there is none yet.
func (s state) container(name string) container {
	for _, c := range append(s.Status.Native, s.Status.Containers...) {
		if c.Name == name {
			return c
		}
	}
	return container{}
}

// ready reports whether the pod has the condition Ready, without which its services leave it out.
func (s state) ready() bool { return s.condition("Ready") == "True" }

// condition returns the status of the condition of a type; empty if there is none.
func (s state) condition(name string) string {
	for _, c := range s.Status.Conditions {
		if c.Type == name {
			return c.Status
		}
	}
	return ""
}

var namespaces atomic.Int32 // the number of namespaces

// edited returns an example with replacements. It fails the test if an old text is missing.
func edited(t *testing.T, example string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(examples + example)
	if err != nil {
		t.Fatal(err)
	}
	return replaced(t, string(text), replace...)
}

// replaced returns a manifest with replacements. It fails the test if an old text is missing.
func replaced(t *testing.T, manifest string, replace ...string) string {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(manifest, replace[i]) {
			t.Fatalf("%q is not in the manifest:\n%s", replace[i], manifest)
		}
		manifest = strings.ReplaceAll(manifest, replace[i], replace[i+1])
	}
	return manifest
}

// deploy creates the objects of a manifest in a namespace of their own, and binds the pod to the node.
func deploy(t *testing.T, manifest string) *pod {
	t.Helper()
	return deployIn(t, fmt.Sprintf("e2e-%d", namespaces.Add(1)), manifest)
}

func deployIn(t *testing.T, namespace, manifest string) *pod {
	t.Helper()
	p := &pod{t: t, namespace: namespace}
	p.must("POST", "/api/v1/namespaces", `{"metadata": {"name": "`+namespace+`"}}`)
	p.must("POST", p.path("serviceaccounts"), `{"metadata": {"name": "default"}}`)
	ca, err := json.Marshal(string(kube.ca))
	if err != nil {
		t.Fatal(err)
	}
	p.must("POST", p.path("configmaps"), `{"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": `+string(ca)+`}}`)
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		p.create(document)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.watch(ctx) })
	t.Cleanup(func() {
		if t.Failed() {
			p.explain()
		}
		cancel()
		wg.Wait()
		kube.call("DELETE", p.path("pods/"+p.name), `{"gracePeriodSeconds": 0}`)
	})
	p.must("POST", p.path("pods/"+p.name+"/binding"), `{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "`+p.name+`"}, "target": {"kind": "Node", "name": "`+nodeName+`"}}`)
	return p
}

// create creates the object of a document.
func (p *pod) create(document string) {
	p.t.Helper()
	kind := field(document, "kind")
	switch kind {
	case "Pod":
		p.name = field(document, "  name")
		p.must("POST", p.path("pods"), document)
	case "ConfigMap":
		p.must("POST", p.path("configmaps"), document)
	case "ServiceAccount":
		p.must("POST", p.path("serviceaccounts"), document)
	case "Role", "RoleBinding":
		p.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/"+p.namespace+"/"+strings.ToLower(kind)+"s", document)
	case "ValidatingAdmissionPolicy":
		p.must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", document)
	case "ValidatingAdmissionPolicyBinding":
		p.must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", document)
	default:
		p.t.Fatalf("unknown kind of a document: %q", kind)
	}
}

// field returns the value of the first line with that key.
func field(document, key string) string {
	for line := range strings.Lines(document) {
		if value, ok := strings.CutPrefix(line, key+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (p *pod) path(rest string) string { return "/api/v1/namespaces/" + p.namespace + "/" + rest }

// must sends a request that the API server must accept.
func (p *pod) must(method, path, body string) string {
	p.t.Helper()
	code, answer, err := kube.call(method, path, body)
	if err != nil || code/100 != 2 {
		p.t.Fatalf("%s %s: %d %s (%v)", method, path, code, answer, err)
	}
	return answer
}

// watch records the states that the API server reports until the pod is gone.
func (p *pod) watch(ctx context.Context) {
	resp, err := kube.do(ctx, "GET", p.path("pods?watch=true&fieldSelector=metadata.name="+p.name), "")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for events := json.NewDecoder(resp.Body); ; {
		var event struct {
			Type   string
			Object state
		}
		if err := events.Decode(&event); err != nil {
			if ctx.Err() == nil {
				p.t.Errorf("watch %s/%s: %v", p.namespace, p.name, err)
			}
			return
		}
		event.Object.at, event.Object.gone = time.Now(), event.Type == "DELETED"
		p.mu.Lock()
		p.seen = append(p.seen, event.Object)
		p.mu.Unlock()
	}
}

// since returns the state at a moment, and the states after that moment.
func (p *pod) since(moment time.Time) []state {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := 0
	for i, s := range p.seen {
		if !s.at.After(moment) {
			first = i
		}
	}
	return append([]state(nil), p.seen[first:]...)
}

// now returns the last state.
func (p *pod) now() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == 0 {
		return state{}
	}
	return p.seen[len(p.seen)-1]
}

// await waits for a state and returns the time of the report.
func (p *pod) await(limit time.Duration, what string, ok func(state) bool) time.Time {
	p.t.Helper()
	testutil.Within(p.t, limit, what, func() bool { return ok(p.now()) })
	return p.now().at
}

// get sends a request to the pod: to the application on 8080, to the agent on 9708 and 9709. Without
// an answer the status is 0.
func (p *pod) get(port int, path string) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://%s:%d%s", p.now().Status.PodIP, port, path), http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := hurried.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// hurried makes a connection for each request, because a connection to a dead process gets no answer.
var hurried = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// tell tells the application how to behave.
func (p *pod) tell(what string) {
	p.t.Helper()
	testutil.Within(p.t, time.Minute, "the application is told "+what, func() bool {
		code, _ := p.get(8080, "/be?"+what)
		return code == http.StatusOK
	})
}

// metric returns the value of a series of the agent; -1 if there is none.
func (p *pod) metric(series string) float64 {
	_, body := p.get(9709, "/metrics")
	return value(body, series)
}

// value returns the value of a series among metrics; -1 if there is none.
func value(metrics, series string) float64 {
	v, err := strconv.ParseFloat(testutil.Series(metrics, series), 64)
	if err != nil {
		return -1
	}
	return v
}

// instance returns the ID of the application's instance that the agent sees.
func (p *pod) instance() string {
	var target struct{ Instance struct{ ID string } }
	_, body := p.get(9709, "/api/v1/targets/app")
	if json.Unmarshal([]byte(body), &target) != nil {
		return ""
	}
	return target.Instance.ID
}

// events returns the reasons and messages of all events of the pod.
func (p *pod) events() string {
	var list struct {
		Items []struct{ Reason, Message string }
	}
	if err := json.Unmarshal([]byte(p.must("GET", p.path("events"), "")), &list); err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&all, "%s: %s\n", e.Reason, e.Message)
	}
	return all.String()
}

// explain logs what is known of a pod whose test failed.
func (p *pod) explain() {
	now, _ := json.MarshalIndent(p.now().Status, "", " ")
	p.t.Logf("%s/%s is %s\nevents:\n%s", p.namespace, p.name, now, p.events())
	logs, _ := filepath.Glob("/var/log/pods/" + p.namespace + "_*/*/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		p.t.Logf("%s:\n%s", log, text[max(0, len(text)-6000):])
	}
}

// configure changes the agent's file in the ConfigMap. The kubelet updates the file in the pod.
func (p *pod) configure(file string) {
	p.t.Helper()
	text, err := json.Marshal(file)
	if err != nil {
		p.t.Fatal(err)
	}
	p.must("PATCH", p.path("configmaps/shop-prober"), `{"data": {"prober.yml": `+string(text)+`}}`)
}
