// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// longestName is the longest name of an object that the API server accepts.
const longestName = 253

// configMap returns the ConfigMap that the sidecar of a workload mounts, or nothing if
// it cannot have a name.
func (c *converter) configMap(w *workload, source string) string {
	meta := w.root.get("metadata")
	base := w.name()
	if base == "" {
		base = strings.TrimRight(scalar(meta.node, "generateName"), "-.")
	}
	line := w.root.node.Line
	if meta.node != nil {
		line = meta.node.Line
	}
	if !validName(base) {
		c.wrong(line, join(meta.path, "name"), "must be a name of lower-case letters, digits, '-' and '.'")
		return ""
	}
	name := base + "-prober"
	if c.configMaps[w.namespace()+"/"+name] {
		// A Deployment and a CronJob may have the same name, but ConfigMaps may not.
		name = base + "-" + strings.ToLower(w.kind) + "-prober"
	}
	switch {
	case c.configMaps[w.namespace()+"/"+name]:
		c.wrong(line, join(meta.path, "name"), "the ConfigMap "+name+" is in the file already")
		return ""
	case len(name) > longestName:
		c.wrong(line, join(meta.path, "name"), "is too long for a ConfigMap beside it")
		return ""
	}
	c.configMaps[w.namespace()+"/"+name] = true

	metadata := mapping(text("name"), text(name))
	if namespace := w.namespace(); namespace != "" {
		metadata.Content = append(metadata.Content, text("namespace"), text(namespace))
	}
	data := text(source)
	data.Style = yaml.LiteralStyle
	return encode(mapping(
		text("apiVersion"), text("v1"),
		text("kind"), text("ConfigMap"),
		text("metadata"), metadata,
		text("data"), mapping(text("prober.yml"), data),
	))
}

// validName reports whether an object may have this name.
func validName(s string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789"
	return s != "" && strings.Trim(s, alphanumeric+"-.") == "" &&
		strings.Trim(s[:1], alphanumeric) == "" && strings.Trim(s[len(s)-1:], alphanumeric) == ""
}
