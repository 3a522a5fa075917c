// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0; see LICENSE.

(import 'targets.libsonnet') +
(import 'probes.libsonnet') +
(import 'agents.libsonnet') +
{
  // An alert by its name: the configuration has the rest.
  _alert(name, expr, summary, description):: {
    local config = $._config.alerts[name],
    alert: name,
    expr: expr,
    'for': config['for'],
    labels: { severity: config.severity },
    annotations: {
      summary: summary,
      description: description,
      runbook_url: $._config.runbookURL % std.asciiLower(name),
    },
  },
}
