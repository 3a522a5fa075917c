// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	stateRunning    = `{"running":{"startedAt":"2026-11-21T12:00:00Z"}}`
	stateTerminated = `{"terminated":{"exitCode":3,"reason":"Error","startedAt":"2026-11-21T12:00:00Z","containerID":"c://1"}}`
)

// aPodOf decodes a pod whose container app is regular, logger a sidecar and migrate
// an init container that ends.
func aPodOf(t *testing.T, metadata, status string) *pod {
	t.Helper()
	p := new(pod)
	err := json.Unmarshal([]byte(`{"metadata":{`+metadata+`},"spec":{"restartPolicy":"Never","nodeName":"n1","containers":[{"name":"app","image":"i"}],
		"initContainers":[{"name":"migrate"},{"name":"logger","restartPolicy":"Always"}]},"status":{`+status+`}}`), p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// For each form of a pod's status, the instance is what the kubelet's worker sees.
func TestKubernetesInstance(t *testing.T) {
	app := func(state string) string {
		return `"phase":"Running","containerStatuses":[{"name":"other","containerID":"c://0"},{"name":"app","containerID":"c://1","state":` + state + `}]`
	}
	for _, tt := range []struct {
		name, metadata, status string
		container              string
		want                   gate.Instance
	}{
		{"rule 4.3: no status", ``, ``, "app", gate.Instance{}},
		{"rule 4.4: failed", ``, `"phase":"Failed","containerStatuses":[{"name":"app","containerID":"c://1","state":` + stateRunning + `}]`, "app", gate.Instance{Final: true}},
		{"rule 4.4: succeeded", ``, `"phase":"Succeeded"`, "app", gate.Instance{Final: true}},
		{"rule 4.5: another name", ``, app(stateRunning), "ap", gate.Instance{}},
		{"rule 4.5: no ID anywhere", ``, `"containerStatuses":[{"name":"app","state":{"waiting":{"reason":"ContainerCreating"}}}]`, "app", gate.Instance{}},
		{"rule 4.5: without ID, so the init status", ``, `"containerStatuses":[{"name":"app"}],"initContainerStatuses":[{"name":"app","containerID":"c://9","state":` + stateRunning + `}]`, "app", gate.Instance{ID: "c://9", Phase: gate.Running, StartedAt: noon}},
		{"running", ``, app(stateRunning), "app", gate.Instance{ID: "c://1", Phase: gate.Running, StartedAt: noon}},
		{"running, in another zone's time", ``, app(`{"running":{"startedAt":"2026-11-21T14:00:00+02:00"}}`), "app", gate.Instance{ID: "c://1", Phase: gate.Running, StartedAt: noon}},
		{"rule 4.8: terminated, never again", ``, app(stateTerminated), "app", gate.Instance{ID: "c://1", Phase: gate.Terminated, Final: true, StartedAt: noon}},
		{"rule 4.8: waiting", ``, app(`{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":` + stateTerminated), "app", gate.Instance{ID: "c://1", Phase: gate.Waiting, StartedAt: noon}},
		{"waiting, after the end of another instance", ``, app(`{"waiting":{}},"lastState":{"terminated":{"containerID":"c://0","startedAt":"2026-11-21T12:00:00Z"}}`), "app", gate.Instance{ID: "c://1", Phase: gate.Waiting}},
		{"no state is waiting", ``, app(`{}`), "app", gate.Instance{ID: "c://1", Phase: gate.Waiting}},
		{"rule 4.9: deleted", `"deletionTimestamp":"2026-11-21T12:00:30Z"`, app(stateRunning), "app", gate.Instance{ID: "c://1", Phase: gate.Running, Deleting: true, StartedAt: noon}},
		{"rule 4.9: deleted and failed", `"deletionTimestamp":"2026-11-21T12:00:30Z"`, `"phase":"Failed"`, "app", gate.Instance{Final: true, Deleting: true}},
		{"a sidecar is not final", ``, `"initContainerStatuses":[{"name":"logger","containerID":"c://2","state":` + stateTerminated + `}]`, "logger", gate.Instance{ID: "c://2", Phase: gate.Terminated, StartedAt: noon}},
		{"an init container is final", ``, `"initContainerStatuses":[{"name":"migrate","containerID":"c://3","state":` + stateTerminated + `}]`, "migrate", gate.Instance{ID: "c://3", Phase: gate.Terminated, Final: true, StartedAt: noon}},
	} {
		if got := aPodOf(t, tt.metadata, tt.status).instance(tt.container); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// The restart rules of a terminated container decide whether the container runs again; without a rule
// that matches, the container's own policy decides, or else the pod's. With an unknown or missing
// policy the container runs again.
func TestKubernetesRestarts(t *testing.T) {
	const (
		on3     = `"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[3,4]}}]`
		notOn3  = `"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"NotIn","values":[3]}}]`
		allOn3  = `"restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[3]}}]`
		oddRule = `"restartPolicyRules":[{"action":"Restart"},{"action":"Restart","exitCodes":{"operator":"Near","values":[3]}},{"action":"Dance","exitCodes":{"operator":"In","values":[3]}},{"action":"Restart","exitCodes":{"operator":"In","values":[3]}}]`
	)
	for _, tt := range []struct {
		pod, own, rules string
		code            int
		want            bool
	}{
		{"Always", "", "", 0, true},
		{"Always", "", "", 1, true},
		{"OnFailure", "", "", 0, false},
		{"OnFailure", "", "", 1, true},
		{"Never", "", "", 0, false},
		{"Never", "", "", 1, false},
		{"", "", "", 0, true},
		{"Sometimes", "", "", 0, true},
		{"Never", "Always", "", 0, true},
		{"Never", "OnFailure", "", 0, false},
		{"Never", "OnFailure", "", 1, true},
		{"Always", "Never", "", 1, false},
		{"Always", "OnFailure", "", 0, false},
		{"Never", "Sometimes", "", 1, false},
		{"Always", "Never", on3, 3, true},
		{"Always", "Never", on3, 4, true},
		{"Always", "Never", on3, 5, false},
		{"Always", "Never", notOn3, 3, false},
		{"Always", "Never", notOn3, 0, true},
		{"Always", "Never", allOn3, 3, true},
		{"Always", "Never", allOn3, 4, false},
		{"Always", "Never", oddRule, 3, false}, // the first rule that matches decides, and has no known action
		{"Never", "", on3, 3, false},           // rules need a policy of the container
	} {
		p := new(pod)
		own, rules := "", ""
		if tt.own != "" {
			own = `,"restartPolicy":"` + tt.own + `"`
		}
		if tt.rules != "" {
			rules = "," + tt.rules
		}
		if err := json.Unmarshal([]byte(`{"spec":{"restartPolicy":"`+tt.pod+`","containers":[{"name":"app"`+own+rules+`}]}}`), p); err != nil {
			t.Fatal(err)
		}
		if got := p.restarts("app", tt.code); got != tt.want {
			t.Errorf("pod %q, container %q, rules %q, exit code %d: restarts %v, want %v", tt.pod, tt.own, tt.rules, tt.code, got, tt.want)
		}
	}
}

// Where the end of one container restarts all containers, the end of another container is not final:
// neither while the first container is terminated, nor while the pod says that the restart is under way.
func TestKubernetesRestartsAll(t *testing.T) {
	ended := func(name string, code string) string {
		return `{"name":"` + name + `","containerID":"c://` + name + `","state":{"terminated":{"exitCode":` + code + `}}}`
	}
	for _, tt := range []struct {
		name, status string
		want         bool // app is final
	}{
		{"the other ends with 7", `"containerStatuses":[` + ended("app", "1") + `,` + ended("other", "7") + `]`, false},
		{"the other ends with 8", `"containerStatuses":[` + ended("app", "1") + `,` + ended("other", "8") + `]`, true},
		{"the other runs", `"containerStatuses":[` + ended("app", "1") + `,{"name":"other","state":` + stateRunning + `}]`, true},
		{"under way", `"conditions":[{"type":"Ready","status":"True"},{"type":"AllContainersRestarting","status":"True"}],"containerStatuses":[` + ended("app", "1") + `]`, false},
		{"over", `"conditions":[{"type":"AllContainersRestarting","status":"False"}],"containerStatuses":[` + ended("app", "1") + `]`, true},
	} {
		p := new(pod)
		err := json.Unmarshal([]byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"app"},{"name":"other","restartPolicy":"Never",
			"restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[7]}}]}]},"status":{`+tt.status+`}}`), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.instance("app").Final; got != tt.want {
			t.Errorf("%s: final %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The details have the last exit code, whether memory ran out, why the container waits, and that a
// name is wrong.
func TestKubernetesDetails(t *testing.T) {
	three, oom := 3, 137
	for _, tt := range []struct {
		name, container, status string
		want                    instance.Details
	}{
		{"nothing yet", "app", ``, instance.Details{}},
		{"never ran", "app", `"containerStatuses":[{"name":"app","state":{"waiting":{"reason":"ImagePullBackOff"}}}]`, instance.Details{Message: "ImagePullBackOff"}},
		{"ended", "app", `"containerStatuses":[{"name":"app","containerID":"c://1","state":` + stateTerminated + `}]`, instance.Details{ExitCode: &three}},
		{"loops", "app", `"containerStatuses":[{"name":"app","containerID":"c://1","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`, instance.Details{ExitCode: &oom, OOMKilled: true, Message: "CrashLoopBackOff"}},
		{"runs again", "app", `"containerStatuses":[{"name":"app","containerID":"c://2","state":` + stateRunning + `,"lastState":` + stateTerminated + `}]`, instance.Details{ExitCode: &three}},
		{"no such name", "ap", ``, instance.Details{Message: `the pod has no container named "ap"`}},
		{"not probed", "migrate", `"initContainerStatuses":[{"name":"migrate","state":{"waiting":{"reason":"x"}}}]`, instance.Details{Message: `container "migrate" is an init container that ends: the agent does not probe it`}},
		{"a sidecar", "logger", ``, instance.Details{}},
	} {
		got := aPodOf(t, ``, tt.status).details(tt.container)
		if detailsDiffer(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// The source reports 3 changes of the details: why the container waits, that the container has ended,
// and another exit code.
func TestKubernetesTellsOfDetails(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", ""))
	w := s.Next(t, "10").Open()
	for _, tt := range []struct {
		status, message string
		code            int
	}{
		{`{"name":"app","state":{"waiting":{"reason":"Slow"}}}`, "Slow", -1},
		{`{"name":"app","state":{"waiting":{"reason":"Slow"}},"lastState":{"terminated":{"exitCode":1}}}`, "Slow", 1},
		{`{"name":"app","state":{"waiting":{"reason":"Slow"}},"lastState":{"terminated":{"exitCode":2}}}`, "Slow", 2},
	} {
		w.Event("MODIFIED", podOf("11", tt.status))
		r.change(t)
		d, code := r.Describe("app"), -1
		if d.ExitCode != nil {
			code = *d.ExitCode
		}
		if d.Message != tt.message || code != tt.code {
			t.Errorf("after %s: %q, exit code %d", tt.status, d.Message, code)
		}
	}
}
