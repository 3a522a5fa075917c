// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
)

// The pod of docs/kubernetes.md is examples/kubernetes/pod.yaml, which real kubelets run. The
// README's pod has parts of exec-client.yaml, which they run, too, and nothing else.
func TestDocumentedPodsAreTheExample(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := examples(t, "docs/kubernetes.md")["pod"]; got != string(text) {
		t.Errorf("docs/kubernetes.md has\n%s", got)
	}
	manifest := func(text string) (documents [3]any) {
		file, pod := split(t, strings.ReplaceAll(text, "port: health", "port: 9708"))
		first, _, _ := strings.Cut(text, "\n---\n")
		for i, document := range []string{first, pod, file} {
			if err := yaml.Unmarshal([]byte(document), &documents[i]); err != nil {
				t.Fatal(err)
			}
		}
		delete(documents[0].(map[string]any), "data") // the example's file has another layout
		return documents
	}
	if text, err = os.ReadFile("examples/kubernetes/exec-client.yaml"); err != nil {
		t.Fatal(err)
	}
	whole, part := manifest(string(text)), manifest(examples(t, "README.md")["pod"])
	for i := range part {
		if where := beyond(part[i], whole[i]); where != "" {
			t.Errorf("the README's pod has %s, the example has not", where)
		}
	}
}

// The application of examples/kubernetes/signal.yaml passes with the agent of the example, which
// may signal the application: the users are the same.
func TestSignalExample(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/signal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, pod := split(t, string(text))
	cfg, _, err := config.Load("f", []byte(file), os.LookupEnv)
	if err != nil || cfg.Targets[0].Restart == nil || cfg.Targets[0].Restart.Signal == nil {
		t.Fatalf("%v: the agent does not signal:\n%s", err, file)
	}
	if ids := regexp.MustCompile(`runAsUser: (\d+)`).FindAllStringSubmatch(pod, -1); len(ids) != 2 || ids[0][1] != ids[1][1] {
		t.Errorf("the users are %q", ids)
	}
	command := regexp.MustCompile(`command: \[(/.*)\]\n`).FindAllStringSubmatch(pod, -1)
	if last := command[len(command)-1][1]; !regexp.MustCompile(cfg.Targets[0].Instance.Match).MatchString(last) {
		t.Errorf("%s does not match %s", cfg.Targets[0].Instance.Match, last)
	}
}

// The pod with the client in docs/kubernetes.md is a part of examples/kubernetes/exec-client.yaml,
// whose application fails by the agent's verdict alone: every flag exists, and the command asks
// for a target of the file. The image volume has the client where the image has the binary.
func TestDocumentedClient(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/exec-client.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := examples(t, "docs/kubernetes.md")
	file, pod := split(t, string(text))
	askAsPod(t, pod, file)
	decode := func(text string) (document any) {
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	if where := beyond(decode(all["client"]), decode(pod)); where != "" {
		t.Errorf("docs/kubernetes.md has %s, the example has not", where)
	}
	image, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for mark, binary := range map[string]string{"client": "/prober/prober_exporter", "imagevolume": "/prober/bin/prober_exporter"} {
		command := regexp.MustCompile(`exec: {command: \[(.*)\]}`).FindStringSubmatch(all[mark])
		if command == nil {
			t.Fatalf("%s has no command", mark)
		}
		args := strings.Split(strings.ReplaceAll(command[1], `"`, ""), ", ")
		o, code, done := parse(args[1:], os.Stderr)
		if done || !o.HealthCheckFailOpen || o.HealthCheck != "http://127.0.0.1:9708/live/app" || args[0] != binary {
			t.Errorf("%s: exit %d, %q", mark, code, args)
		}
	}
	if !strings.Contains(string(image), " /bin/prober_exporter\n") {
		t.Error("the image has the binary elsewhere")
	}
}

// beyond returns where a part of a document has what the whole has not.
func beyond(part, whole any) string {
	switch part := part.(type) {
	case map[string]any:
		all, ok := whole.(map[string]any)
		if !ok {
			break
		}
		for key, value := range part {
			if where := beyond(value, all[key]); where != "" {
				return key + ": " + where
			}
		}
		return ""
	case []any:
		all, _ := whole.([]any)
		for _, value := range part {
			if !slices.ContainsFunc(all, func(in any) bool { return beyond(value, in) == "" }) {
				return fmt.Sprint(value)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(part, whole) {
		return fmt.Sprint(part)
	}
	return ""
}
