// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// rewrite returns a document with a sidecar in each of its workloads, after their
// ConfigMaps: a pod that is applied before its ConfigMap waits for it. A document
// without anything to move stays byte for byte.
func (c *converter) rewrite(d *document) string {
	e := newEditor(d.text)
	var maps strings.Builder
	for i := range d.workloads {
		if m := c.rewriteWorkload(&d.workloads[i], e); m != "" {
			maps.WriteString(m + "---\n")
		}
	}
	if maps.Len() == 0 || len(c.errs) > 0 {
		return d.text
	}
	out, ok := e.text()
	if root := d.root.Content[0]; !ok || !means(out, root) {
		if out = encode(d.root); out == "" {
			c.wrong(root.Line, "", "cannot be written as YAML again")
			return ""
		}
		c.warn(root.Line, "", "is written anew because of JSON, flow style, aliases or merges: lines change, and some comments may be lost")
		if strings.HasPrefix(d.text, "---") {
			out = "---\n" + out
		}
	}
	if !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return after(maps.String(), out)
}

// after returns a document after others, each of which ends with a line ---.
func after(others, document string) string {
	if strings.Contains(document, "\r\n") {
		others = strings.ReplaceAll(others, "\n", "\r\n")
	}
	const byteOrderMark = "\ufeff"
	document, marked := strings.CutPrefix(document, byteOrderMark)
	if last := strings.LastIndex(others, "---"); strings.HasPrefix(document, "---") {
		// The --- with which the document begins must come before the others, too.
		others = others[last:] + others[:last]
	}
	if marked {
		others = byteOrderMark + others
	}
	return others + document
}

// rewriteWorkload adds the sidecar and makes the probes ask it. It returns the ConfigMap,
// or nothing if no probe can be moved.
func (c *converter) rewriteWorkload(w *workload, e *editor) string {
	// Mistakes are reported in probes that stay, too.
	if _, cfg := c.configuration(w, w.probed(everything)); cfg == nil || c.hasAgent(w) {
		return ""
	}
	moved := w.probed(c.movable)
	if c.restart() == BySignal && !c.findProcesses(w, moved) {
		return ""
	}
	source, cfg := c.configuration(w, moved)
	if len(moved) == 0 {
		c.kept = true
	}
	if cfg == nil || !c.fits(w) || !c.fitsClient(moved) {
		return ""
	}
	signals := slices.ContainsFunc(moved, func(some chosen) bool { return some.signal != nil })
	agent := newAgent(w)
	if signals && !c.signalAs(&agent, w, moved) {
		return ""
	}
	c.warnings(w, moved)
	c.warnGrace(moved)
	m := c.configMap(w, source)
	if m == "" {
		return ""
	}
	c.warnMoved(w)
	c.tellDelays(moved, cfg)
	c.converted++
	for i, some := range moved {
		c.rewriteProbes(e, some, &cfg.Targets[i])
	}
	// The volume first: containers may begin where volumes end, and insertions at the same
	// place keep this order.
	agent.client = slices.ContainsFunc(moved, c.getsClient)
	c.addVolume(w, e, scalar(lookup(parsed(m), "metadata"), "name"), agent.client)
	if signals {
		c.tellSignals(w, moved)
		c.shareProcesses(w, e)
	}
	c.addSidecar(w, e, agent)
	block(w.spec.get("containers").node) // if it is to be written anew
	return m
}

// probe returns a probe by which a kubelet asks the agent over HTTP. It is generous: the agent
// decides.
func (c *converter) probe(kind gate.Kind, name string, p *config.Probe, grace string) string {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("%s:", probeKeys[kind])
	switch kind {
	case gate.Startup:
		line("  httpGet: {path: /started/%s, port: %s}", name, c.healthPort())
		line("  periodSeconds: 1")
		line("  failureThreshold: %d # %s", startupThreshold(p), startupSum(p))
	case gate.Readiness:
		line("  httpGet: {path: /ready/%s, port: %s}", name, c.healthPort())
		line("  periodSeconds: 1")
		line("  failureThreshold: 3")
	case gate.Liveness:
		line("  httpGet: {path: /live/%s, port: %s}", name, c.healthPort())
		if p.InitialDelay > 0 {
			line("  initialDelaySeconds: %d # from the start of the container, which the agent does not see", delaySeconds(p))
		}
		line("  periodSeconds: 5")
		line("  timeoutSeconds: 2")
		line("  failureThreshold: 6 # 30 s for a restart of the agent")
	}
	if grace != "" {
		line("  terminationGracePeriodSeconds: %s", grace)
	}
	return b.String()
}

// delaySeconds returns the initial delay in whole seconds: the API server takes no
// decimals.
func delaySeconds(p *config.Probe) int64 {
	return int64((p.InitialDelay + time.Second - 1) / time.Second)
}

// withComment returns a number as it is written, with its comment.
func withComment(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n.LineComment == "" || strings.Contains(n.LineComment, "\n") {
		return n.Value
	}
	return n.Value + " " + n.LineComment
}

// startupSum says what startupThreshold is made of.
func startupSum(p *config.Probe) string {
	delay := ""
	if p.InitialDelay > 0 {
		delay = fmt.Sprintf("%v s + ", p.InitialDelay.Seconds())
	}
	return fmt.Sprintf("%s%d × %v s of the agent's startup probe, and 30 s for the agent", delay, p.FailureThreshold, p.Period.Seconds())
}

// startupThreshold returns how many seconds the kubelet waits: the longest time that the
// agent's probe may take, and some seconds for the agent.
func startupThreshold(p *config.Probe) int64 {
	seconds := p.InitialDelay.Seconds() + p.Period.Seconds()*float64(p.FailureThreshold)
	if seconds > math.MaxInt32-forAgent {
		return math.MaxInt32 // the API server takes no more
	}
	total := p.InitialDelay + p.Period*time.Duration(p.FailureThreshold)
	return int64((total+time.Second-1)/time.Second) + forAgent
}

// addVolume adds the agent's volume and, if there is one, that of the client.
func (c *converter) addVolume(w *workload, e *editor, configMap string, client bool) {
	item := fmt.Sprintf("- name: %s\n  configMap: {name: %s}\n", sidecarName, configMap)
	if client {
		item += fmt.Sprintf("- name: %s\n  emptyDir: {}\n", clientName)
	}
	spec := w.spec.node
	key := index(spec, "containers")
	switch i := index(spec, "volumes"); {
	case i < 0:
		e.add(spec, "volumes:\n"+indented(item, listIndent(spec, key)))
	case len(spec.Content[i+1].Content) == 0:
		e.replace(spec, i, "volumes:\n"+indented(item, listIndent(spec, key)))
	default:
		e.appendTo(spec, i, item)
	}
}

// listIndent returns how far the items of the list at i are from its key.
func listIndent(m *yaml.Node, i int) int {
	k, v := m.Content[i], m.Content[i+1]
	if v.Line == k.Line || v.Column < k.Column || v.Column > k.Column+8 {
		return 2
	}
	return v.Column - k.Column
}

// all returns every container of the pod's spec.
func (w *workload) all() []place {
	return append(w.spec.get("containers").items(), w.spec.get("initContainers").items()...)
}

// hasAgent reports whether the agent is already in the pod. The pod's probes then already
// ask the agent.
func (c *converter) hasAgent(w *workload) bool {
	before := len(c.errs)
	for _, k := range w.all() {
		name := scalar(k.node, "name")
		switch {
		case isAgent(scalar(k.node, "image"), c.options.Image):
			c.wrong(k.node.Line, k.path, "the agent is in this pod already")
		case name == sidecarName, name == clientName:
			c.wrong(k.node.Line, join(k.path, "name"), "the name "+name+" is that of the agent, which may be in this pod already")
		}
	}
	return len(c.errs) > before
}

// fits reports whether the agent can be added to the pod.
func (c *converter) fits(w *workload) bool {
	before := len(c.errs)
	for _, k := range w.all() {
		for _, p := range k.get("ports").items() {
			if port := scalar(p.node, "containerPort"); port == c.healthPort() || port == c.metricsPort() {
				c.wrong(p.node.Line, join(p.path, "containerPort"), "the port "+port+" is the agent's: give the agent another with --config.from-pod.health-port or --config.from-pod.metrics-port")
			}
		}
	}
	for _, k := range w.containers {
		for _, p := range k.probes {
			if port := probePort(p); (port == c.healthPort() || port == c.metricsPort()) && len(c.errs) == before {
				c.wrong(p.node.Line, p.path, "the port "+port+" is the agent's, which may be in this pod already")
			}
		}
	}
	for _, v := range w.spec.get("volumes").items() {
		if name := scalar(v.node, "name"); name == sidecarName || name == clientName {
			c.wrong(v.node.Line, join(v.path, "name"), "the name "+name+" is that of the agent's volume")
		}
	}
	if name := w.spec.get("os").get("name"); name.node != nil && name.node.Value == "windows" {
		c.wrong(name.node.Line, name.path, "the agent's image is for Linux")
	}
	for _, key := range []string{"initContainers", "volumes"} {
		if p := w.spec.get(key); p.node != nil && p.node.Kind != yaml.SequenceNode {
			c.wrong(p.node.Line, p.path, "must be a list")
		}
	}
	return len(c.errs) == before
}

// isAgent reports whether an image is the agent's, whatever its version. An image with
// the agent's usual name is the agent's, whatever its registry.
func isAgent(image, agent string) bool {
	image, _, _ = strings.Cut(image, "@")
	agent, _, _ = strings.Cut(agent, "@")
	directory, name := path.Split(image)
	name, _, _ = strings.Cut(name, ":")
	agentDirectory, agentName := path.Split(agent)
	agentName, _, _ = strings.Cut(agentName, ":")
	return name == "prober-exporter" || name == "prober_exporter" || name == agentName && directory == agentDirectory
}
