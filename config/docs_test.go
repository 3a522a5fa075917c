// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example is a block of YAML in a document.
type example struct {
	line int
	text string // a whole file
}

// examples returns the YAML blocks of a document, except those that another test runs. A block
// after the comment "a target's keys" is a part of a target, and must have a probe: without a
// probe the target could not be loaded.
func examples(t *testing.T, path string) []example {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []example
	var inside, part bool
	previous, number := "", 0
	for line := range strings.Lines(string(data)) {
		number++
		switch {
		case line == "```yaml\n" && strings.HasPrefix(previous, "<!-- run: "):
		case line == "```yaml\n":
			inside, part = true, previous == "<!-- a target's keys -->\n"
			e := example{line: number}
			if part {
				e.text = "targets:\n  - name: example\n"
			}
			found = append(found, e)
		case line == "```\n":
			inside = false
		case inside && part:
			found[len(found)-1].text += "    " + line
		case inside:
			found[len(found)-1].text += line
		}
		previous = line
	}
	return found
}

// Every YAML example of the documentation loads, and is the same after a write and a read.
func TestDocumentedExamples(t *testing.T) {
	env := environment("POD_IP=10.0.0.1\nZONE=a\nTOKEN=s3cret\n")
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, path := range append(documents, "../CONFIGURATION.md") {
		for _, e := range examples(t, path) {
			loaded++
			cfg, _, err := Load("example", []byte(e.text), env)
			if err != nil {
				t.Errorf("%s:%d: %v\n%s", path, e.line, err, e.text)
				continue
			}
			checkYAML(t, cfg)
		}
	}
	if loaded < 13 {
		t.Errorf("only %d examples", loaded)
	}
}

// The documentation has every key.
func TestDocumentedKeys(t *testing.T) {
	data, err := os.ReadFile("../CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	for key := range strings.FieldsSeq("targets name host ports env labels instance source startupProbe readinessProbe livenessProbe " +
		"startupProbes readinessProbes livenessProbes require probes " +
		"containerPort protocol value exec httpGet tcpSocket grpc heartbeat file maxAgeSeconds initialDelaySeconds timeoutSeconds periodSeconds unhealthyPeriodSeconds successThreshold " +
		"failureThreshold terminationGracePeriodSeconds command path port scheme httpHeaders service mode " +
		"maxHoldSeconds refreshSeconds pidFile match container label socket " +
		"restart signal docker systemd stopSignal unit backOff maxSeconds resetSeconds initialSeconds limit restarts seconds dryRun " +
		"kubernetes podConditions events type state " +
		"tlsConfig caFile certFile keyFile serverName insecureSkipVerify minVersion valueFile prefix " +
		"expect statusCodes bodyMatches bodyDoesNotMatch headers matches") {
		if text := string(data); !strings.Contains(text, "\n"+key+":") && !strings.Contains(text, "[ "+key+":") {
			t.Errorf("%s is not documented", key)
		}
	}
}
