// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  prometheusAlerts+:: {
    local config = $._config.alerts,
    local p = $._parts,
    local which = 'The agent {{ $labels.instance }} of job {{ $labels.job }}',

    groups+: [
      {
        name: 'prober.agents',
        rules: [
          $._alert(
            'ProberExporterLate',
            |||
              %(lateness)s > %(seconds)g
              or
              %(targets)s
              and on (%(agent)s)
              sum by (%(agent)s) (rate(%(failures)s[%(window)s])) > 0
            ||| % {
              lateness: p.recorded.lateness,
              seconds: config.ProberExporterLate.seconds,
              targets: p.of('prober_exporter_targets'),
              agent: p.agent,
              failures: p.of('prober_probe_failures_total', 'reason="agent_late"'),
              window: $._config.window,
            },
            'The agent {{ $labels.instance }} is late with its probes.',
            which + ' begins one turn in a hundred more than %g s late, or judges attempts too late to know their outcome (agent_late).' % config.ProberExporterLate.seconds,
          ),
          $._alert(
            'ProberExporterRestarting',
            // Between its lives an agent has no series: so both look back.
            |||
              changes(%(started)s[%(window)s]) > %(restarts)d
              and on (%(agent)s)
              count_over_time(%(targets)s[%(window)s]) > 0
            ||| % {
              started: p.of('process_start_time_seconds'),
              window: config.ProberExporterRestarting.window,
              restarts: config.ProberExporterRestarting.restarts,
              agent: p.agent,
              targets: p.of('prober_exporter_targets'),
            },
            'The agent {{ $labels.instance }} keeps restarting.',
            which + ' has been restarted {{ $value }} times in ' + config.ProberExporterRestarting.window + '. Its targets are not ready between two lives, and the wait before each start may grow.',
          ),
          $._alert(
            'ProberExporterReloadFailed',
            // Both are of one scrape, so their labels are the same.
            |||
              %s == 0
              and
              %s > 0
            ||| % [
              p.of('prober_exporter_config_last_reload_successful'),
              p.of('prober_exporter_config_last_reload_success_timestamp_seconds'),
            ],
            'The agent {{ $labels.instance }} has refused its configuration.',
            which + ' has refused its last configuration and still runs with the previous one.',
          ),
          $._alert(
            'ProberExporterNotConfigured',
            |||
              %s == 0
              unless
              %s > 0
            ||| % [
              p.of('prober_exporter_config_last_reload_successful'),
              p.of('prober_exporter_config_last_reload_success_timestamp_seconds'),
            ],
            'The agent {{ $labels.instance }} has no configuration.',
            which + ' was started with a configuration that it cannot use. It probes nothing: every target counts as live and none as ready.',
          ),
          $._alert(
            'ProberExporterUnknownTarget',
            'rate(%s[%s]) > 0' % [p.of('prober_exporter_unknown_target_requests_total'), $._config.window],
            'Somebody asks the agent {{ $labels.instance }} for an unknown target.',
            which + ' gets requests at /{{ $labels.endpoint }} for a target that is not in its configuration. Nobody probes that target, and /live answers 200 for it.',
          ),
          $._alert(
            'ProberExporterSourceDown',
            '%s == 0' % p.of('prober_exporter_source_up'),
            'The instance source {{ $labels.source }} of {{ $labels.instance }} does not work.',
            which + ' cannot ask its source {{ $labels.source }} which instances run. It does not see restarts.',
          ),
          $._alert(
            'ProberExporterPodNotWritten',
            '%s == 0' % p.of('prober_exporter_kubernetes_synced'),
            'The pod of the agent {{ $labels.instance }} does not say what the agent says.',
            which + ' cannot write the conditions of its pod. A pod that is not ready may get traffic, and one that is ready none.',
          ),
          $._alert(
            'ProberExporterDown',
            '%s == 0' % p.scrapes,
            'The agent {{ $labels.instance }} cannot be scraped.',
            which + ' cannot be scraped. Its targets have no series, so no other alert on them fires.',
          ),
          $._alert(
            'ProberExporterAbsent',
            'absent(%s)' % p.scrapes,
            'Prometheus scrapes no agent at all.',
            'No scrape job matches an agent. No target has series, so no other alert fires.',
          ),
        ],
      },
    ],
  },
}
