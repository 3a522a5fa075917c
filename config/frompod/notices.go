// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// warnings reports the differences between the agent and a kubelet for these probes.
func (c *converter) warnings(w *workload, all []chosen) {
	for _, some := range all {
		k := some.container
		for _, kind := range some.kinds {
			p := k.probes[kind]
			if host := probeHost(p); host.node != nil && !w.hostNetwork() {
				c.warn(host.node.Line, host.path, "the agent dials this host from the pod's network, a kubelet dials it from the node's")
			}
			if other := w.otherOwner(k, p); other != "" {
				c.warn(p.node.Line, p.path, fmt.Sprintf("asks a port of the container %s: this port does not show restarts of the target; name another port in instance.ports", other))
			}
		}
		if env, name := podIP(k); env.node != nil {
			c.warn(env.node.Line, env.path, fmt.Sprintf("the container gets its pod's IP address: if the application listens only there, set %s for the agent, too, and write host: ${%s}", name, name))
		}
	}
}

// warnExec warns of exec probes, which run in the agent's file system.
func (c *converter) warnExec(all []chosen) {
	for _, some := range all {
		for _, kind := range some.kinds {
			if e := some.container.probes[kind].get("exec"); e.node != nil {
				c.warn(e.node.Line, e.path, "runs in the agent's own file system: the command must be in the agent's image")
				c.warnEnv(some.container)
			}
		}
	}
}

// warnEnv warns of variables that a command may miss, once for a container.
func (c *converter) warnEnv(k *container) {
	if from := k.get("envFrom"); len(from.items()) > 0 {
		c.warnOnce(from, "is not read: set the variables that the command needs for the agent")
	}
	for _, env := range k.get("env").items() {
		if from := env.get("valueFrom"); from.node != nil {
			c.warnOnce(from, "is not read: set the variable for the agent, and `value: ${NAME}` in the target's env, if the command needs it")
		}
	}
}

func (c *converter) warnOnce(p place, message string) {
	for _, n := range c.notices {
		if n.Line == c.offset+p.node.Line && n.Path == p.path {
			return
		}
	}
	c.warn(p.node.Line, p.path, message)
}

func (w *workload) hostNetwork() bool {
	return strings.EqualFold(scalar(w.spec.node, "hostNetwork"), "true")
}

// probeHost returns the host of a probe, if it has one of its own.
func probeHost(p place) place {
	for _, action := range []string{"httpGet", "tcpSocket"} {
		if host := p.get(action).get("host"); host.node != nil && host.node.Value != "" {
			return host
		}
	}
	return place{}
}

// probePort returns the port of a probe, as it is written.
func probePort(p place) string {
	for _, action := range []string{"httpGet", "tcpSocket", "grpc"} {
		if port := scalar(p.get(action).node, "port"); port != "" {
			return port
		}
	}
	return ""
}

// otherOwner returns the container that declares the port of k's probe, if k does not.
func (w *workload) otherOwner(k *container, p place) string {
	port := probePort(p)
	declares := func(k *container) bool {
		return slices.ContainsFunc(k.get("ports").items(), func(p place) bool { return scalar(p.node, "containerPort") == port })
	}
	if port == "" || probeHost(p).node != nil || slices.ContainsFunc(k.get("ports").items(), func(p place) bool { return scalar(p.node, "name") == port }) || declares(k) {
		return ""
	}
	for i := range w.containers {
		if declares(&w.containers[i]) {
			return w.containers[i].name
		}
	}
	return ""
}

// podIP returns a variable that has the address of the pod, and its name.
func podIP(k *container) (place, string) {
	for _, env := range k.get("env").items() {
		if scalar(env.get("valueFrom").get("fieldRef").node, "fieldPath") == "status.podIP" {
			return env, scalar(env.node, "name")
		}
	}
	return place{}, ""
}

// warnMoved reports other effects of a sidecar in the pod.
func (c *converter) warnMoved(w *workload) {
	if n := w.spec.get("hostNetwork"); w.hostNetwork() {
		c.warn(n.node.Line, n.path, fmt.Sprintf("the agent listens on the ports %s and %s of the node: --config.from-pod.health-port and --config.from-pod.metrics-port choose others", c.healthPort(), c.metricsPort()))
	}
	if port := w.podMetadata().get("annotations").get("prometheus.io/port"); port.node != nil && port.node.Value != c.metricsPort() {
		c.warn(port.node.Line, port.path, fmt.Sprintf("a Prometheus that follows it does not scrape the agent, whose metrics are on port %s", c.metricsPort()))
	}
	guaranteed := true
	for _, list := range []string{"containers", "initContainers"} {
		for _, k := range w.spec.get(list).items() {
			limits := k.get("resources").get("limits").node
			guaranteed = guaranteed && lookup(limits, "cpu") != nil && lookup(limits, "memory") != nil
		}
	}
	if guaranteed {
		c.warn(w.spec.node.Line, w.spec.path, "every container has limits but the sidecar has none: give the sidecar equal requests and limits, or the QoS class of the pod becomes Burstable instead of Guaranteed")
	}
}

// podMetadata returns the metadata of the workload's pods.
func (w *workload) podMetadata() place {
	_, path := podSpec(w.kind)
	pod := w.root
	for _, key := range path[:len(path)-1] {
		pod = pod.get(key)
	}
	return pod.get("metadata")
}

// keepsDelay reports whether a notice is about a delay that the source listener cannot
// keep but the rewritten probe keeps.
func (c *converter) keepsDelay(cfg *config.Config, path string) bool {
	for i := range cfg.Targets {
		if path == fmt.Sprintf("targets[%d].livenessProbe", i) {
			return c.options.Rewrite && cfg.Targets[i].Instance.Source == config.SourceListener
		}
	}
	return false
}

// forAgent is how many seconds the kubelet's probes allow for a restart of the agent.
const forAgent = 30

// tellDelays reports how much longer the restart of a container takes: the agent needs as
// long as the kubelet did, and then the kubelet asks the agent for a while.
func (c *converter) tellDelays(moved []chosen, cfg *config.Config) {
	for i, some := range moved {
		for _, kind := range some.kinds {
			at, p := some.container.probes[kind], cfg.Targets[i].Probe(kind)
			own := p.Period.Seconds() * float64(p.FailureThreshold)
			switch {
			case c.restart() == ByExec && ends(kind) && (kind == gate.Liveness || !some.container.sidecar):
				what, failures := "a dead application is restarted", clientThreshold(&cfg.Targets[i])
				if own += p.Timeout.Seconds(); kind == gate.Startup {
					what, own = "a boot that hangs is ended", own+p.InitialDelay.Seconds()
				}
				c.notice(config.Info, at.node.Line, at.path, fmt.Sprintf("%s within %s s instead of %s s: the kubelet asks every %d s and restarts after %d failures",
					what, seconds(own+float64(clientPeriod*failures)), seconds(own), clientPeriod, failures))
			case c.restart() == BySignal && ends(kind): // the agent acts at once
			case kind == gate.Startup:
				c.notice(config.Info, at.node.Line, at.path, fmt.Sprintf("a boot that hangs is ended after %d s instead of %s s: %d s are for a start of the agent",
					startupThreshold(p), seconds(own+p.InitialDelay.Seconds()), forAgent))
			case kind == gate.Liveness:
				own += p.Timeout.Seconds()
				c.notice(config.Info, at.node.Line, at.path, fmt.Sprintf("a dead application is restarted within %s s instead of %s s: %d s are for a restart of the agent",
					seconds(own+forAgent), seconds(own), forAgent))
			}
		}
	}
}

// seconds returns a number of seconds for a person.
func seconds(s float64) string { return strconv.FormatFloat(math.Round(s*1000)/1000, 'f', -1, 64) }

// movable chooses the probes that the agent can take over, and reports why others stay.
func (c *converter) movable(k *container) chosen {
	some := chosen{container: k}
	for _, kind := range gate.Kinds() {
		p := k.probes[kind]
		switch {
		case p.node == nil:
		case isExec(p):
			c.warn(p.node.Line, p.path, "stays as it is: its command would run in the agent's file system")
		case kind == gate.Startup && c.restart() != ByProbe && isExec(k.probes[gate.Liveness]):
			c.warn(p.node.Line, p.path, "stays as it is: the livenessProbe stays, too, and would not wait for the agent")
		case kind == gate.Liveness && isExec(k.probes[gate.Startup]):
			c.warn(p.node.Line, p.path, "stays as it is: the startupProbe stays, too, and the agent would not wait for it")
		default:
			some.kinds = append(some.kinds, kind)
		}
	}
	return some
}

// warnUnread warns of an object that has containers but is not a known workload, so that
// nobody believes that its probes have moved.
func (c *converter) warnUnread(root place) {
	spec := root
	_, path := podSpec(scalar(root.node, "kind"))
	if path == nil {
		path = []string{"spec", "template", "spec"}
	}
	for _, key := range path {
		spec = spec.get(key)
	}
	if spec.get("containers").node != nil {
		c.warn(root.node.Line, join(root.path, "kind"), fmt.Sprintf("%s of apiVersion %q is not read: its probes are ignored",
			scalar(root.node, "kind"), scalar(root.node, "apiVersion")))
	}
}
