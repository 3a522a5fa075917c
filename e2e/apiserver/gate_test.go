// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// gateExample is the pod whose readiness the agent writes, with all that it needs.
const gateExample = "../../examples/kubernetes/readiness-gate.yaml"

// gated is a namespace with the objects of the example: the pod shop on a node that is not
// there, with the files of its service account.
type gated struct {
	*world
	token string
}

// gateType is the condition of the example.
const gateType = "example.org/shop-ready"

// newGate makes one, and waits until the Role and the policy hold.
func newGate(t *testing.T) *gated {
	t.Helper()
	worlds++
	g := &gated{world: &world{t: t, namespace: fmt.Sprintf("shop-%d", worlds), line: newLine(t, kube.addr)}}
	g.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+g.namespace+`"}}`)
	for _, o := range g.example() {
		g.create(o)
	}
	g.uid = between(g.must("GET", g.core("pods/shop"), ""), `"uid":"`, `"`)
	g.file("ca.crt", string(kube.ca))
	g.file("namespace", g.namespace)
	g.token = g.accountToken("shop-prober", "Pod", "shop", g.uid)
	g.file("token", g.token)
	g.inPod()
	t.Cleanup(func() {
		for _, pod := range []string{"shop", "other"} {
			kube.call(kube.admin, "DELETE", g.core("pods/"+pod), `{"gracePeriodSeconds":0}`)
		}
	})
	tries := 0
	testutil.Within(t, time.Minute, "the policy and the Role hold", func() bool {
		tries++ // a patch that changes nothing is refused by nobody
		code, _ := g.patch(g.token, "shop", fmt.Sprintf(`{"metadata":{"labels":{"tried":"%d"}}}`, tries))
		return code == http.StatusUnprocessableEntity
	})
	return g
}

// example returns the objects of the example, as JSON, for this namespace.
func (g *gated) example() []string {
	g.t.Helper()
	text, err := os.ReadFile(gateExample)
	if err != nil {
		g.t.Fatal(err)
	}
	return objects(g.t, strings.ReplaceAll(string(text), "namespace: shop", "namespace: "+g.namespace))
}

// create creates an object. The policy and its binding are there once for all namespaces.
func (g *gated) create(body string) {
	g.t.Helper()
	var o object
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		g.t.Fatal(err)
	}
	root, place := "/apis/"+o.APIVersion, strings.ToLower(o.Kind)+"s"
	switch o.Kind {
	case "ValidatingAdmissionPolicy":
		place = "validatingadmissionpolicies"
	case "Pod":
		body = strings.Replace(body, `"spec":{`, `"spec":{"nodeName":"node-1",`, 1)
	}
	if !strings.Contains(o.APIVersion, "/") {
		root = "/api/" + o.APIVersion
	}
	if o.Metadata.Namespace != "" {
		root += "/namespaces/" + o.Metadata.Namespace
	}
	code, answer, err := kube.call(kube.admin, http.MethodPost, root+"/"+place+"?fieldValidation=Strict", body)
	if err != nil || code/100 != 2 && (code != http.StatusConflict || o.Metadata.Namespace != "") {
		g.t.Fatalf("create %s: %d %s (%v)", body, code, answer, err)
	}
}

// patch patches the status of a pod by a strategic merge.
func (g *gated) patch(token, pod, body string) (code int, answer string) {
	g.t.Helper()
	return g.ask(token, http.MethodPatch, g.core("pods/"+pod+"/status"), body)
}

// ask makes a request with a body as the owner of a token.
func (g *gated) ask(token, method, path, body string) (code int, answer string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, "https://"+kube.addr+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	resp, err := kube.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// condition is one of a pod.
type condition struct {
	Type, Status, Reason, Message string
	LastTransitionTime            time.Time
}

// has returns the agent's condition in a pod; the zero value if there is none.
func has(t *testing.T, pod string) condition {
	t.Helper()
	var p struct {
		Status struct{ Conditions []condition }
	}
	if err := json.Unmarshal([]byte(pod), &p); err != nil {
		t.Fatalf("%v in %s", err, pod)
	}
	i := slices.IndexFunc(p.Status.Conditions, func(c condition) bool { return c.Type == gateType })
	if i < 0 {
		return condition{}
	}
	return p.Status.Conditions[i]
}

// condition returns the agent's condition as the API server has it.
func (g *gated) condition() condition {
	g.t.Helper()
	return has(g.t, g.must("GET", g.core("pods/shop"), ""))
}

// becomes waits until the condition has a status and a reason.
func (g *gated) becomes(status, reason string) condition {
	g.t.Helper()
	var c condition
	testutil.Within(g.t, time.Minute, "the condition is "+status+", "+reason, func() bool {
		c = g.condition()
		return c.Status == status && c.Reason == reason
	})
	return c
}

const ofTheAgent = `{"status":{"conditions":[{"type":"` + gateType + `","status":"True","lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`

// With the Role and the policy of the example the agent's token may write its condition and
// events, and 18 other requests are refused.
func TestGatePolicy(t *testing.T) {
	g := newGate(t)
	g.must("PATCH", g.core("pods/shop/status"), `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"},{"type":"example.org/other","status":"False"}]}}`)
	for _, body := range []string{
		ofTheAgent,
		strings.Replace(ofTheAgent, `"True"`, `"False","reason":"ProbesFailing","message":"app: readiness: timeout (3/3)"`, 1),
		strings.Replace(ofTheAgent, `{"status"`, `{"metadata":{"uid":"`+g.uid+`"},"status"`, 1),
	} {
		if code, answer := g.patch(g.token, "shop", body); code != 200 {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	event := `{"metadata":{"name":"shop.1"},"involvedObject":{"kind":"Pod","namespace":"` + g.namespace + `","name":"shop"},"reason":"Unhealthy","type":"Warning"}`
	if code, answer := g.ask(g.token, "POST", g.core("events"), event); code != 201 {
		t.Errorf("an event: %d %s", code, answer)
	}
	if code, answer := g.ask(g.token, "PATCH", g.core("events/shop.1"), `{"count":2}`); code != 200 {
		t.Errorf("its count: %d %s", code, answer)
	}

	const byPolicy, byRole = http.StatusUnprocessableEntity, http.StatusForbidden
	for _, refused := range []struct {
		what, body string
	}{
		{"a label", `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`},
		{"a label less", `{"metadata":{"labels":null}}`},
		{"an annotation", `{"metadata":{"annotations":{"a":"b"}}}`},
		{"a finalizer", `{"metadata":{"finalizers":["example.org/never"]}}`},
		{"the phase", `{"status":{"phase":"Failed"}}`},
		{"the status of a container", `{"status":{"containerStatuses":[{"name":"app","image":"i","imageID":"i","ready":true,"restartCount":0}]}}`},
		{"a condition of the kubelet", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
		{"a condition of another", `{"status":{"conditions":[{"type":"example.org/other","status":"True"}]}}`},
		{"a condition less", `{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}`},
		{"a new condition", `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True"}]}}`},
		{"no conditions", `{"status":{"conditions":null}}`},
		{"a label beside the condition", strings.Replace(ofTheAgent, `{"status"`, `{"metadata":{"labels":{"a":"b"}},"status"`, 1)},
	} {
		if code, answer := g.patch(g.token, "shop", refused.body); code != byPolicy || !strings.Contains(answer, "ValidatingAdmissionPolicy 'shop-prober'") {
			t.Errorf("%s: %d %s", refused.what, code, answer)
		}
	}

	other := strings.Replace(g.example()[len(g.example())-1], `"name":"shop"`, `"name":"other"`, 1)
	g.create(other)
	for _, refused := range []struct{ method, path, body string }{
		{"PATCH", "pods/other/status", ofTheAgent},
		{"PATCH", "pods/shop", `{"metadata":{"labels":{"a":"b"}}}`},
		{"PUT", "pods/shop/status", "{}"}, // small: the API server reads no body of a request that it refuses
		{"DELETE", "pods/shop", ""},
		{"GET", "secrets", ""},
		{"POST", "pods", "{}"},
	} {
		if code, answer := g.ask(g.token, refused.method, g.core(refused.path), refused.body); code != byRole {
			t.Errorf("%s %s: %d %s", refused.method, refused.path, code, answer)
		}
	}
	g.policyAlone(byPolicy)
	if c := g.condition(); c.Status != "True" {
		t.Errorf("the condition is %+v", c)
	}
}

// policyAlone shows that, where the names of pods are not known and the Role names none, the
// policy still refuses other pods, and the token of another pod.
func (g *gated) policyAlone(want int) {
	g.t.Helper()
	role := g.must("GET", g.rbac("roles/shop-prober"), "")
	g.must("PUT", g.rbac("roles/shop-prober"), strings.NewReplacer(`,"resourceNames":["shop"]`, "", `"pods/status"`, `"pods/status","pods"`).Replace(role))
	testutil.Within(g.t, time.Minute, "the Role has no names", func() bool { return g.code(g.token, "GET", g.core("pods/other")) == 200 })
	uid := between(g.must("GET", g.core("pods/other"), ""), `"uid":"`, `"`)
	theirs := g.accountToken("shop-prober", "Pod", "other", uid)
	if code, answer := g.patch(theirs, "other", ofTheAgent); code != 200 {
		g.t.Errorf("the other pod, with its own token: %d %s", code, answer)
	}
	for _, refused := range []struct{ token, path string }{
		{g.token, "pods/other/status"},
		{theirs, "pods/shop/status"},
		{g.accountToken("shop-prober", "", "", ""), "pods/shop/status"}, // of no pod
		{g.token, "pods/shop"},
	} {
		body := strings.Replace(ofTheAgent, `"True"`, `"False"`, 1)
		if refused.path == "pods/shop" {
			body = `{"metadata":{"labels":{"a":"b"}}}`
		}
		if code, answer := g.ask(refused.token, "PATCH", g.core(refused.path), body); code != want {
			g.t.Errorf("without names in the Role, PATCH %s: %d %s", refused.path, code, answer)
		}
	}
}
