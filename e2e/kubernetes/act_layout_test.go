// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"strings"
	"time"
)

// layout is a way from a fault of the application to an act.
type layout struct {
	name  string   // as in the tables
	file  string   // of the agent; empty for a layout without an agent
	app   string   // the lines of the application's container
	agent string   // further lines of the agent's container
	pod   string   // further lines of the pod's spec
	inits string   // further init containers, before the application
	also  []string // further objects
}

const (
	fileTop = `targets:
  - name: app
    startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 60}
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1, failureThreshold: 1}
`
	fileLiveness = `    livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 5, failureThreshold: 3}
`
	fileFast = `    livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 0.25, timeoutSeconds: 0.25, failureThreshold: 2}
`
	fileSignal = `    instance: {source: process, match: ^/fault$}
    restart: {signal: {}}
`
	asksReady = `readinessProbe: {httpGet: {path: /ready/app, port: 9708}, periodSeconds: 1, failureThreshold: 3}
`
)

// The layouts, named as in docs/kubernetes.md. All layouts but the fast one have the same periods and
// thresholds: readiness 1 s × 1 and liveness 5 s × 3.
var (
	ownProbes = layout{
		name: "the kubelet's own probes",
		app: `startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 60}
readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1, failureThreshold: 1}
livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 5, failureThreshold: 3}
`,
	}
	asksAgent = layout{
		name: "HTTP, 5 s × 6",
		file: fileTop + fileLiveness,
		app: `startupProbe: {httpGet: {path: /started/app, port: 9708}, periodSeconds: 1, failureThreshold: 330}
` + asksReady + `livenessProbe: {httpGet: {path: /live/app, port: 9708}, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 6}
`,
	}
	signals = layout{
		name:  "a signal",
		file:  fileTop + fileLiveness + fileSignal,
		app:   asksReady,
		agent: "securityContext: {runAsUser: 1000, runAsGroup: 1000}\n",
		pod:   "shareProcessNamespace: true\n",
	}
	signalsFast = layout{
		name:  "a signal, liveness 0.25 s × 2",
		file:  fileTop + fileFast + fileSignal,
		app:   asksReady,
		agent: signals.agent,
		pod:   signals.pod,
	}
	execClient = layout{
		name: "a command, 2 s × 2",
		file: fileTop + fileLiveness,
		app: asksReady + `livenessProbe:
  exec: {command: [/prober/prober_exporter, "--health.check=http://127.0.0.1:9708/live/app", --health.check.fail-open]}
  periodSeconds: 2
  failureThreshold: 2
  timeoutSeconds: 60
volumeMounts: [{name: client, mountPath: /prober}]
`,
		inits: `- name: copy
  image: prober-exporter:0.1.0
  args: [--copy-to=/prober]
  volumeMounts: [{name: client, mountPath: /prober}]
`,
	}
	gated = layout{
		name: "a readiness gate",
		file: fileTop + `kubernetes:
  podConditions:
    - {type: example.org/shop-ready, targets: [app]}
  events: true
`,
		pod: "readinessGates: [{conditionType: example.org/shop-ready}]\n",
		also: []string{`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: prober-exporter
rules:
  - {apiGroups: [""], resources: [pods], resourceNames: [shop], verbs: [get, watch]}
  - {apiGroups: [""], resources: [pods/status], resourceNames: [shop], verbs: [patch]}
  - {apiGroups: [""], resources: [events], verbs: [create, patch]}
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: prober-exporter
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: prober-exporter}
subjects: [{kind: ServiceAccount, name: default}]
`},
	}
)

// ownBackOff is how long an agent waits after its start before its first act.
const ownBackOff = 10 * time.Second

// actors are the layouts in which nobody acts while the agent is away.
var actors = []layout{signals, execClient}

const sidecar = `- name: prober
  image: prober-exporter:0.1.0
  restartPolicy: Always
  args: [--config.file=/etc/prober_exporter/prober.yml, --config.fail-open, "--health.listen-address=:9708"]
  lifecycle: {preStop: {exec: {command: [/bin/prober_exporter, --terminating]}}}
  startupProbe: {httpGet: {path: /-/healthy, port: 9708}, periodSeconds: 1, failureThreshold: 30}
  livenessProbe: {httpGet: {path: /-/healthy, port: 9708}}
  volumeMounts: [{name: prober, mountPath: /etc/prober_exporter}]
`

// manifest is the layout's pod. The agent is a native sidecar, as in examples/kubernetes.
func (l layout) manifest() string {
	spec := l.pod + `containers:
  - name: app
    image: fault:1.0
` + indent(4, l.app)
	documents := l.also
	if l.file != "" {
		spec += `volumes: [{name: client, emptyDir: {}}, {name: prober, configMap: {name: shop-prober}}]
initContainers:
` + indent(2, l.inits+sidecar+indent(2, l.agent))
		documents = append([]string{"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop-prober\ndata:\n  prober.yml: |\n" + indent(4, l.file)}, documents...)
	}
	documents = append(documents, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: shop\nspec:\n"+indent(2, spec))
	return strings.Join(documents, "---\n")
}

// indent indents lines.
func indent(n int, lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		out.WriteString(strings.Repeat(" ", n) + line)
	}
	return out.String()
}
