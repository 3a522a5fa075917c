// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// rewritten returns the rewritten manifest.
func rewritten(t *testing.T, manifest string) string {
	t.Helper()
	out, _, err := Convert("pod.yaml", []byte(manifest), Options{Rewrite: true, Image: image})
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return string(out)
}

// The pods and files of the examples are the application's pods as Convert rewrites them, except for
// a label by which a PodMonitor selects, and the user in each securityContext, which the image sets.
func TestExample(t *testing.T) {
	for way, name := range map[Restart]string{ByProbe: "pod.yaml", ByExec: "exec-client.yaml", BySignal: "signal.yaml"} {
		checkExample(t, way, name)
	}
}

func checkExample(t *testing.T, way Restart, name string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	archive := testutil.ReadArchive(t, "testdata/example.txtar")
	manifest := archive.Find("manifest")
	if way == BySignal {
		const told = "      image: shop:1.0\n"
		manifest = strings.Replace(manifest, told, told+"      command: [/bin/shop]\n      securityContext: {runAsUser: 1000}\n", 1)
	}
	out, _, err := Convert("pod.yaml", []byte(manifest), Options{Rewrite: true, Restart: way, Image: image})
	if err != nil {
		t.Fatal(err)
	}
	documents := split(string(out))
	if len(documents) != 2 {
		t.Fatalf("%d documents", len(documents))
	}
	got, want := parsed(documents[1].text), parsed(second)
	without := func(in *yaml.Node, key string) {
		i := index(in, key)
		in.Content = slices.Delete(in.Content, i, i+2)
	}
	without(lookup(want, "metadata"), "labels")
	for _, pod := range []*yaml.Node{got, want} {
		for _, k := range lookup(lookup(pod, "spec"), "initContainers").Content {
			without(k, "securityContext")
		}
	}
	if !equal(got, want) {
		t.Errorf("the pod is\n%swant\n%s", documents[1].text, second)
	}
	var made, example struct{ Data map[string]string }
	for text, into := range map[string]any{documents[0].text: &made, first: &example} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := shown(t, made.Data["prober.yml"]), shown(t, example.Data["prober.yml"]); got != want {
		t.Errorf("the configuration is\n%swant\n%s", got, want)
	}
}

// shown returns a configuration with its defaults.
func shown(t *testing.T, text string) string {
	t.Helper()
	out, err := loads(t, text).YAML()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const simple = `apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
  - name: app
    image: shop:1
    readinessProbe:
      tcpSocket: {port: 80}
`

// The rewritten manifest has the line ends of the file, whatever system wrote the file. A last line
// without an end gets an end.
func TestLineEnds(t *testing.T) {
	want := rewritten(t, simple)
	if got := rewritten(t, strings.TrimSuffix(simple, "\n")); got != want {
		t.Errorf("without an end:\n%s", got)
	}
	if got := rewritten(t, strings.ReplaceAll(simple, "\n", "\r\n")); got != strings.ReplaceAll(want, "\n", "\r\n") {
		t.Errorf("with CRLF: %q", got)
	}
	if got := rewritten(t, "\ufeff---\n"+simple); got != "\ufeff---\n"+want {
		t.Errorf("with a byte order mark: %q", got)
	}
}

// All lines that are not about a probe or the sidecar stay, in the same order and byte for byte.
func TestNothingElseChanges(t *testing.T) {
	archive := testutil.ReadArchive(t, "testdata/deployment.txtar")
	manifest := archive.Find("manifest")
	left := slices.Collect(strings.Lines(split(rewritten(t, manifest))[1].text))
	var gone []string
	for line := range strings.Lines(split(manifest)[0].text) {
		if i := slices.Index(left, line); i >= 0 {
			left = left[i+1:]
			continue
		}
		gone = append(gone, line)
	}
	if len(gone) != 11 { // the lines of the old probes that the new probes do not have
		t.Errorf("%d lines are missing: %q", len(gone), gone)
	}
}

// The kubelet's startup probe waits as long as the agent's, rounded up to a second, and 30 s more.
func TestStartupThreshold(t *testing.T) {
	for _, c := range []struct {
		delay, period time.Duration
		failures      int
		want          int64
	}{
		{0, 10 * time.Second, 30, 330},
		{5 * time.Second, 3 * time.Second, 3, 44},
		{0, time.Second, 1, 31},
		{0, 250 * time.Millisecond, 3, 31},
		{500 * time.Millisecond, 250 * time.Millisecond, 2, 31},
		{0, time.Second, 1<<31 - 1, 1<<31 - 1},
		{0, time.Second, 1<<31 - 31, 1<<31 - 1},
		{0, time.Second, 1<<31 - 32, 1<<31 - 2},
		{1 << 62, 1 << 62, 1<<31 - 1, 1<<31 - 1},
	} {
		if got := startupThreshold(&config.Probe{InitialDelay: c.delay, Period: c.period, FailureThreshold: c.failures}); got != c.want {
			t.Errorf("%v + %v × %d: %d, want %d", c.delay, c.period, c.failures, got, c.want)
		}
	}
}

// A liveness probe's delay is rounded up to whole seconds, because the API takes nothing else.
func TestDelaySeconds(t *testing.T) {
	for delay, want := range map[time.Duration]int64{time.Nanosecond: 1, time.Second: 1, 2500 * time.Millisecond: 3, (1<<31 - 1) * time.Second: 1<<31 - 1} {
		if got := delaySeconds(&config.Probe{InitialDelay: delay}); got != want {
			t.Errorf("%v: %d, want %d", delay, got, want)
		}
	}
}

// Convert recognizes the agent by its image, whatever the version, and by its usual name in any
// registry.
func TestIsAgent(t *testing.T) {
	for image, want := range map[string]bool{
		"prober-exporter":                         true,
		"prober_exporter@sha256:0":                true,
		"example.org:5000/x/prober-exporter:0.2":  true,
		"example.org/tools/agent:2":               true,
		"example.org/tools/agent@sha256:0":        true,
		"example.org/other/agent:1":               false,
		"example.org/tools/agents:1":              false,
		"example.org/tools/prober-exporter-x:1":   false,
		"example.org:5000/prober-exporter/shop:1": false,
		"": false,
	} {
		if got := isAgent(image, "example.org/tools/agent:1"); got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}

// Aliases that expand to too much, or are nested too deeply, are a mistake.
func TestBombs(t *testing.T) {
	bomb := simple + "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
	for i := range 8 {
		name := string(rune('1' + i))
		last := string(rune('0' + i))
		bomb += "x" + name + ": &x" + name + " [" + strings.Repeat("*x"+last+", ", 10) + "]\n"
	}
	deep := simple + "x: " + strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	for manifest, want := range map[string]string{bomb: "too many values", deep: "nested too deeply"} {
		if _, _, err := Convert("f", []byte(manifest), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
