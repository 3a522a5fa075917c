// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

func load(t testing.TB, text string) (*Config, []Notice, error) {
	t.Helper()
	return Load("prober.yml", []byte(text), environment(""))
}

// mustLoad returns the only target of a file that must be valid.
func mustLoad(t testing.TB, text string) *Target {
	t.Helper()
	cfg, _, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return &cfg.Targets[0]
}

// If a file cannot be read, or has more than 16 MiB, Read returns one clear error and never a
// part of the file.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{filepath.Join(dir, "none.yml"), "no such file or directory"},
		{dir, "is a directory"},
		{large, "larger than 16 MiB"},
		{"", "no such file or directory"},
	}
	if runtime.GOOS == "linux" {
		tests = append(tests, struct{ path, want string }{"/dev/zero", "larger than 16 MiB"})
	}
	for _, test := range tests {
		data, err := Read(test.path)
		want := fmt.Sprintf("read config %q: %s", test.path, test.want)
		if data != nil || err == nil || err.Error() != want {
			t.Errorf("Read gives %d bytes and %v, want %s", len(data), err, want)
		}
	}
	if _, err := Read(filepath.Join(dir, "none.yml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	if _, _, err := LoadFile(dir); err == nil {
		t.Error("LoadFile loads a directory")
	}
}

// Read reads a file of exactly 16 MiB to its last byte.
func TestReadLargest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prober.yml")
	want := bytes.Repeat([]byte("0123456789abcde\n"), maxFile/16)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
}

// LoadFile substitutes from the environment of the process.
func TestLoadFile(t *testing.T) {
	t.Setenv("CONFIG_TEST_HOST", "h.example")
	path := filepath.Join(t.TempDir(), "prober.yml")
	text := "\uFEFFtargets:\r\n- name: a\r\n  host: ${CONFIG_TEST_HOST}\r\n  livenessProbe: {grpc: {port: 1}}\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, notices, err := LoadFile(path)
	if err != nil || len(notices) != 0 || cfg.Targets[0].Host != "h.example" {
		t.Errorf("%+v, notices %v, error %v", cfg, notices, err)
	}
}

// Of 5,000 mistakes, the error lists the first 1,000 and counts the others. So do notices.
func TestManyMistakes(t *testing.T) {
	_, _, err := load(t, "targets:\n"+strings.Repeat("- 1\n", 5000))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 1001 || lines[999] != "prober.yml:1001: targets[999]: must be a mapping, is a number" || lines[1000] != "… and 4000 more mistakes" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-2:])
	}

	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 1001 {
		fmt.Fprintf(&b, "- {name: t%d, instance: {source: static}, livenessProbe: {initialDelaySeconds: 1, grpc: {port: 1}}}\n", i)
	}
	_, notices, err := load(t, b.String())
	if err != nil || len(notices) != 1001 {
		t.Fatalf("%d notices, error %v", len(notices), err)
	}
	if last := notices[1000]; last.Message != "… and 1 more notices" || last.Line != 1001 || last.File != "prober.yml" {
		t.Errorf("the last notice is %+v", last)
	}
}

// The notices of a file come with its mistakes.
func TestNoticesOfInvalidFile(t *testing.T) {
	cfg, notices, err := load(t, "targets:\n- name: a\n  livenessProbe: {exec: {command: [/no/such]}, periodSeconds: -1}\n")
	if cfg != nil || err == nil || len(notices) != 1 || notices[0].Level != Warn {
		t.Errorf("config %v, notices %v, error %v", cfg, notices, err)
	}
}

// hugeValid returns a file of about size bytes, with as many targets as fit.
func hugeValid(size int) (text []byte, targets int) {
	var b bytes.Buffer
	b.WriteString("targets:\n")
	for b.Len() < size {
		fmt.Fprintf(&b, "  - name: target-%06d\n    host: 10.1.2.3\n    labels: {team: payments}\n"+
			"    readinessProbe:\n      httpGet: {path: /healthz, port: 8080}\n      periodSeconds: 5\n", targets)
		targets++
	}
	return b.Bytes(), targets
}

// loadHuge fails the test if the load takes more than a minute or a gigabyte.
func loadHuge(t *testing.T, text []byte) (*Config, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	cfg, _, err := Load("prober.yml", text, environment(""))
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<30 {
		t.Errorf("allocated %d MB", allocated>>20)
	}
	return cfg, err
}

// 10 MB of targets load, and 16 MiB of targets have no more values than allowed.
func TestHugeValid(t *testing.T) {
	text, targets := hugeValid(huge)
	cfg, err := loadHuge(t, text)
	if err != nil || len(cfg.Targets) != targets {
		t.Fatalf("error %v", err)
	}
	if marks := countMarks(text) * (maxFile / len(text)); marks > maxMarks {
		t.Errorf("the largest such file has %d marks, more than %d", marks, maxMarks)
	}
}

// 10 MB of anything give one error, or a list of a thousand.
func TestHugeGarbage(t *testing.T) {
	fill := func(before, s, after string) []byte {
		return []byte(before + strings.Repeat(s, huge/len(s)) + after)
	}
	for name, test := range map[string]struct {
		text []byte
		want string // the beginning of the error
	}{
		"flow":      {[]byte(strings.Repeat("a,", maxMarks+1)), "prober.yml: has too many values: more than 3000000"},
		"comments":  {[]byte(strings.Repeat("- #\n", maxMarks/2+1)), "prober.yml: has too many values"},
		"brackets":  {fill("targets: ", "[[[[          ", ""), "prober.yml:1: exceeded max depth of 10000"},
		"spaces":    {fill("", "      ", ""), "prober.yml:1: is empty"},
		"text":      {fill("", "lorem ipsum ", ""), "prober.yml:1: must be a mapping, is a string"},
		"zero":      {make([]byte, huge), "prober.yml:1: has the control character U+0000"},
		"quote":     {fill("targets: '", "lorem ", ""), "prober.yml:1: found unexpected end of stream"},
		"keys":      {fill("", "a: bcdefghijkl\n", ""), "prober.yml:2: a: duplicate key, first on line 1"},
		"late":      {fill("- ", "lorem ipsum dolor sit\n  ", ": b: c\n"), "prober.yml:"},
		"mistakes":  {fill("targets:\n", "- 1234567\n", ""), "prober.yml:2: targets[0]: must be a mapping, is a number"},
		"one value": {fill("targets: [{name: ", "a", "}]"), "prober.yml:1: targets[0].name: must begin"},
		"digits":    {fill("targets: [{name: a, livenessProbe: {periodSeconds: ", "1", "}}]"), "prober.yml:1: targets[0].livenessProbe"},
		"exponent":  {fill("targets: [{name: a, livenessProbe: {periodSeconds: 1e", "1", "}}]"), "prober.yml:1: targets[0].livenessProbe"},
		"key":       {fill("targets: [{? ", "a", " : b}]"), "prober.yml:1: targets[0].?: unknown key"},
		"dollars":   {fill("targets: [{name: a, host: \"", "$a", "\"}]"), "prober.yml:1: targets[0].host: must be a host name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadHuge(t, test.text)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("got %.200v, want %s", err, test.want)
			}
			if n := len(err.Error()); n > 200_000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

// A bomb of aliases with the right types gives one error at once.
func TestAliasBomb(t *testing.T) {
	text := "targets:\n- &t\n  name: a\n  env: [" + strings.Repeat("{name: A, value: b}, ", 1000) + "]\n  livenessProbe: {grpc: {port: 1}}\n" +
		strings.Repeat("- *t\n", 100_000)
	start := time.Now()
	_, _, err := load(t, text)
	if err == nil || !strings.HasSuffix(err.Error(), ": the aliases stand for too many values: more than 2000000") {
		t.Errorf("got %.300v", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

// A thousand targets may share their probes through aliases.
func TestManyAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("targets:\n- {name: first, livenessProbe: &p {httpGet: {port: 80, path: /a}, periodSeconds: 1}}\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "- {name: t%d, instance: {source: static}, livenessProbe: *p, readinessProbe: {<<: *p, periodSeconds: 2}}\n", i)
	}
	cfg, _, err := load(t, b.String())
	if err != nil || len(cfg.Targets) != 1001 {
		t.Fatal(err)
	}
	last := cfg.Targets[1000]
	if last.LivenessProbe.Period != time.Second || last.ReadinessProbe.Period != 2*time.Second || last.ReadinessProbe.HTTPGet.Path != "/a" {
		t.Errorf("%+v", last)
	}
}

// Probe and Action agree with the fields.
func TestProbeOfKind(t *testing.T) {
	target := mustLoad(t, "targets:\n- name: a\n  startupProbe: {exec: {command: [x]}}\n  readinessProbe: {httpGet: {port: 1}}\n  livenessProbe: {tcpSocket: {port: 1}}\n")
	for kind, want := range map[gate.Kind]string{gate.Startup: "exec", gate.Readiness: "httpGet", gate.Liveness: "tcpSocket"} {
		if got := target.Probe(kind).Action(); got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
	if target.Probe(gate.NumKinds) != nil || (&Probe{}).Action() != "" || (&Probe{GRPC: &GRPC{}}).Action() != "grpc" {
		t.Error("a missing action has a name")
	}
	if Info.String() != "info" || Warn.String() != "warn" {
		t.Error("levels")
	}
}
