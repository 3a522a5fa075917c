// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/agent"
	"github.com/prober-exporter/prober_exporter/config"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: app
        image: shop:1.0
        readinessProbe:
          httpGet: {path: /ready, port: 8080}
`

// pod runs a conversion of what is on stdin.
func pod(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	o, code, done := parse(args, &said)
	if !done {
		code = exitCode(agent.FromPod(o.FromPod, stdin, &out, &said))
	}
	return code, out.String(), said.String()
}

// A manifest from a file or from stdin becomes a configuration that loads, or the
// manifest with an agent of the image that was asked for.
func TestFromPod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(deployment), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--config.from-pod=" + file},
		{"--config.from-pod", file},
		{"--config.from-pod=-"},
		{"--log.level=debug", "--config.from-pod", "-"},
	} {
		code, out, said := pod(t, strings.NewReader(deployment), args...)
		cfg, _, err := config.Load("f", []byte(out), os.LookupEnv)
		if code != exitOK || said != "" || err != nil || len(cfg.Targets) != 1 || cfg.Targets[0].ReadinessProbe.HTTPGet.Path != "/ready" {
			t.Errorf("%q: exit %d, said %q, load %v\n%s", args, code, said, err, out)
		}
	}
	code, out, said := pod(t, nil, "--config.from-pod="+file, "--config.from-pod.rewrite", "--config.from-pod.image=example.org/agent:2")
	for _, part := range []string{"image: example.org/agent:2\n", "path: /ready/app", "kind: ConfigMap", "path: /ready, port: 8080"} {
		if code != exitOK || said != "" || !strings.Contains(out, part) {
			t.Errorf("exit %d, said %q, want %q in\n%s", code, said, part, out)
		}
	}
	code, out, said = pod(t, strings.NewReader(out), "--config.from-pod=-", "--config.from-pod.rewrite")
	if want := "stdin:21: spec.template.spec.initContainers[0].name: the name prober is that of the agent, which may be in this pod already\n"; code != exitError || out != "" || said != want {
		t.Errorf("twice: exit %d, said %q, want %q", code, said, want)
	}
}

// The README's application, rewritten, asks an agent that runs the ConfigMap's file:
// every probe answers 200.
func TestFromPodRuns(t *testing.T) {
	manifest := `apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
  - name: app
    image: shop:1
    ports: [{name: http, containerPort: 8080}]
    startupProbe: {httpGet: {path: /healthz, port: http}}
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
    livenessProbe: {tcpSocket: {port: http}, initialDelaySeconds: 1}
`
	code, out, said := pod(t, strings.NewReader(manifest), "--config.from-pod=-", "--config.from-pod.rewrite")
	if want := `info: stdin:9: spec.containers[0].startupProbe: a boot that hangs is ended after 60 s instead of 30 s: 30 s are for a start of the agent
info: stdin:11: spec.containers[0].livenessProbe: a dead application is restarted within 61 s instead of 31 s: 30 s are for a restart of the agent
`; code != exitOK || said != want {
		t.Fatalf("exit %d, said %q, want %q", code, said, want)
	}
	file, shop, _ := strings.Cut(out, "---\n")
	var configMap struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal([]byte(file), &configMap); err != nil || !strings.Contains(shop, "configMap: {name: "+configMap.Metadata.Name+"}") {
		t.Fatalf("%v: the ConfigMap is %q in\n%s", err, configMap.Metadata.Name, shop)
	}
	askAsPod(t, shop, configMap.Data["prober.yml"])
}

// The agent can be given other ports; the probes and the hook ask there.
func TestFromPodPorts(t *testing.T) {
	code, out, said := pod(t, strings.NewReader(deployment), "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.health-port=9718", "--config.from-pod.metrics-port=9719")
	for _, part := range []string{
		"- --health.listen-address=:9718\n", "- --web.listen-address=:9719\n", "{name: health, containerPort: 9718}", "{name: metrics, containerPort: 9719}",
		`command: [/bin/prober_exporter, --terminating, "--health.listen-address=:9718"]`, "path: /ready/app, port: 9718",
	} {
		if code != exitOK || said != "" || !strings.Contains(out, part) || strings.Contains(out, "970") {
			t.Errorf("exit %d, said %q, want %q in\n%s", code, said, part, out)
		}
	}
}

// With --config.from-pod.restart=exec a kubelet runs the client, and every flag of the client
// and of the copy exists.
func TestFromPodRestart(t *testing.T) {
	manifest := strings.Replace(deployment, "readinessProbe", "livenessProbe", 1)
	code, out, said := pod(t, strings.NewReader(manifest), "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.restart=exec", "--config.from-pod.health-port=9718")
	if code != exitOK || !strings.Contains(said, "restarted within 35 s instead of 31 s") {
		t.Fatalf("exit %d, said %q", code, said)
	}
	command := regexp.MustCompile(`exec: {command: \[(/prober/.*)\]}`).FindStringSubmatch(out)
	if command == nil || !strings.Contains(out, "args: [--copy-to=/prober]") {
		t.Fatalf("no command in\n%s", out)
	}
	args := strings.Split(strings.ReplaceAll(command[1], `"`, ""), ", ")
	o, _, done := parse(args[1:], io.Discard)
	if done || o.HealthCheck != "http://127.0.0.1:9718/live/app" || !o.HealthCheckFailOpen {
		t.Errorf("%q", args)
	}
	if code, _, said := pod(t, nil, "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.restart=kubelet"); code != exitUsage || !strings.Contains(said, "must be one of probe,exec,signal") {
		t.Errorf("exit %d, said %q", code, said)
	}
}

// brokenPipe is a stdout that nobody reads.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// What cannot be read, converted or written ends with 1, wrong flags with 2; always
// with a line on stderr.
func TestFromPodFails(t *testing.T) {
	if code, out, said := pod(t, strings.NewReader("a: b\n"), "--config.from-pod=-", "--config.from-pod.rewrite"); code != exitError || out != "" || !strings.HasPrefix(said, "stdin:1: has no Pod") {
		t.Errorf("nothing to rewrite: exit %d, said %q, printed %q", code, said, out)
	}
	for arg, want := range map[string]string{
		"--config.from-pod=-":         "stdin:1: has no Pod",
		"--config.from-pod=no-such":   `read config "no-such": no such file or directory: --config.from-pod names the file`,
		"--config.from-pod=testdata/": "read config",
	} {
		if code, out, said := pod(t, strings.NewReader("a: b\n"), arg); code != exitError || out != "" || !strings.HasPrefix(said, want) {
			t.Errorf("%s: exit %d, said %q, want %q", arg, code, said, want)
		}
	}
	if code, _, said := pod(t, io.LimitReader(zeros{}, 17<<20), "--config.from-pod=-"); code != exitError || said != "read stdin: larger than 16 MiB\n" {
		t.Errorf("17 MiB: exit %d, said %q", code, said)
	}
	o, _, _ := parse([]string{"--config.from-pod=-"}, io.Discard)
	var said bytes.Buffer
	if code := exitCode(agent.FromPod(o.FromPod, strings.NewReader(deployment), brokenPipe{}, &said)); code != exitError || said.String() != "broken pipe\n" {
		t.Errorf("exit %d, said %q", code, said.String())
	}
	for _, args := range [][]string{
		{"--config.from-pod="},
		{"--config.from-pod.rewrite"},
		{"--config.from-pod=-", "--config.check"},
		{"--config.from-pod=-", "--health.check=http://127.0.0.1/"},
		{"--config.check", "--health.check=http://127.0.0.1/"},
		{"--config.from-pod=-", "--config.from-pod.image="},
		{"--config.from-pod=-", "--config.from-pod.restart=exec"},
		{"--config.from-pod=-", "--config.from-pod.restart=signal"},
		{"--config.from-pod=-", "--terminating"},
		{"--config.from-pod=-", "--config.from-pod.health-port=0"},
		{"--config.from-pod=-", "--config.from-pod.metrics-port=65536"},
		{"--config.from-pod=-", "--config.from-pod.metrics-port=9708"},
	} {
		if code, _, said := pod(t, nil, args...); code != exitUsage || !strings.HasPrefix(said, "prober_exporter: error: --config.from-pod") {
			t.Errorf("%q: exit %d, said %q", args, code, said)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
