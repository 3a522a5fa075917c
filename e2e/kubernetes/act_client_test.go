// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The exec client runs in the control group of an application that has 20m of CPU, while the
// application's processes use up all 20m. The client is late, gives up, or waits for its turn. The
// agent says that the application is live, and nobody kills the application.
func TestActStarved(t *testing.T) {
	pods := knob(t, podsOfACell, 1)
	if pods == 1 {
		t.Parallel()
	}
	starved := execClient
	starved.file = `targets:
  - name: app # its listener: the kernel answers for a process that waits for the processor
    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 5, failureThreshold: 3}
`
	manifest := replaced(t, starved.manifest(), "    image: fault:1.0\n", "    image: fault:1.0\n      resources: {limits: {cpu: 20m, memory: 64Mi}}\n")
	var wg sync.WaitGroup
	for n := range pods {
		wg.Go(func() {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				p := deploy(t, manifest)
				p.begins()
				p.starves([]int{2, 8, 32}[n%3], 2*time.Minute)
			})
		})
	}
	wg.Wait()
}

// starves makes processes of the application take all its CPU time, and checks that the application
// lives.
func (p *pod) starves(processes int, lasts time.Duration) {
	t := p.t
	t.Helper()
	path := fmt.Sprintf("/fault?kind=hog&n=%d", processes)
	testutil.Within(t, time.Minute, "the application is told", func() bool { code, _ := p.get(8080, path); return code == 200 })
	p.wrote(4*time.Minute, "app", "hogs ")
	before := p.now().container("app")
	periods, throttled := p.throttled()
	testutil.Wait(t, lasts)
	if code, body := p.get(health, live); code != 200 {
		t.Errorf("%s is %d %s", live, code, body)
	}
	now := p.now().container("app")
	if told := strings.Count(p.logs("app"), " SIGTERM "); told > 0 || now.RestartCount > 0 || now.ContainerID != before.ContainerID {
		t.Fatalf("the application was told %d times to end: %+v\n%s", told, now, p.events())
	}
	periodsAfter, throttledAfter := p.throttled()
	if periods, throttled = periodsAfter-periods, throttledAfter-throttled; throttled < periods/2 { // on a busy machine the application gets less than 20m
		t.Errorf("throttled in only %d of %d periods: the application does not starve", throttled, periods)
	}
	metrics := kubeletMetrics(t)
	well, took := theirCount(metrics, p.namespace, "Liveness", "successful"), p.tookAll(metrics)
	t.Logf("%d processes, throttled in %d of %d periods: according to the kubelet, %.0f liveness probes succeeded, %.0f failed, and one took %s on average",
		processes, throttled, periods, well, theirCount(metrics, p.namespace, "Liveness", "failed"), short(took/time.Duration(max(1, well))))
}

// throttled returns in how many periods the application's control group has run, and in how many
// the kernel throttled the group.
func (p *pod) throttled() (periods, throttled int) {
	text, err := os.ReadFile(filepath.Join(groupOf(p.process("app"), "cpu"), "cpu.stat"))
	if err != nil {
		p.t.Fatal(err)
	}
	for name, value := range map[string]*int{"nr_periods": &periods, "nr_throttled": &throttled} {
		_, rest, _ := strings.Cut("\n"+string(text), "\n"+name+" ")
		number, _, _ := strings.Cut(rest, "\n")
		if *value, err = strconv.Atoi(number); err != nil {
			p.t.Fatalf("%s: %v in %s", name, err, text)
		}
	}
	return periods, throttled
}

// tookAll returns the total duration of the kubelet's successful liveness probes.
func (p *pod) tookAll(metrics string) time.Duration {
	return time.Duration(theirSum(metrics, "prober_probe_duration_seconds_sum", `namespace="`+p.namespace+`"`, `probe_type="Liveness"`) * 1e9)
}

// This test measures what the exec client costs: a run by itself, and an exec by a kubelet in an idle
// container.
func TestActClientCost(t *testing.T) {
	measured := knob(t, podsOfACell, 1) > 1
	if !measured {
		t.Parallel()
	}
	once := replaced(t, execClient.manifest(), "periodSeconds: 2\n", "periodSeconds: 1\n")
	none := replaced(t, once, part(t, once, "      livenessProbe:\n        exec:", "      volumeMounts:"), "")
	const seconds = 30
	idle := deploy(t, none)
	idle.begins()
	without := idle.spends(seconds)
	p := deploy(t, once)
	p.begins()

	const runs = 50
	var used, took time.Duration
	for range runs {
		cmd := exec.Command(filepath.Join(os.Getenv(inside), "prober_exporter"), fmt.Sprintf("--health.check=http://%s:%d%s", p.now().Status.PodIP, health, live), "--health.check.fail-open")
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		took += time.Since(began)
		used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	t.Logf("the client by itself: %s ms of CPU, %s ms in all, the mean of %d runs", perExec(used, runs), perExec(took, runs), runs)
	if limit := 10 * time.Millisecond; measured && used/runs > limit {
		t.Errorf("the client takes %v of CPU, want %v at most", used/runs, limit)
	}
	with := p.spends(seconds)
	if with.execs < seconds/2 {
		t.Fatalf("%v execs in %d s", with.execs, seconds)
	}
	t.Logf("an exec by the kubelet, in ms of CPU, the mean of %.0f: the container's control group %s; the shim and what it starts, the client too, %s; containerd %s; the kubelet %s. It took %s ms, says the kubelet",
		with.execs, perExec(with.container-without.container, with.execs), perExec(with.shim-without.shim, with.execs),
		perExec(with.containerd-without.containerd, with.execs), perExec(with.kubelet-without.kubelet, with.execs), perExec(with.took, with.execs))
}

func perExec(d time.Duration, n float64) string { return fmt.Sprintf("%.1f", d.Seconds()*1e3/n) }

// spent has processor times, except for took.
type spent struct {
	execs                                float64
	container, shim, containerd, kubelet time.Duration
	took                                 time.Duration // all execs together
}

// spends returns the processor time of some seconds.
func (p *pod) spends(seconds int) spent {
	t := p.t
	t.Helper()
	app := p.process("app")
	shim, containerd, kubelet := parent(t, app), program(t, "containerd"), program(t, "kubelet")
	look := func() spent {
		metrics := kubeletMetrics(t)
		return spent{
			execs:      theirCount(metrics, p.namespace, "Liveness", "successful"),
			container:  groupTime(t, app),
			shim:       processTime(t, shim),
			containerd: processTime(t, containerd),
			kubelet:    processTime(t, kubelet),
			took:       p.tookAll(metrics),
		}
	}
	before := look()
	testutil.Wait(t, time.Duration(seconds)*time.Second)
	after := look()
	return spent{
		after.execs - before.execs, after.container - before.container, after.shim - before.shim, after.containerd - before.containerd,
		after.kubelet - before.kubelet, after.took - before.took,
	}
}
