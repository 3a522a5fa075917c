// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The mixin command renders the mixin: rules and alerts as YAML, dashboards as JSON.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-jsonnet"
)

func main() {
	dir := flag.String("dir", ".", "directory of mixin.libsonnet")
	out := flag.String("out", "rendered", "directory to write to")
	config := flag.String("config", "{}", "what to put over _config, as jsonnet")
	flag.Parse()
	if err := write(*dir, *config, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mixin:", err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

// write renders the mixin into files under out.
func write(dir, config, out string) error {
	files, err := render(dir, config)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make room for %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// header is the beginning of the rendered YAML.
const header = `# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0
#
# Rendered from mixin/ by "make mixin".
`

// files is the Jsonnet program that makes a document of each file, by the file's name.
const files = `
local mixin = (import 'mixin.libsonnet') + { _config+:: %s };
local yaml(value) = std.extVar('header') + std.manifestYamlDoc(value, quote_keys=false);
{
  'alerts.yaml': yaml(mixin.prometheusAlerts),
  'rules.yaml': yaml(mixin.prometheusRules),
} + {
  ['dashboards/' + name]: std.manifestJsonEx(mixin.grafanaDashboards[name], '  ')
  for name in std.objectFields(mixin.grafanaDashboards)
}
`

// render returns the rendered files by their names.
func render(dir, config string) (map[string]string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	vm.ExtVar("header", header)
	vm.StringOutput = true
	texts, err := vm.EvaluateAnonymousSnippetMulti("files", fmt.Sprintf(files, config))
	if err != nil {
		return nil, fmt.Errorf("render the mixin: %w", err)
	}
	return texts, nil
}
