// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// repeatEnv says how many rounds these tests have.
const repeatEnv = "PROBER_TEST_REPEAT"

// repeat returns the number of rounds: n, or the value of the environment variable that make
// test-frozen sets.
func repeat(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv(repeatEnv)
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// probesTo returns n targets that ask a victim with each of the actions, or with all if none
// are given. The targets' names begin with name, and each fails at its first failed attempt.
func probesTo(name string, n int, plan victimPlan, command []string, period, timeout string, actions ...string) string {
	var b strings.Builder
	for action, spec := range map[string]string{
		"http":  fmt.Sprintf("httpGet: {port: %s}", plan.Ports[0]),
		"https": fmt.Sprintf("httpGet: {port: %s, scheme: HTTPS}", plan.TLS),
		"grpc":  fmt.Sprintf("grpc: {port: %s}", plan.GRPC),
		"exec":  fmt.Sprintf("exec: {command: [%s]}", strings.Join(command, ", ")),
		"name":  fmt.Sprintf("httpGet: {host: localhost, port: %s}", plan.Ports[0]),
	} {
		if command == nil && action == "exec" || len(actions) > 0 && !slices.Contains(actions, action) {
			continue
		}
		for i := range n {
			fmt.Fprintf(&b, "  - {name: %s-%s%d, instance: {source: static}, livenessProbe: {%s, periodSeconds: %s, timeoutSeconds: %s, failureThreshold: 1}}\n", name, action, i, spec, period, timeout)
		}
	}
	return b.String()
}

// failures returns the series of attempts with that result of targets whose names begin with
// name.
func failures(t *testing.T, a *agenttest.Agent, name, result string) (series []string) {
	t.Helper()
	_, body := testutil.Get(t, a.Web+"/metrics")
	lines := regexp.MustCompile(`(?m)^prober_probe_total\{probe_type="Liveness",result="` + result + `",target="` + name + `-.*\} .*$`)
	for _, line := range lines.FindAllString(body, -1) {
		if !strings.HasSuffix(line, " 0") {
			series = append(series, line)
		}
	}
	return series
}

// sendAll sends a signal to processes.
func sendAll(t *testing.T, s syscall.Signal, processes ...*os.Process) {
	t.Helper()
	for _, p := range processes {
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// The agent is frozen at any moment for any time, alone or together with its targets. It never
// fails a healthy target, but fails a target that hangs. TestStopwatch says how soon; the log
// of this test has the times on this machine.
func TestFrozen(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}

	ports := testutil.Ports(t, 6)
	well := victimPlan{Ports: ports[:1], TLS: ports[1], GRPC: ports[2], Takes: 100 * time.Millisecond}
	ill := victimPlan{Ports: ports[3:4], TLS: ports[4], GRPC: ports[5]}
	healthy, hanging := startVictim(t, well), startVictim(t, ill)
	a := agenttest.StartProcess(t, "", agenttest.Flags(testutil.Write(t, "targets:\n"+
		probesTo("well", 8, well, []string{"sleep", "'0.1'"}, "0.2", "1")+
		probesTo("ill", 1, ill, nil, "0.2", "1")))...)
	actions := []string{"http0", "https0", "grpc0", "name0"}
	everyone := func(status int) error {
		for _, action := range actions {
			if got, body := testutil.Get(t, a.Health+"/live/ill-"+action); got != status {
				return fmt.Errorf("%s: %d %s, want %d", action, got, body, status)
			}
		}
		return nil
	}
	a.Eventually("all targets have answered", func() error {
		if made := failures(t, a, "(well|ill)", "successful"); len(made) < 44 {
			return fmt.Errorf("only %q", made)
		}
		return nil
	})
	early := failures(t, a, "well", "failed") // during the start of the targets

	var slowest time.Duration
	var freezes []string
	for range repeat(t, 6) {
		frozen := []*os.Process{a.Cmd.Process}
		if random.IntN(2) == 0 {
			frozen = append(frozen, healthy.cmd.Process, hanging.cmd.Process)
		}
		before, lasts, after := between(0, 700*time.Millisecond), between(50*time.Millisecond, 2500*time.Millisecond), between(0, 700*time.Millisecond)
		if random.IntN(2) == 0 {
			lasts = between(time.Second, 1200*time.Millisecond) // a little longer than the timeout
		}
		hangsLast := random.IntN(2) == 0
		if !hangsLast {
			hanging.tell("lock")
		}
		testutil.Wait(t, before)
		sendAll(t, syscall.SIGSTOP, frozen...)
		testutil.Wait(t, lasts)
		slices.Reverse(frozen) // a frozen target beside a running agent would hang
		sendAll(t, syscall.SIGCONT, frozen...)
		freezes = append(freezes, fmt.Sprintf("%v (%d processes) until %s", lasts, len(frozen), time.Now().UTC().Format(time.TimeOnly)))
		if hangsLast {
			testutil.Wait(t, after)
			hanging.tell("lock")
		}
		began := time.Now()
		a.Eventually("the hanging target is not live", func() error { return everyone(503) })
		slowest = max(slowest, time.Since(began))
		hanging.tell("unlock")
		a.Eventually("the target is live again", func() error { return everyone(200) })
	}
	// On a busy machine this test is late, too: the bound holds only for make test-frozen.
	if limit := 200*time.Millisecond + time.Second + time.Second; slowest > limit && os.Getenv(repeatEnv) != "" {
		t.Errorf("the agent took up to %v to see that a target hangs, want %v at most", slowest, limit)
	}
	t.Logf("the agent saw after %v at most that a target hangs; %d healthy targets have unknown attempts", slowest, len(failures(t, a, "well", "unknown")))
	if failed := failures(t, a, "well", "failed"); !slices.Equal(failed, early) {
		t.Errorf("healthy targets failed: %q, before %q\nfrozen for %q\n%s", failed, early, freezes, a.Log)
	}
}

// hogs runs n processes of the given niceness that take all the CPU time they can get.
func hogs(t *testing.T, n, nice int) {
	t.Helper()
	for range n {
		cmd := exec.Command("nice", "-n", strconv.Itoa(nice), "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// An agent that hardly gets any CPU time never fails a healthy target, but fails a target that
// hangs. The targets are less nice than the hogs and, if the timeout is short, their answers are
// cheap: otherwise the targets would not be healthy.
func TestStarved(t *testing.T) {
	for _, c := range []struct {
		timeout           string
		nice, hogs, nicer int
		actions           []string
	}{
		{"1", 10, 20, 10, []string{"http", "https", "grpc", "name"}},
		{"0.1", 19, 8, 10, []string{"http", "name"}},
	} {
		t.Run(fmt.Sprintf("nice %d, %d hogs, %s s", c.nice, c.hogs, c.timeout), func(t *testing.T) {
			ports := testutil.Ports(t, 6)
			well := victimPlan{Ports: ports[:1], TLS: ports[1], GRPC: ports[2]}
			ill := victimPlan{Ports: ports[3:4], TLS: ports[4], GRPC: ports[5]}
			startVictim(t, well)
			hanging := startVictim(t, ill)
			a := agenttest.StartProcess(t, fmt.Sprintf(`exec nice -n %d "$0" "$@"`, c.nice), agenttest.Flags(testutil.Write(t, "targets:\n"+
				probesTo("well", 10, well, nil, "0.5", c.timeout, c.actions...)+
				probesTo("ill", 1, ill, nil, "0.5", c.timeout, c.actions...)))...)
			a.Eventually("all targets have answered", func() error {
				if made := failures(t, a, "(well|ill)", "successful"); len(made) < 11*len(c.actions) {
					return fmt.Errorf("only %q", made)
				}
				return nil
			})
			early := failures(t, a, "well", "failed") // during the start of the targets
			hogs(t, c.hogs, c.nicer)
			for range repeat(t, 2) {
				testutil.Wait(t, time.Second)
			}
			if failed := failures(t, a, "well", "failed"); !slices.Equal(failed, early) {
				t.Errorf("healthy targets failed: %q, before %q\n%s", failed, early, a.Log)
			}
			hanging.tell("lock")
			began := time.Now()
			for _, action := range c.actions {
				a.Eventually("a target that hangs is not live", func() error {
					if status, body := testutil.Get(t, a.Health+"/live/ill-"+action+"0"); status != 503 {
						return fmt.Errorf("%s: %d %s", action, status, body)
					}
					return nil
				})
			}
			t.Logf("the agent saw after %v that a target hangs; %d healthy targets have unknown attempts", time.Since(began), len(failures(t, a, "well", "unknown")))
		})
	}
}
