// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  _config+:: {
    // Put into every selector of alerts and rules: which agents, for example
    // 'job="prober"'. Empty: all that are scraped. The kubelet's own
    // prober_probe_total is told from ours by the label target, which it does not have.
    selector: '',

    // Which scrapes ought to be agents. Only for the two alerts on agents that say
    // nothing, as only these cannot know an agent by its metrics.
    scrapeSelector: 'job=~".*prober.*"',

    // The labels that name one agent, where a target's series are held against its
    // agent's. An agent's own targets cannot have labels of these names.
    agentLabels: ['job', 'instance'],

    // Of all rates. Four scrapes at least.
    window: '5m',

    // How far back the description of an alert looks for the failure that it names. A probe
    // on hold makes no attempts, so it is longer than any alert waits.
    failureWindow: '1h',

    // %s is the alert's name in lower case.
    runbookURL: 'https://github.com/prober-exporter/prober_exporter/blob/main/docs/runbooks.md#%s',

    // What each alert waits for, and its numbers. Why: docs/runbooks.md.
    alerts:: {
      ProberTargetNotReady: { 'for': '5m', severity: 'warning' },
      ProberTargetNotLive: { 'for': '2m', severity: 'critical' },
      // More than the longest back-off of a kubelet, five minutes.
      ProberTargetNotRunning: { 'for': '6m', severity: 'warning' },
      ProberTargetFlapping: { 'for': '0m', severity: 'warning', window: '15m', changes: 5 },
      ProberTargetRestarting: { 'for': '0m', severity: 'warning', window: '30m', restarts: 2 },
      ProberTargetRestartFailing: { 'for': '1m', severity: 'warning', window: '15m' },
      ProberTargetRestartLoop: { 'for': '0m', severity: 'warning', window: '30m', restarts: 2 },
      ProberTargetRestartLimited: { 'for': '0m', severity: 'warning' },
      ProberTargetStartupStuck: { 'for': '10m', severity: 'warning' },
      ProberProbeNearTimeout: { 'for': '15m', severity: 'warning', ratio: 0.8 },
      ProberProbeNotAttempted: { 'for': '10m', severity: 'warning', ratio: 0.1 },
      ProberProbeNotRun: { 'for': '5m', severity: 'critical', slackSeconds: 60 },
      ProberLivenessNearMiss: { 'for': '5m', severity: 'warning', window: '1d', times: 2 },
      ProberProbeCertificateExpires: { 'for': '15m', severity: 'warning', days: 7 },
      ProberExporterLate: { 'for': '10m', severity: 'warning', seconds: 0.25 },
      ProberExporterRestarting: { 'for': '0m', severity: 'warning', window: '30m', restarts: 2 },
      ProberExporterReloadFailed: { 'for': '5m', severity: 'warning' },
      ProberExporterNotConfigured: { 'for': '2m', severity: 'critical' },
      ProberExporterUnknownTarget: { 'for': '5m', severity: 'warning' },
      ProberExporterSourceDown: { 'for': '5m', severity: 'warning' },
      ProberExporterPodNotWritten: { 'for': '1m', severity: 'critical' },
      ProberExporterDown: { 'for': '2m', severity: 'critical' },
      ProberExporterAbsent: { 'for': '10m', severity: 'critical' },
    },

    dashboard: {
      uid: 'prober-exporter',
      title: 'Prober / Targets and agents',
      tags: ['prober-mixin'],
      refresh: '30s',
      from: 'now-3h',
    },
  },

  // Parts of expressions that alerts and rules share.
  _parts:: {
    local config = $._config,
    local braces(matchers) =
      local some = [m for m in matchers if m != ''];
      if some == [] then '' else '{%s}' % std.join(',', some),

    // A metric that is ours alone, with further matchers.
    of(metric, matchers=''):: metric + braces([matchers, config.selector]),
    // A metric whose name the kubelet has as well.
    shared(metric, matchers=''):: metric + braces(['target!=""', matchers, config.selector]),
    scrapes: 'up' + braces([config.scrapeSelector]),
    agent: std.join(', ', config.agentLabels),

    // Names of recorded series: level, metric, operations.
    recorded: {
      ready: 'job:prober_target_ready:avg',
      attempts: 'target_probe_type:prober_probe:rate' + config.window,
      failed: 'target_probe_type:prober_probe_failed:ratio_rate' + config.window,
      notAttempted: 'target_probe_type:prober_probe_not_attempted:ratio_rate' + config.window,
      mean: 'target_probe_type:prober_probe_duration_seconds:mean_rate' + config.window,
      failures: 'target_probe_type_reason:prober_probe_failures:increase' + config.failureWindow,
      p95: 'target_probe_type:prober_probe_duration_seconds:p95_rate' + config.window,
      p99: 'target_probe_type:prober_probe_duration_seconds:p99_rate' + config.window,
      lateness: 'instance:prober_exporter_probe_lateness_seconds:p99_rate' + config.window,
    },
  },
}
