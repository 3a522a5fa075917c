// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// Restart says who restarts a container that is not live.
type Restart string

// The ways of a restart.
const (
	ByProbe  Restart = "probe"  // the kubelet, which asks the agent over HTTP
	ByExec   Restart = "exec"   // the kubelet, which runs the agent's client in the container
	BySignal Restart = "signal" // the agent, which signals the process; the kubelet starts the next
)

// Restarts returns the names of all ways, the default first.
func Restarts() []string { return []string{string(ByProbe), string(ByExec), string(BySignal)} }

func (c *converter) restart() Restart {
	if c.options.Restart == "" {
		return ByProbe
	}
	return c.options.Restart
}

// The rhythm of a liveness probe by the client.
const (
	clientPeriod   = 2 // seconds
	clientFailures = 2
)

// clientThreshold returns after how many failures the kubelet restarts a target. The agent says
// that a static target is dead until an attempt succeeds, also while the next life of the target
// boots, so such a target has as long as with ByProbe.
func clientThreshold(t *config.Target) int {
	if t.Instance.Source == config.SourceStatic {
		return forAgent / clientPeriod
	}
	return clientFailures
}

// ends reports whether a failure of a probe of this kind ends the container.
func ends(kind gate.Kind) bool { return kind != gate.Readiness }

// getsClient reports whether a kubelet runs the client in a container.
func (c *converter) getsClient(some chosen) bool {
	return c.restart() == ByExec && some.ends()
}

// ends reports whether a failure of one of the probes ends the container.
func (some chosen) ends() bool {
	return some.has(gate.Startup) || some.has(gate.Liveness)
}

func (some chosen) has(kind gate.Kind) bool {
	return slices.Contains(some.kinds, kind)
}

// rewriteProbes makes the probes of a container ask the agent.
func (c *converter) rewriteProbes(e *editor, some chosen, t *config.Target) {
	node, gone := some.container.node, c.gone(some)
	var grace [gate.NumKinds]string
	for _, kind := range some.kinds {
		grace[kind] = withComment(some.container.probes[kind].get("terminationGracePeriodSeconds").node)
	}
	if slices.Contains(gone, gate.Liveness) {
		grace[gate.Startup] = grace[gate.Liveness]
	}
	for _, kind := range gone {
		e.remove(node, index(node, probeKeys[kind]))
	}
	for _, kind := range some.kinds {
		switch key := index(node, probeKeys[kind]); {
		case slices.Contains(gone, kind):
		case c.restart() == ByProbe || !ends(kind):
			e.replace(node, key, c.probe(kind, some.container.name, t.Probe(kind), grace[kind]))
		case c.restart() == BySignal:
			e.replace(node, key, c.orderProbe(some.container))
		default:
			e.replace(node, key, c.clientProbe(kind, some.container, t, grace[kind]))
		}
	}
	if c.getsClient(some) {
		addMount(e, some.container)
	}
}

// gone returns which probes of a container go. If the agent signals, no probe may end the
// container. If the kubelet runs the client, one liveness probe is enough: /live fails as soon as
// the agent's startup probe has failed. Then the startup probe goes, unless it begins the item of
// the container, whose dash must stay. The startup probe of a native sidecar stays in all cases,
// because the next container waits for it.
func (c *converter) gone(some chosen) (kinds []gate.Kind) {
	both := some.has(gate.Startup) && some.has(gate.Liveness)
	switch {
	case c.restart() == BySignal:
		for _, kind := range some.kinds {
			if ends(kind) && (kind == gate.Liveness || !some.container.sidecar) {
				kinds = append(kinds, kind)
			}
		}
		return kinds
	case c.restart() == ByProbe || some.container.sidecar || !both:
		return nil
	case index(some.container.node, probeKeys[gate.Startup]) == 0:
		return []gate.Kind{gate.Liveness}
	}
	return []gate.Kind{gate.Startup}
}

// clientProbe returns a probe by which a kubelet runs the client. In the place of a startup
// probe a container gets a liveness probe: a kubelet would run none before the first success. The
// startup probe of a native sidecar stays one.
func (c *converter) clientProbe(kind gate.Kind, k *container, t *config.Target, grace string) string {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	command := func(key, check, comment string) {
		line("%s:%s", key, comment)
		line(`  exec: {command: [%s/prober_exporter, "--health.check=http://127.0.0.1:%s/%s/%s", --health.check.fail-open]}`, clientPath, c.healthPort(), check, k.name)
	}
	const timeout = "  timeoutSeconds: 60 # the client ends by itself after 1 s, but a starved one starts late"
	if kind == gate.Startup && k.sidecar {
		command(probeKeys[gate.Startup], "started", "")
		line("  periodSeconds: 1")
		line(timeout)
		line("  failureThreshold: %d # %s", startupThreshold(t.StartupProbe), startupSum(t.StartupProbe))
	} else {
		command(probeKeys[gate.Liveness], "live", " # fails if the agent's liveness or startup probe has failed")
		if p := t.LivenessProbe; p != nil && p.InitialDelay > 0 {
			line("  initialDelaySeconds: %d # from the start of the container, which the agent does not see", delaySeconds(p))
		}
		line("  periodSeconds: %d", clientPeriod)
		line(timeout)
		why := ""
		if clientThreshold(t) > clientFailures {
			why = fmt.Sprintf(" # %d s: the agent does not see when this target restarts", forAgent)
		}
		line("  failureThreshold: %d%s", clientThreshold(t), why)
	}
	if grace != "" {
		line("  terminationGracePeriodSeconds: %s", grace)
	}
	return b.String()
}

// addMount gives a container the volume with the client.
func addMount(e *editor, k *container) {
	item := fmt.Sprintf("- {name: %s, mountPath: %s, readOnly: true}\n", clientName, clientPath)
	switch i := index(k.node, "volumeMounts"); {
	case i < 0:
		e.add(k.node, "volumeMounts:\n"+indented(item, 2))
	case len(k.node.Content[i+1].Content) == 0: // null or []
		e.replace(k.node, i, "volumeMounts:\n"+indented(item, 2))
	default:
		e.appendTo(k.node, i, item)
	}
}

// fitsClient reports whether these containers can get the client.
func (c *converter) fitsClient(moved []chosen) bool {
	before := len(c.errs)
	for _, some := range moved {
		if !c.getsClient(some) {
			continue
		}
		mounts := some.container.get("volumeMounts")
		c.list(mounts) // must be one
		for _, m := range mounts.items() {
			if at := path.Clean(scalar(m.node, "mountPath")); at == clientPath || strings.HasPrefix(at, clientPath+"/") {
				c.wrong(m.node.Line, join(m.path, "mountPath"), "the path "+clientPath+" is that of the agent's client")
			}
		}
	}
	return len(c.errs) == before
}

// warnGrace warns of a startup probe's own grace period, which the liveness probe in its place
// does not have.
func (c *converter) warnGrace(moved []chosen) {
	for _, some := range moved {
		if !c.getsClient(some) || some.container.sidecar || !some.has(gate.Startup) || !some.has(gate.Liveness) {
			continue
		}
		grace := some.container.probes[gate.Startup].get("terminationGracePeriodSeconds")
		if grace.node != nil && grace.node.Value != scalar(some.container.probes[gate.Liveness].node, "terminationGracePeriodSeconds") {
			c.warn(grace.node.Line, grace.path, "a boot that hangs is ended with the grace period of the livenessProbe: both probes become one")
		}
	}
}
