// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// ways are who restarts the containers of a rewritten manifest, and how many of the manifests tell
// enough for it.
var ways = map[string]int{"probe": 20, "exec": 25, "signal": 10}

// rewrite returns what the shipped program makes of a manifest; nothing if it refuses it.
func rewrite(t *testing.T, manifest, way string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "prober_exporter"), "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.restart="+way)
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// object is what of a document says where it goes.
type object struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
}

// objects returns those of a manifest, as JSON; those of a list one by one.
func objects(t *testing.T, manifest string) []string {
	t.Helper()
	var all []string
	dec := yaml.NewDecoder(strings.NewReader(manifest))
	for {
		var doc any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, manifest)
		}
		items := []any{doc}
		if list, ok := doc.(map[string]any); ok && list["kind"] == "List" {
			items = list["items"].([]any)
		}
		for _, item := range items {
			// What is not of a group of this server is nothing to it.
			o, ok := item.(map[string]any)
			if version, known := o["apiVersion"].(string); !ok || !known || strings.HasPrefix(version, "example.com/") {
				continue
			}
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(b))
		}
	}
}

// namespaceWith makes a namespace, unless it is there, in which pods can be created.
func namespaceWith(t *testing.T, name, labels string) {
	t.Helper()
	for _, step := range [][2]string{
		{"/api/v1/namespaces", `{"metadata":{"name":"` + name + `","labels":{` + labels + `}}}`},
		{"/api/v1/namespaces/" + name + "/serviceaccounts", `{"metadata":{"name":"default"}}`},
	} {
		path, body := step[0], step[1]
		code, answer, err := kube.call(kube.admin, http.MethodPost, path, body)
		if err != nil || code != http.StatusConflict && code/100 != 2 {
			t.Fatalf("%s: %d %s (%v)", path, code, answer, err)
		}
	}
}

// dryRun asks the API server to take an object, with all admission, and not to keep it.
func dryRun(t *testing.T, body, namespace string) (code int, answer string) {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return 0, err.Error()
	}
	if o.Metadata.Namespace != "" {
		namespace = o.Metadata.Namespace
		namespaceWith(t, namespace, "")
	}
	root := "/apis/"
	if !strings.Contains(o.APIVersion, "/") {
		root = "/api/"
	}
	code, answer, err := kube.call(kube.admin, http.MethodPost,
		root+o.APIVersion+"/namespaces/"+namespace+"/"+strings.ToLower(o.Kind)+"s?dryRun=All&fieldValidation=Strict", body)
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

// What the API server takes, it takes with the agent in it, too, and the ConfigMap
// beside it.
func TestRewrittenManifests(t *testing.T) {
	namespaceWith(t, "rewritten", "")
	for way, least := range ways {
		t.Run(way, func(t *testing.T) { takesRewritten(t, way, least) })
	}
}

func takesRewritten(t *testing.T, way string, least int) {
	refused := 0
	files, err := filepath.Glob("../../config/frompod/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("../../config/frompod/testdata/" + way + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pods, configMaps := 0, 0
	for _, file := range append(files, own...) {
		archive, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifest := between(string(archive), "-- manifest --\n", "\n-- ") + "\n"
		after := rewrite(t, manifest, way)
		if after == "" || after == manifest {
			continue
		}
		name := filepath.Base(file)
		accepted := true
		for _, o := range objects(t, manifest) {
			if code, answer := dryRun(t, o, "rewritten"); code/100 != 2 {
				t.Logf("%s is refused as it is: %s", name, answer)
				accepted = false
				refused++
			}
		}
		for _, o := range objects(t, after) {
			code, answer := dryRun(t, o, "rewritten")
			switch {
			case code/100 != 2 && accepted:
				t.Errorf("%s: %d %s\n%s", name, code, answer, o)
			case code/100 == 2 && strings.Contains(o, `"prober.yml"`):
				configMaps++
			case code/100 == 2 && strings.Contains(answer, "/-/healthy"):
				pods++
			}
		}
	}
	t.Logf("%d workloads with the agent, %d ConfigMaps", pods, configMaps)
	if pods < least || configMaps != pods+refused || refused > 1 {
		t.Errorf("%d workloads with the agent and %d ConfigMaps were taken, %d refused as they were", pods, configMaps, refused)
	}
}

// A pod that the restricted Pod Security Standard lets through still gets through with
// the agent in it.
func TestRewrittenRestricted(t *testing.T) {
	namespaceWith(t, "restricted", `"pod-security.kubernetes.io/enforce":"restricted"`)
	pod := `apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
    - name: app
      image: shop:1
      command: [shop]
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
        runAsNonRoot: true
        runAsUser: 1000
        seccompProfile: {type: RuntimeDefault}
      readinessProbe: {tcpSocket: {port: 80}}
      livenessProbe: {tcpSocket: {port: 80}}
`
	for way := range ways {
		all := objects(t, rewrite(t, pod, way))
		if len(all) != 2 {
			t.Fatalf("%s: %d objects", way, len(all))
		}
		for _, o := range all {
			if code, answer := dryRun(t, o, "restricted"); code/100 != 2 {
				t.Errorf("%s: %d %s", way, code, answer)
			}
		}
	}
	lax := strings.Replace(pod, "{drop: [ALL]}", "{}", 1)
	if code, answer := dryRun(t, objects(t, lax)[0], "restricted"); code != http.StatusForbidden {
		t.Errorf("the namespace restricts nothing: %d %s", code, answer)
	}
}
