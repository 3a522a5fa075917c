// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package frompod converts Kubernetes manifests to a configuration, and rewrites manifests
// so that the kubelet asks the agent.
package frompod

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
)

// Options are the options of Convert.
type Options struct {
	// Rewrite asks for the manifest with the sidecar, instead of the configuration.
	Rewrite bool
	// Image is the image of the sidecar.
	Image string
	// Restart says who restarts a container; empty: ByProbe. It needs Rewrite.
	Restart Restart
	// HealthPort and MetricsPort are where the sidecar listens; 0: 9708 and 9709.
	HealthPort, MetricsPort int
}

// Convert reads the documents of a manifest. Without Rewrite it returns one YAML document
// for each workload that has a probe: the configuration of that workload. With Rewrite it
// returns the manifest with sidecars, their configuration in ConfigMaps, and probes that
// ask the sidecars; everything that need not change stays byte for byte. An error is of
// type config.Errors and has every mistake; the result is then empty. Notices come in both
// cases. Messages call the file name.
func Convert(name string, data []byte, o Options) ([]byte, []config.Notice, error) {
	c := &converter{file: name, options: o, configMaps: map[string]bool{}}
	documents := split(string(data))
	for i := range documents {
		c.read(&documents[i])
	}
	c.noteConfigMaps(documents)
	var out strings.Builder
	workloads := 0
	for i := range documents {
		workloads += len(documents[i].workloads)
		out.WriteString(c.convert(&documents[i]))
	}
	switch {
	case len(c.errs) > 0:
	case c.converted > 1 && !o.Rewrite:
		c.offset = 0
		c.warn(1, "", fmt.Sprintf("has %d workloads with probes: the result has one document for each, the file of its own agent", c.converted))
	case c.converted > 0:
	case workloads == 0:
		c.nothing("has no Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob")
	case c.kept:
		c.nothing("has no probe that can be moved to the agent")
	default:
		c.nothing("has no probe to convert")
	}
	slices.SortStableFunc(c.errs, func(a, b config.Error) int { return cmp.Compare(a.Line, b.Line) })
	slices.SortStableFunc(c.notices, func(a, b config.Notice) int { return cmp.Compare(a.Line, b.Line) })
	if len(c.errs) > 0 {
		return nil, c.notices, c.errs
	}
	return []byte(out.String()), c.notices, nil
}

// converter goes on after a mistake, so that one run finds all mistakes.
type converter struct {
	file       string
	options    Options
	offset     int // of the current document's lines
	errs       config.Errors
	notices    []config.Notice
	configMaps map[string]bool // namespace/name of the ConfigMaps in the file
	converted  int             // workloads
	kept       bool            // some workload has probes, and all of them stay
}

// maxListed bounds the listed mistakes, and the listed notices.
const maxListed = 1000

func (c *converter) wrong(line int, path, message string) {
	if len(c.errs) < maxListed {
		c.errs = append(c.errs, config.Error{File: c.file, Line: c.offset + line, Path: path, Message: message})
	}
}

func (c *converter) warn(line int, path, message string) {
	c.notice(config.Warn, line, path, message)
}

// notice adds a notice once: a workload's configuration may be made twice.
func (c *converter) notice(level config.NoticeLevel, line int, path, message string) {
	n := config.Notice{Level: level, File: c.file, Line: c.offset + line, Path: path, Message: message}
	if len(c.notices) < maxListed && !slices.Contains(c.notices, n) {
		c.notices = append(c.notices, n)
	}
}

// nothing reports that there is nothing to do, as a mistake: printing the unchanged input
// could be taken for success.
func (c *converter) nothing(message string) {
	c.offset = 0
	c.wrong(1, "", message)
}

// document is a document of the file. Lines in its nodes are its own.
type document struct {
	text      string
	offset    int        // lines before it
	root      *yaml.Node // with all aliases and merges followed; nil if it has no workload
	workloads []workload
}

// split cuts a file where kubectl does: before each line that begins with ---.
func split(text string) []document {
	var documents []document
	begin, line := 0, 0
	start := document{}
	at := 0
	for l := range strings.Lines(text) {
		rest, marks := strings.CutPrefix(l, "---")
		if marks && strings.Trim(rest[:min(1, len(rest))], " \t\r\n") == "" && at > begin {
			start.text = text[begin:at]
			documents = append(documents, start)
			begin, start = at, document{offset: line}
		}
		at += len(l)
		line++
	}
	start.text = text[begin:]
	return append(documents, start)
}

// read finds the workloads of a document.
func (c *converter) read(d *document) {
	c.offset = d.offset
	root := c.parse(d.text)
	if root == nil {
		return
	}
	// Documents without a workload pass unchanged, whatever they are.
	if !concerns(root.Content[0]) {
		c.warnUnread(place{node: root.Content[0]})
		return
	}
	e := expander{c: c, left: maxNodes}
	if root = e.expand(root); e.failed {
		return
	}
	if root.Content[0].Style&yaml.FlowStyle != 0 {
		unflow(root) // it is JSON
	}
	d.root = root
	d.workloads = c.workloads(place{node: root.Content[0], path: ""})
}

// concerns reports whether a document is a workload, or a list, which may have workloads.
func concerns(n *yaml.Node) bool {
	kind := scalar(n, "kind")
	_, path := podSpec(kind)
	return path != nil || kind == "List"
}

// noteConfigMaps notes the ConfigMaps of the file: a second one of the same name would
// replace the first.
func (c *converter) noteConfigMaps(documents []document) {
	for i := range documents {
		var n yaml.Node
		if yaml.Unmarshal([]byte(documents[i].text), &n) != nil || len(n.Content) == 0 || scalar(n.Content[0], "kind") != "ConfigMap" {
			continue
		}
		if meta := lookup(n.Content[0], "metadata"); meta != nil {
			c.configMaps[scalar(meta, "namespace")+"/"+scalar(meta, "name")] = true
		}
	}
}

// convert returns the output for a document.
func (c *converter) convert(d *document) string {
	c.offset = d.offset
	if c.options.Rewrite {
		return c.rewrite(d)
	}
	var out strings.Builder
	for i := range d.workloads {
		w := &d.workloads[i]
		all := w.probed(everything)
		text, _ := c.configuration(w, all)
		if text == "" || c.hasAgent(w) {
			continue
		}
		c.warnings(w, all)
		c.warnExec(all)
		if c.converted++; c.converted > 1 {
			out.WriteString("---\n")
		}
		out.WriteString("# " + w.title() + "\n" + text)
	}
	return out.String()
}

// title names a workload for a person.
func (w *workload) title() string {
	switch name := w.name(); {
	case name == "":
		return w.kind
	case validName(name):
		return w.kind + " " + name
	default:
		return w.kind + " " + strconv.QuoteToASCII(name)
	}
}
