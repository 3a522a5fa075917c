// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// runs lists, for each document, the marks of the examples that tests of this package run.
// Tests of package config load all other YAML of the documents.
var runs = map[string][]string{
	"README.md":          {"pod", "prometheus"},
	"docs/kubernetes.md": {"client", "imagevolume", "members", "pod", "several", "targets"},
}

// examples returns the marked examples of a document.
func examples(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- run: (\\w+) -->\n```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// Tests of this package run every example that a document marks to be run. All YAML of the
// README is marked.
func TestExamplesAreRun(t *testing.T) {
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(documents, "README.md", "CONFIGURATION.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		marks := slices.Sorted(maps.Keys(examples(t, path)))
		if !slices.Equal(marks, runs[path]) || strings.Count(string(text), "<!-- run:") != len(marks) {
			t.Errorf("%s marks %q to be run, tests run %q", path, marks, runs[path])
		}
		if blocks := strings.Count(string(text), "```yaml"); path == "README.md" && blocks != len(marks) {
			t.Errorf("%s has %d YAML examples, %d of them are marked to be run", path, blocks, len(marks))
		}
	}
}

// The README's pod asks an agent that runs the file of its ConfigMap, beside a healthy
// application: every probe of the pod gets 200.
func TestReadmePod(t *testing.T) {
	file, pod := split(t, examples(t, "README.md")["pod"])
	askAsPod(t, pod, file)
}

// The pod of docs/kubernetes.md gets 200 for every probe, too.
func TestDocumentedPod(t *testing.T) {
	file, pod := split(t, examples(t, "docs/kubernetes.md")["pod"])
	askAsPod(t, pod, file)
}

// In the example with several targets, each container asks for its own target.
func TestSeveralContainers(t *testing.T) {
	all := examples(t, "docs/kubernetes.md")
	askAsPod(t, all["several"], strings.ReplaceAll(all["targets"], "6379", "8080"))
}

// split returns the configuration and the pod of a manifest that begins with a ConfigMap.
func split(t *testing.T, manifest string) (file, pod string) {
	t.Helper()
	first, pod, ok := strings.Cut(manifest, "\n---\n")
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(first), &configMap); err != nil || !ok {
		t.Fatalf("no ConfigMap and a pod (%v) in\n%s", err, manifest)
	}
	return configMap.Data["prober.yml"], pod
}

// askAsPod starts an agent with a file and an application on the file's port 8080, and asks the
// questions of a pod's probes.
func askAsPod(t *testing.T, manifest, file string) *agenttest.Agent {
	t.Helper()
	app := agenttest.NewApp(t)
	a := start(t, agenttest.Flags(testutil.Write(t, strings.ReplaceAll(file, "8080", app.Port)), "--config.fail-open", "--config.enable-auto-reload")...)

	type probe struct {
		HTTPGet *struct {
			Path string
			Port any
		} `yaml:"httpGet"`
	}
	type container struct {
		Args           []string
		StartupProbe   probe `yaml:"startupProbe"`
		ReadinessProbe probe `yaml:"readinessProbe"`
		LivenessProbe  probe `yaml:"livenessProbe"`
	}
	var pod struct {
		Spec struct {
			InitContainers []container `yaml:"initContainers"`
			Containers     []container
		}
	}
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if p.HTTPGet == nil {
				continue
			}
			asked++
			a.Says(a.Health+p.HTTPGet.Path, 200, "ok")
			if _, body := testutil.Get(t, a.Health+p.HTTPGet.Path); strings.Contains(body, "unknown target") {
				t.Errorf("%s asks for a target that is not in the file: %s", p.HTTPGet.Path, body)
			}
			if port := fmt.Sprint(p.HTTPGet.Port); port != "health" && port != "9708" {
				t.Errorf("%s is asked on port %s, want the health listener", p.HTTPGet.Path, port)
			}
		}
		if _, code, done := parse(c.Args, os.Stderr); done {
			t.Errorf("the agent's arguments are not flags: exit %d", code)
		}
	}
	if asked < 3 {
		t.Errorf("the pod has %d probes, want 3 at least", asked)
	}
	return a
}

// The README's scrape configuration is YAML that names the agent's port.
func TestReadmeScrape(t *testing.T) {
	var scrape struct {
		Configs []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(examples(t, "README.md")["prometheus"]), &scrape); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(scrape.Configs[0].Static[0].Targets[0])
	if o, _, _ := parse(nil, os.Stderr); err != nil || (*o.Web.WebListenAddresses)[0] != ":"+port {
		t.Errorf("the scrape asks port %q (%v), the agent listens on %v", port, err, *o.Web.WebListenAddresses)
	}
}

// The parity page has no empty cell, and every test that the page names exists.
func TestParityPage(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/parity.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| rule") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			t.Errorf("line %d has %d cells, want 4", i+1, len(cells))
			continue
		}
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("line %d has an empty cell", i+1)
			}
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("line %d names no test", i+1)
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("line %d names %s, which does not exist", i+1, name[1])
			}
		}
	}
	if rows < 80 {
		t.Errorf("the test found only %s rows", strconv.Itoa(rows))
	}
}

// The parts of examples/kubernetes/readiness-gate.yaml agree: the agent's file loads, and its
// condition is the pod's readiness gate and the one that the policy lets through. All else of
// the pod is that of pod.yaml.
func TestReadinessGateExample(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/readiness-gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole, pod, _ := strings.Cut(string(text), "\n---\napiVersion: v1\nkind: Pod\n")
	_, configMap, _ := strings.Cut(whole, "kind: ConfigMap\n")
	var file struct{ Data map[string]string }
	var gates struct {
		Spec struct {
			ReadinessGates []struct {
				ConditionType string `yaml:"conditionType"`
			} `yaml:"readinessGates"`
		}
	}
	if err := errors.Join(yaml.Unmarshal([]byte(configMap), &file), yaml.Unmarshal([]byte(pod), &gates)); err != nil {
		t.Fatal(err)
	}
	cfg, notices, err := config.Load("prober.yml", []byte(file.Data["prober.yml"]), os.LookupEnv)
	if err != nil || cfg.Kubernetes == nil || len(cfg.Kubernetes.PodConditions) != 1 || len(gates.Spec.ReadinessGates) != 1 {
		t.Fatalf("the file is %+v (%v, %v), the gates are %+v", cfg, notices, err, gates)
	}
	is := cfg.Kubernetes.PodConditions[0].Type
	if is != gates.Spec.ReadinessGates[0].ConditionType || !strings.Contains(whole, `expression: "'`+is+`'"`) {
		t.Errorf("the condition is %s, the gates are %+v", is, gates.Spec.ReadinessGates)
	}

	plain, err := os.ReadFile("examples/kubernetes/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var gated, without any
	if err := errors.Join(yaml.Unmarshal([]byte("kind: Pod\n"+pod), &gated), yaml.Unmarshal([]byte(strings.SplitAfter(string(plain), "\n---\n")[1]), &without)); err != nil {
		t.Fatal(err)
	}
	spec := gated.(map[string]any)["spec"].(map[string]any)
	for _, key := range []string{"serviceAccountName", "automountServiceAccountToken", "readinessGates"} {
		delete(spec, key)
	}
	delete(gated.(map[string]any)["metadata"].(map[string]any), "namespace")
	volumes := spec["volumes"].([]any)
	spec["volumes"] = volumes[:1]
	agent := spec["initContainers"].([]any)[0].(map[string]any)
	agent["volumeMounts"] = agent["volumeMounts"].([]any)[:1]
	if where := beyond(gated, without); where != "" {
		t.Errorf("the pod has %s, pod.yaml has not", where)
	}
}
