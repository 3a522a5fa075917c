// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// The example of a job of cron: the target is not live until the command line of the job has
// succeeded.
func TestCronExample(t *testing.T) {
	const volatile = "/var/lib/backup"
	dir := t.TempDir()
	here := func(file, expression string) string {
		return strings.ReplaceAll(strings.Join(found(t, file, expression), ""), volatile, dir)
	}
	job := here("examples/systemd/backup.cron", `(?m)^\S+ \S+ \S+ \S+ \S+ root (.*)$`)
	file := testutil.Write(t, here("examples/systemd/backup.yml", `(?s)^(.*)$`))
	a := start(t, agenttest.Flags(file, "--web.enable-lifecycle")...)
	a.Says(a.Health+"/live/backup", http.StatusServiceUnavailable, "liveness: no_heartbeat (1/1)")
	for _, status := range []int{1, 0} {
		script := fmt.Sprintf("#!/bin/sh\nexit %d\n", status)
		if err := os.WriteFile(filepath.Join(dir, "backup"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", job)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); (err == nil) != (status == 0) {
			t.Fatalf("%s: %v: %s", job, err, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "done")); (err == nil) != (status == 0) {
			t.Errorf("a job that ends with %d: %v", status, err)
		}
	}
	testutil.Do(t, http.MethodPost, a.Web+"/api/v1/targets/backup/probe")
	a.Says(a.Health+"/live/backup", http.StatusOK, "ok")
}
