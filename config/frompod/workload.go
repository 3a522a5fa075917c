// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// podSpec returns the group of a kind of workload and the path of its pod's spec. There
// is no path if the kind is not a workload.
func podSpec(kind string) (group string, path []string) {
	switch kind {
	case "Pod":
		return "", []string{"spec"}
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return "apps", []string{"spec", "template", "spec"}
	case "Job":
		return "batch", []string{"spec", "template", "spec"}
	case "CronJob":
		return "batch", []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return "", nil
}

var probeKeys = [gate.NumKinds]string{
	gate.Startup: "startupProbe", gate.Readiness: "readinessProbe", gate.Liveness: "livenessProbe",
}

// workload is an object that makes pods.
type workload struct {
	kind       string
	root, spec place
	containers []container // ordinary ones first, then native sidecars
}

// container is a container that a kubelet may probe.
type container struct {
	place
	name    string
	sidecar bool // a native one
	probes  [gate.NumKinds]place
}

// name is empty if the API server chooses the name.
func (w *workload) name() string      { return scalar(w.root.get("metadata").node, "name") }
func (w *workload) namespace() string { return scalar(w.root.get("metadata").node, "namespace") }

// workloads returns the workloads of a document, or of a list in it.
func (c *converter) workloads(root place) []workload {
	kind := scalar(root.node, "kind")
	if kind == "List" {
		var found []workload
		for _, item := range root.get("items").items() {
			found = append(found, c.workloads(item)...)
		}
		return found
	}
	wantGroup, path := podSpec(kind)
	group, version, slash := strings.Cut(scalar(root.node, "apiVersion"), "/")
	if !slash {
		group, version = "", group
	}
	if path == nil || group != wantGroup || version == "" {
		c.warnUnread(root)
		return nil
	}
	w := workload{kind: kind, root: root, spec: root}
	for _, key := range path {
		next := w.spec.get(key)
		if next.node == nil {
			c.wrong(w.spec.node.Line, next.path, "required value")
			return nil
		}
		if next.node.Kind != yaml.MappingNode {
			c.wrong(next.node.Line, next.path, "must be a mapping")
			return nil
		}
		w.spec = next
	}
	if containers := w.spec.get("containers"); containers.node == nil {
		c.wrong(w.spec.node.Line, containers.path, "required value")
		return nil
	}
	names := map[string]int{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, item := range c.list(w.spec.get(list)) {
			if k, ok := c.container(item, list == "initContainers", names); ok {
				w.containers = append(w.containers, k)
			}
		}
	}
	return []workload{w}
}

// list returns the items of a list, which may be missing.
func (c *converter) list(p place) []place {
	if p.node != nil && p.node.Kind != yaml.SequenceNode {
		c.wrong(p.node.Line, p.path, "must be a list")
	}
	return p.items()
}

// container returns a container that may be probed. names has the names so far.
func (c *converter) container(p place, init bool, names map[string]int) (container, bool) {
	if p.node.Kind != yaml.MappingNode {
		c.wrong(p.node.Line, p.path, "must be a mapping")
		return container{}, false
	}
	k := container{place: p, name: scalar(p.node, "name"), sidecar: init}
	if first, taken := names[k.name]; taken && k.name != "" {
		c.wrong(p.node.Line, join(p.path, "name"), fmt.Sprintf("duplicate name %q, first on line %d", k.name, c.offset+first))
		return container{}, false
	}
	names[k.name] = p.node.Line
	runs := !init || scalar(p.node, "restartPolicy") == "Always"
	for _, kind := range gate.Kinds() {
		k.probes[kind] = p.get(probeKeys[kind])
		if n := k.probes[kind].node; n != nil && !runs {
			c.wrong(n.Line, k.probes[kind].path, "may not be set for init containers without restartPolicy=Always")
		}
		c.foreign(k.probes[kind])
	}
	return k, runs
}

// chosen are probes of a container that go into the configuration.
type chosen struct {
	container *container
	kinds     []gate.Kind
	grace     bool       // with terminationGracePeriodSeconds
	signal    *signalled // nil: the kubelet restarts the container
}

// everything chooses all probes of a container.
func everything(k *container) chosen {
	some := chosen{container: k, grace: true}
	for _, kind := range gate.Kinds() {
		if k.probes[kind].node != nil {
			some.kinds = append(some.kinds, kind)
		}
	}
	return some
}

// probed returns the chosen probes of the workload's containers, without containers that
// have none.
func (w *workload) probed(choose func(*container) chosen) []chosen {
	var all []chosen
	for i := range w.containers {
		if some := choose(&w.containers[i]); len(some.kinds) > 0 {
			all = append(all, some)
		}
	}
	return all
}

// configuration returns a file with a target for each of these containers, and the loaded
// configuration. Both are empty if there is no container, or after a mistake. Load checks
// the probes, so rules and messages are those of a configuration.
func (c *converter) configuration(w *workload, all []chosen) (string, *config.Config) {
	if len(all) == 0 {
		return "", nil
	}
	targets := list()
	for _, some := range all {
		targets.Content = append(targets.Content, c.target(some))
	}
	root := mapping(text("targets"), targets)
	source := encode(root)
	cfg, notices, err := config.Load(c.file, []byte(source), func(string) (string, bool) { return "", false })
	if errs, ok := err.(config.Errors); ok { //nolint:errorlint // the type is Load's promise
		for _, e := range errs {
			line, path := locate(w, all, targets, e.Path)
			message := regexp.MustCompile(`, first on line \d+$`).ReplaceAllString(e.Message, "")
			message = strings.Replace(message, "the target's ports", "the ports of the container", 1)
			c.wrong(line, path, message)
		}
		return "", nil
	}
	for _, n := range notices {
		// A command that is missing here may be in the agent's image.
		if line, path := locate(w, all, targets, n.Path); n.Level == config.Warn && !strings.Contains(path, ".exec.") && !c.keepsDelay(cfg, n.Path) {
			c.warn(line, path, n.Message)
		}
	}
	return source, cfg
}

// locate converts a path in the configuration to the line and the path in the manifest's
// document. Nodes of the configuration keep the lines of the manifest's nodes.
func locate(w *workload, all []chosen, targets *yaml.Node, path string) (int, string) {
	m := regexp.MustCompile(`^targets\[(\d+)\](.*)$`).FindStringSubmatch(path)
	if m == nil {
		return w.root.node.Line, w.root.path
	}
	i, err := strconv.Atoi(m[1])
	if err != nil || i >= len(all) {
		return w.root.node.Line, w.root.path
	}
	n, line := targets.Content[i], all[i].container.node.Line
	for _, step := range regexp.MustCompile(`\.([^.\[\]]+)|\[(\d+)\]`).FindAllStringSubmatch(m[2], -1) {
		if step[1] != "" {
			n = lookup(n, step[1])
		} else if item, err := strconv.Atoi(step[2]); err == nil && n.Kind == yaml.SequenceNode && item < len(n.Content) {
			n = n.Content[item]
		} else {
			n = nil
		}
		if n == nil {
			break
		}
		line = max(line, n.Line)
	}
	return line, all[i].container.path + inSource(all[i].container, m[2])
}

// inSource converts a path below a target to a path below its container. The index of a
// variable changes, because the target lacks some variables of the container.
func inSource(k *container, path string) string {
	if path == ".restart.signal.stopSignal" {
		return ".lifecycle.stopSignal"
	}
	m := regexp.MustCompile(`^\.env\[(\d+)\](.*)$`).FindStringSubmatch(path)
	if m == nil {
		return path
	}
	left, _ := strconv.Atoi(m[1]) // it is digits
	for i, item := range k.get("env").items() {
		if lookup(item.node, "valueFrom") != nil {
			continue
		}
		if left--; left < 0 {
			return fmt.Sprintf(".env[%d]%s", i, m[2])
		}
	}
	return path
}

// target returns the target of a container.
func (c *converter) target(some chosen) *yaml.Node {
	k := some.container
	n := mapping()
	if i := index(k.node, "name"); i >= 0 {
		n.Content = append(n.Content, text("name"), bare(k.node.Content[i+1]))
	}
	if ports := k.get("ports"); ports.node != nil && usesName(some) {
		n.Content = append(n.Content, text("ports"), only(ports, "name", "containerPort", "protocol"))
	}
	if env := k.get("env"); env.node != nil && usesCommand(some) {
		if env := variables(env); len(env.Content) > 0 {
			n.Content = append(n.Content, text("env"), env)
		}
	}
	if some.signal != nil {
		n.Content = append(n.Content, some.signal.instance()...)
	}
	for _, kind := range some.kinds {
		i := index(k.node, probeKeys[kind])
		key, probe := *k.node.Content[i], clone(k.node.Content[i+1])
		if grace := index(probe, "terminationGracePeriodSeconds"); grace >= 0 && !some.grace && some.signal == nil {
			probe.Content = slices.Delete(probe.Content, grace, grace+2)
		}
		literal(probe)
		n.Content = append(n.Content, &key, probe)
	}
	if some.signal != nil {
		n.Content = append(n.Content, some.signal.restart()...)
	}
	return n
}

// usesName reports whether a probe names a port.
func usesName(some chosen) bool {
	return slices.ContainsFunc(some.kinds, func(kind gate.Kind) bool {
		for _, action := range []string{"httpGet", "tcpSocket"} {
			if port := some.container.probes[kind].get(action).get("port").node; port != nil && port.ShortTag() == "!!str" {
				return true
			}
		}
		return false
	})
}

// usesCommand reports whether a probe is an exec probe.
func usesCommand(some chosen) bool {
	return slices.ContainsFunc(some.kinds, func(kind gate.Kind) bool { return isExec(some.container.probes[kind]) })
}

func isExec(probe place) bool { return probe.get("exec").node != nil }

// only returns a copy of a list in which the items have only these keys.
func only(p place, keys ...string) *yaml.Node {
	items := list()
	if p.node.Kind != yaml.SequenceNode {
		return bare(p.node)
	}
	for _, item := range p.items() {
		if item.node.Kind != yaml.MappingNode {
			items.Content = append(items.Content, bare(item.node))
			continue
		}
		known := mapping()
		known.Style, known.Line = item.node.Style, item.node.Line
		for _, key := range keys {
			if i := index(item.node, key); i >= 0 {
				known.Content = append(known.Content, bare(item.node.Content[i]), bare(item.node.Content[i+1]))
			}
		}
		items.Content = append(items.Content, known)
	}
	return items
}

// variables returns the variables whose values are in the manifest.
func variables(env place) *yaml.Node {
	all := only(env, "name", "value", "valueFrom")
	all.Content = slices.DeleteFunc(all.Content, func(n *yaml.Node) bool { return lookup(n, "valueFrom") != nil })
	for _, n := range all.Content {
		escape(lookup(n, "value"))
	}
	return all
}

// literal escapes the probe's texts so that the agent replaces nothing in them: in a
// manifest ${NAME} stands for itself.
func literal(probe *yaml.Node) {
	for _, action := range []string{"httpGet", "tcpSocket"} {
		p := place{node: lookup(probe, action)}
		escape(p.get("host").node)
		for _, header := range p.get("httpHeaders").items() {
			escape(header.get("value").node)
		}
	}
}

func escape(n *yaml.Node) {
	if n != nil && n.Kind == yaml.ScalarNode {
		n.Value = strings.ReplaceAll(n.Value, "${", "$${")
	}
}
