// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// signalled is how the agent finds the process of a container, and how it ends the process.
type signalled struct {
	match string // for the command line
	stop  string // the signal; empty: the agent's default
	grace string // in seconds; empty: the agent's default
}

// becomesAnother are programs that become the program that their arguments name, or that run a
// script in which anything may be named.
var becomesAnother = []string{
	"sh", "ash", "bash", "dash", "ksh", "zsh", "busybox",
	"env", "nice", "nohup", "stdbuf", "chroot", "setpriv", "gosu", "su-exec", "chpst", "exec",
}

// findProcesses fills in how the agent finds the processes of these containers. It reports a
// mistake where the manifest does not tell.
func (c *converter) findProcesses(w *workload, moved []chosen) bool {
	before := len(c.errs)
	if host := w.spec.get("hostPID"); strings.EqualFold(scalar(w.spec.node, "hostPID"), "true") {
		c.wrong(host.node.Line, host.path, "the agent would look for the application among the processes of the node")
	}
	grace := w.spec.get("terminationGracePeriodSeconds")
	seconds := ""
	if grace.node != nil {
		if seconds = grace.node.Value; !isNumber(seconds) {
			c.wrong(grace.node.Line, grace.path, "must be a number")
		}
	}
	for i := range moved {
		if k := moved[i].container; moved[i].ends() {
			moved[i].signal = &signalled{
				match: c.match(w, k),
				stop:  scalar(k.get("lifecycle").node, "stopSignal"),
				grace: seconds,
			}
		}
	}
	return len(c.errs) == before
}

// match returns the expression for the command line of a container.
func (c *converter) match(w *workload, k *container) string {
	command := k.get("command")
	words := commandOf(*k)
	switch {
	case command.node == nil || len(command.node.Content) == 0:
		c.wrong(k.node.Line, command.path, "required value: the agent finds the process by its command line, and that of the image is not in the manifest; write the image's ENTRYPOINT here, or use --config.from-pod.restart=exec")
		return ""
	case len(words) == 0:
		c.wrong(command.node.Line, command.path, "must begin with the name of a program")
		return ""
	case slices.Contains(becomesAnother, path.Base(words[0])) || strings.HasSuffix(words[0], ".sh"):
		c.wrong(command.node.Line, command.path, printable(words[0])+" may become another program, whose command line is not in the manifest; name that program here, or use --config.from-pod.restart=exec")
		return ""
	}
	for _, other := range w.containers {
		if theirs := commandOf(other); other.name != k.name && len(theirs) >= len(words) && slices.Equal(theirs[:len(words)], words) {
			c.wrong(command.node.Line, command.path, "begins the command of the container "+other.name+", too: the agent could not tell their processes apart")
			return ""
		}
	}
	return "^" + regexp.QuoteMeta(strings.Join(words, " ")) + "( |$)"
}

// isNumber reports whether a text is a number such as the API server takes.
func isNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}

// printable returns a text as it is, quoted if the text does not fit a line.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// commandOf returns the words of a container's command in the manifest, without those from the
// first on into which a kubelet puts a variable.
func commandOf(k container) (words []string) {
	for _, word := range k.get("command").items() {
		if word.node.Kind != yaml.ScalarNode || word.node.Value == "" || strings.Contains(word.node.Value, "$(") {
			break
		}
		words = append(words, word.node.Value)
	}
	return words
}

// instance returns the target's keys that say where the agent sees the process.
func (s *signalled) instance() []*yaml.Node {
	return []*yaml.Node{text("instance"), mapping(text("source"), text(config.SourceProcess), text("match"), text(s.match))}
}

// restart returns the target's keys that say how the agent ends the process.
func (s *signalled) restart() []*yaml.Node {
	handler := mapping()
	handler.Style = yaml.FlowStyle
	if s.stop != "" {
		handler.Content = []*yaml.Node{text("stopSignal"), text(s.stop)}
	}
	block := mapping(text("signal"), handler)
	if s.grace != "" && s.grace != "0" { // a kubelet's 0 is 2 s, the agent's least
		block.Content = append(block.Content, text("terminationGracePeriodSeconds"), &yaml.Node{Kind: yaml.ScalarNode, Value: s.grace})
	}
	return []*yaml.Node{text("restart"), block}
}

// signalAs gives the agent a user whom the kernel lets signal these containers.
func (c *converter) signalAs(a *agent, w *workload, moved []chosen) bool {
	before := len(c.errs)
	users := map[string]bool{}
	for _, some := range moved {
		k := some.container
		if some.signal == nil {
			continue
		}
		id := k.get("securityContext").get("runAsUser")
		if id.node == nil {
			if pods := w.spec.get("securityContext").get("runAsUser"); pods.node != nil {
				id = pods
			}
		}
		switch {
		case id.node == nil:
			c.wrong(k.node.Line, id.path, "required value: the agent must run as the user of the application to signal its process, and the user of the image is not in the manifest; set the user here, or use --config.from-pod.restart=exec")
		case !isNumber(id.node.Value):
			c.wrong(id.node.Line, id.path, "must be a number")
		default:
			users[id.node.Value] = true
		}
	}
	switch {
	case len(c.errs) > before:
		return false
	case len(users) > 1:
		c.warn(w.spec.node.Line, w.spec.path, "the applications have different users: the agent runs as root with the capability KILL")
		a.user, a.capabilities = "    runAsNonRoot: false\n    runAsUser: 0 # the applications have different users\n", ", add: [KILL]"
		return true
	}
	for id := range users {
		a.user = fmt.Sprintf("    runAsNonRoot: %t\n    runAsUser: %s # the application's, whose process the agent signals\n", id != "0", id)
	}
	return true
}

// shareProcesses lets the agent see the processes of the other containers.
func (c *converter) shareProcesses(w *workload, e *editor) {
	const line = "shareProcessNamespace: true # the agent sees and signals the application's process\n"
	spec := w.spec.node
	switch i := index(spec, "shareProcessNamespace"); {
	case i < 0:
		e.before(spec, index(spec, "containers"), line)
	case !strings.EqualFold(spec.Content[i+1].Value, "true"):
		e.replace(spec, i, line)
	}
}

// orderProbe returns the startup probe of a native sidecar whose failures end nothing: the next
// container waits for it, and the agent restarts.
func (c *converter) orderProbe(k *container) string {
	return fmt.Sprintf("%s:\n  httpGet: {path: /started/%s, port: %s}\n  periodSeconds: 1\n  failureThreshold: 2147483647 # the next container waits, and the agent restarts this one\n",
		probeKeys[gate.Startup], k.name, c.healthPort())
}

// tellSignals reports what else changes when the agent signals.
func (c *converter) tellSignals(w *workload, moved []chosen) {
	c.warn(w.spec.node.Line, w.spec.path, "the containers share one process namespace: no application is process 1 any more, and each sees the processes of the others")
	for _, some := range moved {
		if some.signal == nil {
			continue
		}
		k := some.container
		c.notice(config.Info, k.get("command").node.Line, k.get("command").path, fmt.Sprintf("the agent finds the process by %s: a script, or a program that changes its command line, needs another instance.match, or instance.pidFile, in the ConfigMap", printable(some.signal.match)))
		if hook := k.get("lifecycle").get("preStop"); hook.node != nil {
			c.warn(hook.node.Line, hook.path, "does not run before the agent's signal, only when the pod is deleted")
		}
	}
}
