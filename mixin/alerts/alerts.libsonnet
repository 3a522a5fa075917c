// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

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

  // The probe of an alert. A member of a list has a name.
  _probe:: '{{ $labels.probe_type }} probe{{ with $labels.probe }} {{ . }}{{ end }}',

  // The end of a description: the failure that the target of an alert has had most often,
  // by reason, probe_type and probe; nothing if it has had none. The labels that are named are
  // the alert's own, the matchers narrow the search. A label that the alert does not have is
  // empty, which the series without that label match.
  //
  // The template asks for it, as a label would make another alert of each reason: one
  // that is resolved and fires again whenever the reason changes.
  _failure(matchers='', labels=[])::
    local equal = ['target'] + $._config.agentLabels + labels;
    local selector = std.join(',', [name + '=%q' for name in equal] + [m for m in [matchers] if m != '']);
    '{{ with printf %s %s | query }}{{ with first . }} Its most frequent failure in %s: reason {{ label "reason" . }}, probe_type {{ label "probe_type" . }}{{ with label "probe" . }}, probe {{ . }}{{ end }}.{{ end }}{{ end }}' % [
      std.escapeStringJson('topk(1, %s{%s})' % [$._parts.recorded.failures, selector]),
      std.join(' ', ['$labels.' + name for name in equal]),
      $._config.failureWindow,
    ],
}
