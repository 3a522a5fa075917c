// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// example returns the part of pod.yaml from one text up to another.
func example(t *testing.T, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(examples + "pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return part(t, string(text), from, to)
}

// part returns the part of a manifest from one text up to another.
func part(t *testing.T, manifest, from, to string) string {
	t.Helper()
	_, after, ok := strings.Cut(manifest, from)
	between, _, found := strings.Cut(after, to)
	if !ok || !found {
		t.Fatalf("there is no part from %q to %q in\n%s", from, to, manifest)
	}
	return from + between
}

// readmePod returns the manifest of the README.
func readmePod(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "<!-- run: pod -->\n```yaml\n")
	manifest, _, found := strings.Cut(after, "```\n")
	if !ok || !found {
		t.Fatal("the README has no pod")
	}
	return strings.Replace(manifest, "metadata: {name: shop}", "metadata:\n  name: shop", 1)
}

// configuration returns the agent's file in pod.yaml.
func (p *pod) configuration() string {
	p.t.Helper()
	documents := read(p.t, "pod.yaml")
	file, ok := documents[0]["data"].(object)["prober.yml"].(string)
	if !ok {
		p.t.Fatal("no prober.yml in the ConfigMap")
	}
	return file
}

// read returns the documents of an example.
func read(t *testing.T, name string) (documents []object) {
	t.Helper()
	text, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var document object
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	return documents
}

// podMonitor has the keys of a PodMonitor that this test knows. Any other key is an error.
type podMonitor struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Endpoints []struct{ Port, Interval string } `yaml:"podMetricsEndpoints"`
	}
}

// There is no Prometheus Operator here. The test checks that the PodMonitor selects all example pods
// by a label, and the metrics port of their agents by its name.
func TestPodMonitor(t *testing.T) {
	text, err := os.ReadFile(examples + "podmonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var monitor podMonitor
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&monitor); err != nil {
		t.Fatal(err)
	}
	if monitor.APIVersion != "monitoring.coreos.com/v1" || monitor.Kind != "PodMonitor" || len(monitor.Spec.Endpoints) != 1 || len(monitor.Spec.Selector.MatchLabels) == 0 {
		t.Fatalf("the PodMonitor is %+v", monitor)
	}
	for _, name := range []string{"pod.yaml", "classic-sidecar.yaml", "exec-client.yaml", "signal.yaml"} {
		pod := read(t, name)[1]
		labels := pod["metadata"].(object)["labels"].(object)
		for label, value := range monitor.Spec.Selector.MatchLabels {
			if labels[label] != value {
				t.Errorf("%s has the label %s=%v, the PodMonitor selects %q", name, label, labels[label], value)
			}
		}
		ports := map[any]any{}
		spec := pod["spec"].(object)
		all, _ := spec["initContainers"].([]any)
		for _, c := range append(all, spec["containers"].([]any)...) {
			list, _ := c.(object)["ports"].([]any)
			for _, port := range list {
				ports[port.(object)["name"]] = port.(object)["containerPort"]
			}
		}
		if ports[monitor.Spec.Endpoints[0].Port] != 9709 {
			t.Errorf("%s has the ports %v, the PodMonitor wants %q, which is 9709", name, ports, monitor.Spec.Endpoints[0].Port)
		}
	}
}

// The pods give the agent the same file. Two of them give the application the same probes, and
// the third gives it the same readiness probe.
func TestExamplesAgree(t *testing.T) {
	native, classic := read(t, "pod.yaml"), read(t, "classic-sidecar.yaml")
	if !reflect.DeepEqual(native[0], classic[0]) {
		t.Errorf("the ConfigMaps differ: %v and %v", native[0], classic[0])
	}
	ours := native[1]["spec"].(object)["containers"].([]any)[0]
	theirs := classic[1]["spec"].(object)["containers"].([]any)[1]
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("the applications differ: %v and %v", ours, theirs)
	}
	client := read(t, "exec-client.yaml")
	if !reflect.DeepEqual(native[0], client[0]) {
		t.Errorf("the ConfigMaps differ: %v and %v", native[0], client[0])
	}
	sidecar := client[1]["spec"].(object)["initContainers"].([]any)[1]
	if want := native[1]["spec"].(object)["initContainers"].([]any)[0]; !reflect.DeepEqual(sidecar, want) {
		t.Errorf("the agents differ: %v and %v", sidecar, want)
	}
	app := client[1]["spec"].(object)["containers"].([]any)[0].(object)
	if got, want := app["readinessProbe"], ours.(object)["readinessProbe"]; !reflect.DeepEqual(got, want) {
		t.Errorf("the readiness probes differ: %v and %v", got, want)
	}
}
