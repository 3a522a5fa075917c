// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// shipped is the program as it is shipped, with a configuration of the test.
type shipped struct {
	t   *testing.T
	url string
	log *bytes.Buffer // to be read when it has ended
	// end sends a signal, and waits for the exit code. It does nothing if the program has ended.
	end func(syscall.Signal) (code int)
}

func ship(t *testing.T, configuration string) *shipped {
	t.Helper()
	address := "127.0.0.1:" + testutil.Port(t)
	file := testutil.Write(t, configuration)
	s := &shipped{t: t, url: "http://" + address, log: new(bytes.Buffer)}
	cmd := exec.Command(filepath.Join(bin, "prober_exporter"), "--config.file="+file, "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.end = func(signal syscall.Signal) int {
		cmd.Process.Signal(signal)
		cmd.Wait()
		return cmd.ProcessState.ExitCode()
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil && s.end(syscall.SIGTERM) != 0 {
			t.Errorf("exit code %d after SIGTERM, want 0", cmd.ProcessState.ExitCode())
		}
		if t.Failed() {
			t.Logf("its log:\n%s", s.log)
		}
	})
	return s
}

// shows waits until the metrics hold all of these lines.
func (s *shipped) shows(lines ...string) {
	s.t.Helper()
	testutil.Within(s.t, time.Minute, "metrics "+strings.Join(lines, ", "), func() bool {
		_, metrics := testutil.Get(s.t, s.url+"/metrics")
		for _, line := range lines {
			if !strings.Contains(metrics, line+"\n") {
				return false
			}
		}
		return true
	})
}

func (s *shipped) says(path string, want int) {
	s.t.Helper()
	testutil.Within(s.t, time.Minute, path, func() bool { code, _ := testutil.Get(s.t, s.url+path); return code == want })
}

// A liveness failure of container a makes /live/app 503 in the shipped program. The 503 stays
// when the port answers again, and only the next life, b, ends it: that is one restart. A
// deleted pod is live to the end.
func TestShipped(t *testing.T) {
	w := newWorld(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := ship(t, `targets:
  - name: app
    instance: {source: kubernetes, container: app}
    livenessProbe:
      tcpSocket: {port: `+port+`}
      periodSeconds: 0.1
      failureThreshold: 2
    readinessProbe:
      tcpSocket: {port: `+port+`}
      periodSeconds: 0.1
      failureThreshold: 10
`)
	s.shows(`prober_exporter_source_up{source="kubernetes"} 1`, `prober_target_running{target="app"} 0`)
	s.says("/live/app", 200)
	w.status("Running", "app=a "+runs)
	s.shows(`prober_target_running{target="app"} 1`, `prober_target_info{instance_id="containerd://a",source="kubernetes",target="app"} 1`,
		`prober_probe_success{probe_type="Liveness",target="app"} 1`)
	s.says("/live/app", 200)

	l.Close()
	s.says("/live/app", 503)
	l, err = new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.shows(`prober_probe_held{probe_type="Liveness",target="app"} 1`)
	w.status("Running", "app=a "+ended("a", 137))
	s.shows(`prober_target_running{target="app"} 0`, `prober_target_restarts_total{target="app"} 0`)
	s.says("/live/app", 200) // an instance that does not run stays live
	w.status("Running", "app=b "+later)
	s.shows(`prober_target_running{target="app"} 1`, `prober_target_restarts_total{target="app"} 1`,
		`prober_target_info{instance_id="containerd://b",source="kubernetes",target="app"} 1`, `prober_probe_held{probe_type="Liveness",target="app"} 0`)
	s.says("/live/app", 200)

	kube.stopAPI()
	s.shows(`prober_exporter_source_up{source="kubernetes"} 0`, `prober_target_running{target="app"} 1`)
	s.says("/live/app", 200)
	if err := kube.startAPI(); err != nil {
		t.Fatal(err)
	}
	s.shows(`prober_exporter_source_up{source="kubernetes"} 1`)
	s.shows(`prober_target_ready{target="app"} 1`)
	w.must("DELETE", w.core("pods/web-0"), `{"gracePeriodSeconds":30}`)
	testutil.Within(t, time.Minute, "the deletion is seen", func() bool {
		_, body := testutil.Get(t, s.url+"/api/v1/targets/app")
		return strings.Contains(strings.ReplaceAll(body, " ", ""), `"deleting":true`)
	})
	l.Close()
	s.shows(`prober_target_ready{target="app"} 0`) // the agent goes on with readiness, and has seen 10 failures
	if code, body := testutil.Get(t, s.url+"/live/app"); code != 200 {
		t.Errorf("/live/app %d %s while the pod is deleted, want 200", code, body)
	}
}
