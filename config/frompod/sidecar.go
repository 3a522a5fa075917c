// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"cmp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	sidecarName = "prober" // of the container and of its volume

	// The agent's default ports, which the hook asks, too.
	defaultHealthPort  = 9708
	defaultMetricsPort = 9709
)

// sidecar is the agent's container. The placeholders are its image, its ports and their
// names, further arguments, the arguments of the hook, further capabilities, and the lines about
// the user.
const sidecar = `- name: prober
  image: IMAGE
  restartPolicy: Always # a native sidecar: starts before the application, ends after it
  args:
    - --config.file=/etc/prober_exporter/prober.yml
    - --config.fail-open # a broken file must not kill the application
    - --config.enable-auto-reload
    - --health.listen-address=:HEALTHPORT
ARGS  ports:
    - {name: HEALTHNAME, containerPort: HEALTHPORT}
    - {name: METRICSNAME, containerPort: METRICSPORT}
  lifecycle: # when the pod is deleted startup and liveness probes end, as a kubelet's do
    preStop: {exec: {command: [/bin/prober_exporter, --terminatingHOOK]}}
  startupProbe:
    httpGet: {path: /-/healthy, port: HEALTHNAME} # not /-/ready: with a broken file it would be restarted again and again
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /-/healthy, port: HEALTHNAME}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]CAPABILITIES}
    readOnlyRootFilesystem: true
USER    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: prober, mountPath: /etc/prober_exporter}
`

// clientName is the name of the container that copies the client, and of the volume for it.
const clientName = "prober-client"

// clientPath is where a container has the volume with the client.
const clientPath = "/prober"

// clientContainer copies the client. It has the placeholders of sidecar.
const clientContainer = `- name: prober-client # puts the client into a volume: the application's image has none
  image: IMAGE
  args: [--copy-to=/prober]
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]CAPABILITIES}
    readOnlyRootFilesystem: true
USER    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: prober-client, mountPath: /prober}
`

// healthPort is the agent's port that probes ask.
func (c *converter) healthPort() string {
	return strconv.Itoa(cmp.Or(c.options.HealthPort, defaultHealthPort))
}

// metricsPort is the agent's port that Prometheus scrapes.
func (c *converter) metricsPort() string {
	return strconv.Itoa(cmp.Or(c.options.MetricsPort, defaultMetricsPort))
}

// agent is what differs between the agents of two pods.
type agent struct {
	client       bool   // a container copies the client
	user         string // lines of the securityContext
	capabilities string // further ones
}

func newAgent(w *workload) agent {
	a := agent{user: "    runAsNonRoot: true\n"}
	if scalar(w.spec.get("securityContext").node, "runAsUser") == "0" {
		a.user += "    runAsUser: 65534 # the pod's is root\n"
	}
	return a
}

// addSidecar makes the agent the first container to start, after the container that copies the
// client if there is one.
func (c *converter) addSidecar(w *workload, e *editor, a agent) {
	health, metrics := "health", "metrics"
	for _, k := range w.all() {
		for _, p := range k.get("ports").items() {
			// Services and monitors find a port of the pod by its name.
			if name := scalar(p.node, "name"); name == "health" || name == "metrics" {
				health, metrics = "prober-health", "prober-metrics"
			}
		}
	}
	args, hook := "", ""
	if c.metricsPort() != strconv.Itoa(defaultMetricsPort) {
		args = "    - --web.listen-address=:" + c.metricsPort() + "\n"
	}
	if args != "" || c.healthPort() != strconv.Itoa(defaultHealthPort) {
		hook = `, "--health.listen-address=:` + c.healthPort() + `"` // the hook does not see the agent's flags
	}
	image, _ := yaml.Marshal(c.options.Image) // a string always can be
	items := sidecar
	if a.client {
		items = clientContainer + sidecar // the client must be there before anything is asked
	}
	item := strings.NewReplacer("IMAGE", strings.TrimSpace(string(image)), "HEALTHNAME", health, "METRICSNAME", metrics,
		"HEALTHPORT", c.healthPort(), "METRICSPORT", c.metricsPort(), "ARGS", args, "HOOK", hook, "USER", a.user, "CAPABILITIES", a.capabilities).Replace(items)
	spec := w.spec.node
	switch i, key := index(spec, "initContainers"), index(spec, "containers"); {
	case i < 0:
		e.before(spec, key, "initContainers:\n"+indented(item, listIndent(spec, key)))
	case len(spec.Content[i+1].Content) == 0: // null or []
		e.replace(spec, i, "initContainers:\n"+indented(item, listIndent(spec, key)))
	default:
		e.prepend(spec.Content[i+1], item)
	}
}
