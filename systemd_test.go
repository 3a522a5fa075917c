// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
)

// The rule of polkit in examples/systemd is for the user of the agent's unit and for the units
// that the example restarts, and for nobody and nothing else.
func TestSystemdExample(t *testing.T) {
	cfg, _, err := config.LoadFile("examples/systemd/prober.yml")
	if err != nil {
		t.Fatal(err)
	}
	var restarted []string
	for _, target := range cfg.Targets {
		if target.Restart != nil {
			restarted = append(restarted, target.Restart.Systemd.Unit)
		}
	}
	rule := found(t, "examples/systemd/50-prober_exporter.rules", `"([a-z_-]+)"\s*&&|"([a-z]+\.service)"`)
	user := found(t, "examples/systemd/prober_exporter.service", `(?m)^User=(.*)$`)
	want := slices.Concat(user, []string{"try-restart"}, restarted)
	if len(user) != 1 || len(restarted) == 0 || !slices.Equal(rule, want) {
		t.Errorf("the rule is for %q, want %q", rule, want)
	}
}

// found returns what the groups of an expression find in a file.
func found(t *testing.T, file, expression string) (texts []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1) {
		for _, group := range m[1:] {
			if group != "" {
				texts = append(texts, group)
			}
		}
	}
	return texts
}
