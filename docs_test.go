// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// examples returns the examples of README.md by what they are marked as.
func examples(t *testing.T) map[string]string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- run: (\\w+) -->\n```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		found[m[1]] = m[2]
	}
	if blocks := strings.Count(string(readme), "```yaml"); blocks != len(found) {
		t.Errorf("README.md has %d YAML examples, %d of them are marked to be run", blocks, len(found))
	}
	return found
}

// The README's pod asks an agent that runs the README's file, beside an application
// that is well: every probe of it answers 200.
func TestReadmePod(t *testing.T) {
	all := examples(t)
	askAsPod(t, all["pod"], all["config"])
}

// askAsPod starts an agent with a file and an application on its port 8080, and asks
// what the probes of a pod ask.
func askAsPod(t *testing.T, manifest, file string) {
	t.Helper()
	app := agenttest.NewApp(t)
	a := start(t, agenttest.Flags(testutil.Write(t, strings.ReplaceAll(file, "8080", app.Port)), "--config.fail-open", "--config.enable-auto-reload")...)

	type probe struct {
		HTTPGet struct {
			Path string
			Port any
		} `yaml:"httpGet"`
	}
	type container struct {
		Args           []string
		Ports          []struct{ Name string }
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
	sidecar, probed := pod.Spec.InitContainers[0], pod.Spec.Containers[0]
	for _, p := range []probe{sidecar.StartupProbe, sidecar.LivenessProbe, probed.StartupProbe, probed.ReadinessProbe, probed.LivenessProbe} {
		a.Says(a.Health+p.HTTPGet.Path, 200, "ok")
		if port := fmt.Sprint(p.HTTPGet.Port); port != "health" && port != "9708" {
			t.Errorf("%s is asked on port %s, want the health listener", p.HTTPGet.Path, port)
		}
	}
	if _, code, done := parse(sidecar.Args, os.Stderr); done {
		t.Errorf("the agent's arguments are not flags: exit %d", code)
	}
}

// The README's pod and file are those of examples/kubernetes/pod.yaml, which real kubelets
// run, but for the labels and the securityContext there.
func TestReadmePodIsTheExample(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	var configMap struct{ Data map[string]string }
	var want, got map[string]any
	all := examples(t)
	for _, err := range []error{
		yaml.Unmarshal([]byte(first), &configMap), yaml.Unmarshal([]byte(second), &want), yaml.Unmarshal([]byte(all["pod"]), &got),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if file := configMap.Data["prober.yml"]; file != strings.TrimSpace(all["config"]) {
		t.Errorf("the example's file is\n%s", file)
	}
	delete(want["metadata"].(map[string]any), "labels")
	delete(want["spec"].(map[string]any)["initContainers"].([]any)[0].(map[string]any), "securityContext")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the README's pod is\n%v\nthe example's\n%v", got, want)
	}
}

// The README's scrape configuration is YAML that names the agent's port.
func TestReadmeScrape(t *testing.T) {
	var scrape struct {
		Configs []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(examples(t)["prometheus"]), &scrape); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(scrape.Configs[0].Static[0].Targets[0])
	if o, _, _ := parse(nil, os.Stderr); err != nil || (*o.Web.WebListenAddresses)[0] != ":"+port {
		t.Errorf("the scrape asks port %q (%v), the agent listens on %v", port, err, *o.Web.WebListenAddresses)
	}
}

// The parity page has no empty cell, and every test that it names exists.
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
		t.Errorf("only %s rows were looked at", strconv.Itoa(rows))
	}
}
