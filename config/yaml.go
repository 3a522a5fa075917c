// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/gate"
)

// redacted stands for a secret.
const redacted = "<redacted>"

// YAML returns the configuration after defaults, in the form of the file. Loading it
// gives the same configuration, but for the secrets: env values, header values and
// the user of an httpGet path are replaced by <redacted>.
func (c *Config) YAML() ([]byte, error) {
	targets := list()
	for i := range c.Targets {
		targets.Content = append(targets.Content, c.Targets[i].node())
	}
	root := mapping()
	if c.Kubernetes != nil {
		add(root, "kubernetes", c.Kubernetes.node())
	}
	add(root, "targets", targets)
	return encode(root)
}

// YAML returns the target after defaults, as Config.YAML has it.
func (t *Target) YAML() ([]byte, error) { return encode(t.node()) }

func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (t *Target) node() *yaml.Node {
	n := mapping()
	add(n, "name", text(t.Name))
	add(n, "host", text(t.Host))
	ports := list()
	for _, p := range t.Ports {
		port := mapping()
		addText(port, "name", p.Name)
		add(port, "containerPort", integer(int64(p.ContainerPort)))
		add(port, "protocol", text(p.Protocol))
		ports.Content = append(ports.Content, port)
	}
	addSome(n, "ports", ports)
	env := list()
	for _, v := range t.Env {
		env.Content = append(env.Content, secret(v.Name))
	}
	addSome(n, "env", env)
	labels := mapping()
	for _, l := range t.Labels {
		add(labels, l.Name, text(unsubstituted(l.Value)))
	}
	addSome(n, "labels", labels)
	add(n, "instance", t.Instance.node())
	for _, k := range gate.Kinds() {
		if p := t.Probe(k); p != nil {
			add(n, probeKeys[k], p.node())
		}
		if len(t.Members(k)) > 0 {
			add(n, listKeys[k], t.Several[k].node())
		}
	}
	if t.Restart != nil {
		add(n, "restart", t.Restart.node())
	}
	return n
}

func (p *Probe) node() *yaml.Node {
	n := mapping()
	addText(n, "name", p.Name)
	action := mapping()
	if a := p.kind(); a != nil {
		a.fill(p, action)
	}
	add(n, p.Action(), action)
	add(n, "initialDelaySeconds", scalar(formatSeconds(p.InitialDelay)))
	add(n, "timeoutSeconds", scalar(formatSeconds(p.Timeout)))
	add(n, "periodSeconds", scalar(formatSeconds(p.Period)))
	if p.UnhealthyPeriod != 0 {
		add(n, "unhealthyPeriodSeconds", scalar(formatSeconds(p.UnhealthyPeriod)))
	}
	add(n, "successThreshold", integer(int64(p.SuccessThreshold)))
	add(n, "failureThreshold", integer(int64(p.FailureThreshold)))
	if s := p.TerminationGracePeriodSeconds; s != nil {
		add(n, "terminationGracePeriodSeconds", integer(*s))
	}
	return n
}

func (r PortRef) node() *yaml.Node {
	if r.Name != "" {
		return text(r.Name)
	}
	return integer(int64(r.Number))
}

// addPort adds a port unless the host is a socket.
func addPort(n *yaml.Node, p PortRef) {
	if p.Number != 0 {
		add(n, "port", p.node())
	}
}

// unsubstituted returns s in the form that a key with ${NAME} substitution needs.
func unsubstituted(s string) string { return strings.ReplaceAll(s, "${", "$${") }

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func list() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

// scalar returns a number.
func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

func integer(i int64) *yaml.Node { return scalar(strconv.FormatInt(i, 10)) }

// text returns a string. Only a text that is plain beyond doubt is left to the emitter: a
// block of text may come back with different spaces.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if !only(s, alphanumeric+"-_./") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// secret returns a name and a redacted value.
func secret(name string) *yaml.Node {
	n := mapping()
	add(n, "name", text(name))
	add(n, "value", text(redacted))
	return n
}

func add(n *yaml.Node, key string, v *yaml.Node) {
	n.Content = append(n.Content, text(key), v)
}

// addText adds a string unless it is unset.
func addText(n *yaml.Node, key, s string) {
	if s != "" {
		add(n, key, text(s))
	}
}

// addSome adds a list or a mapping unless it is empty.
func addSome(n *yaml.Node, key string, v *yaml.Node) {
	if len(v.Content) > 0 {
		add(n, key, v)
	}
}
