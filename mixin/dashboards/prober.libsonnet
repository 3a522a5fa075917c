// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

local g = import 'panels.libsonnet';

// What is looked at: a target's series, a probe's duration, an agent's series.
local target(metric, matchers='') =
  metric + '{job=~"$job",namespace=~"$namespace",target=~"$target"%s}' % (if matchers == '' then '' else ',' + matchers);
local agent(metric) = metric + '{job=~"$job",namespace=~"$namespace"}';
local rate(series) = 'rate(%s[$__rate_interval])' % series;

// What Prometheus takes as a native histogram has no classic buckets.
local quantile(q, by, native, classic) =
  'histogram_quantile(%s, sum by (%s) (%s))\nor\nhistogram_quantile(%s, sum by (%s, le) (%s))' % [q, by, rate(native), q, by, rate(classic)];

// The label probe is of the members of lists alone.
local probe = '{{target}} {{probe_type}} {{probe}} {{instance}}';
local one = '{{target}} {{instance}}';
local successful = 'result="successful"';
local took = 'prober_probe_duration_seconds';
local lateness = 'prober_exporter_probe_lateness_seconds';

local good = g.steps([[null, 'text']]);
local bad = g.steps([[null, 'green'], [1, 'red']]);
local notice = g.steps([[null, 'green'], [1, 'orange']]);

local numbers = [
  4,
  [4, g.stat('Targets', 'Targets that agents probe.', 'count(%s)' % target('prober_target_ready'), good)],
  [4, g.stat('Not ready', 'Targets that get no traffic.', 'count(%s == 0)' % target('prober_target_ready'), bad)],
  [4, g.stat('Not live', 'Targets that a kubelet would restart.', 'count(%s == 0)' % target('prober_target_live'), bad)],
  [4, g.stat('Not running', 'Targets without a running instance.', 'count(%s == 0)' % target('prober_target_running'), notice)],
  [4, g.stat('Restarts', 'New instances in the selected time.', 'round(sum(increase(%s[$__range])))' % target('prober_target_restarts_total'), notice)],
  [4, g.stat('Agents down', 'Agents that existed in the selected time and cannot be scraped now.', |||
    count(
      %s == 0
      and on (job, instance)
      last_over_time(%s[$__range])
    )
  ||| % [agent('up'), agent('prober_exporter_targets')], bad)],
];

local state = g.states(
  'State',
  'Each target over time.',
  g.query(|||
    %(live)s
    * (1 + %(running)s + %(started)s + %(ready)s)
  ||| % {
    live: target('prober_target_live'),
    running: target('prober_target_running'),
    started: target('prober_target_started'),
    ready: target('prober_target_ready'),
  }, one),
  g.words({
    '0': ['not live', 'dark-red'],
    '1': ['not running', 'text'],
    '2': ['starting', 'blue'],
    '3': ['not ready', 'orange'],
    '4': ['ready', 'green'],
  }),
);

local failing =
  local of(series) = g.now('max by (instance, target, probe_type, probe) (%s and %s > 0)' % [series, target('prober_probe_consecutive_failures')]);
  g.table(
    'Failing now',
    'Probes whose last attempts failed. Result: after thresholds. Held: no attempts until a new instance begins or the hold expires.',
    [
      ['failures in a row', of(target('prober_probe_consecutive_failures')), null],
      ['result', of(target('prober_probe_success')), g.words({ '0': ['Failure', 'red'], '1': ['Success', 'green'] })],
      ['held', of(target('prober_probe_held')), g.words({ '0': ['no', 'text'], '1': ['held', 'orange'] })],
      ['seconds ago', of('time() - ' + target('prober_probe_last_run_timestamp_seconds')), null],
    ],
  );

local why = g.lines(
  'Failures by reason',
  'Failed and unknown attempts per second.',
  [g.query('sum by (target, probe_type, probe, reason) (%s) > 0' % rate(target('prober_probe_failures_total')), '{{target}} {{probe_type}} {{probe}} {{reason}}')],
  'cps',
);

local share = g.lines(
  'Attempts that failed',
  'Share of failed and unknown attempts in all attempts.',
  [g.query(|||
    sum by (target, probe_type, probe, instance) (%s)
    /
    sum by (target, probe_type, probe, instance) (%s)
  ||| % [rate(target('prober_probe_total', 'result!="successful"')), rate(target('prober_probe_total'))], probe)],
  'percentunit',
);

local durations = [
  g.lines(
    'Duration, %s' % of[0],
    'Of successful attempts. Classic buckets are coarse: scrape native histograms for more detail.',
    [g.query(quantile(of[1], 'target, probe_type, probe, instance', target(took, successful), target(took + '_bucket', successful)), probe)],
    's',
  )
  for of in [['median', '0.5'], ['99th percentile', '0.99']]
];

local used = g.lines(
  'Part of the timeout',
  'Mean duration of successful attempts as a part of their timeout. At 1 attempts fail.',
  [g.query(|||
    (
      sum without (result) (histogram_sum(%(native)s) / histogram_count(%(native)s))
      or
      sum without (result) (%(sum)s / %(count)s)
    )
    / %(timeout)s
  ||| % {
    native: rate(target(took, successful)),
    sum: rate(target(took + '_sum', successful)),
    count: rate(target(took + '_count', successful)),
    timeout: target('prober_probe_timeout_seconds'),
  }, probe)],
  'percentunit',
) + g.limit(1);

// Of startup and liveness probes, which decide whether a target is restarted.
local kills = 'probe_type!="Readiness"';
local runs = 'prober_probe_failure_run_length';

local nearMisses = g.lines(
  'Near misses',
  'Startup and liveness probes that were one failure short of a restart.',
  [g.query('increase(%s[$__rate_interval]) > 0' % target('prober_probe_near_misses_total', kills), probe)],
);

local longest = g.lines(
  'Longest run of failures',
  'Most failed attempts in a row that ended in a success. A startup probe counts the failures of a boot. Classic buckets end at 1, 2, 3, 5, 8, 13 and 21: a run of 4 shows as 5.',
  [g.query(quantile('1', 'target, probe_type, probe, instance', target(runs, kills), target(runs + '_bucket', kills)), probe)],
);

local slowest = g.lines(
  'Slow successes, part of the timeout',
  '99th percentile of the successful attempts of startup and liveness probes as a part of their timeout. At 1 attempts fail.',
  [g.query(|||
    (
      %s
    )
    / on (target, probe_type, probe, instance) group_left ()
    max by (target, probe_type, probe, instance) (%s)
  ||| % [
    std.strReplace(
      quantile('0.99', 'target, probe_type, probe, instance', target(took, kills + ',' + successful), target(took + '_bucket', kills + ',' + successful)),
      '\n',
      '\n  '
    ),
    target('prober_probe_timeout_seconds', kills),
  ], probe)],
  'percentunit',
) + g.limit(1);

local restarts = g.lines(
  'Restarts',
  'New instances.',
  [g.query('increase(%s[$__rate_interval])' % target('prober_target_restarts_total'), one)],
);

local acts = g.lines(
  'Acts',
  'Restarts by the agent, and acts that it dropped, by result.',
  [g.query('increase(%s[$__rate_interval]) > 0' % target('prober_target_restart_actions_total'), '{{target}} {{result}} {{instance}}')],
);

local backOff = g.lines(
  'Back-off',
  'Time until the agent may restart the target again.',
  [g.query(target('prober_target_restart_back_off_seconds'), one)],
  's',
);

local limited = g.states(
  'Limit of restarts',
  'Whether the limit is spent: the agent then does not restart the target.',
  g.query(target('prober_target_restart_limited'), one),
  g.words({ '0': ['not spent', 'green'], '1': ['spent', 'red'] }),
);

local changes = g.lines(
  'Changes of result',
  'Changes by attempts, after thresholds. Many changes mean that the target is flapping.',
  [g.query('increase(%s[$__rate_interval])' % target('prober_probe_transitions_total'), probe)],
);

local startup = g.lines(
  'Startup',
  'Time from the start of an instance until the target was started.',
  [g.query(target('prober_target_startup_duration_seconds'), one)],
  's',
);

local agents = [
  g.lines(
    'Probes a second',
    'Attempts by result.',
    [g.query('sum by (result) (%s)' % rate(target('prober_probe_total')), '{{result}}')],
    'cps',
    stacked=true,
  ),
  g.lines(
    'Lateness, 99th percentile',
    'How late turns begin. If it is high, the agent or its machine lacks CPU time.',
    [g.query(quantile('0.99', 'job, instance', agent(lateness), agent(lateness + '_bucket')), '{{instance}}')],
    's',
  ),
  g.lines(
    'Attempts in flight',
    '',
    [g.query(agent('prober_exporter_probes_in_flight'), '{{instance}}')],
  ),
  g.states(
    'Configuration',
    'Whether the last load of the configuration succeeded.',
    g.query(agent('prober_exporter_config_last_reload_successful'), '{{instance}}'),
    g.words({ '0': ['refused', 'red'], '1': ['loaded', 'green'] }),
  ),
  g.states(
    'Sources of instances',
    'Whether the agent can ask which instances run.',
    g.query(agent('prober_exporter_source_up'), '{{source}} {{instance}}'),
    g.words({ '0': ['does not work', 'red'], '1': ['works', 'green'] }),
  ),
  g.lines(
    'Resident memory',
    '',
    [g.query('%s and on (job, instance) %s' % [agent('process_resident_memory_bytes'), agent('prober_exporter_targets')], '{{instance}}')],
    'bytes',
  ),
  g.lines(
    'CPU',
    'Cores in use.',
    [g.query('%s and on (job, instance) %s' % [rate(agent('process_cpu_seconds_total')), agent('prober_exporter_targets')], '{{instance}}')],
  ),
  g.lines(
    'Panics',
    'Panics caught in probes. The attempt is then unknown. There should be none.',
    [g.query('increase(%s[$__rate_interval])' % agent('prober_exporter_panics_total'), '{{instance}}')],
  ),
];

function(config) {
  uid: config.uid,
  title: config.title,
  tags: config.tags,
  editable: true,
  schemaVersion: 39,
  version: 1,
  refresh: config.refresh,
  time: { from: config.from, to: 'now' },
  timezone: 'browser',
  graphTooltip: 1,
  annotations: { list: [] },
  links: [],
  templating: {
    list: [
      g.datasources,
      g.label('job', 'Job', 'prober_exporter_targets', '.+'),
      // Only a scrape in Kubernetes has it.
      g.label('namespace', 'Namespace', 'prober_exporter_targets{job=~"$job"}', '.*'),
      // Some, even if all: the kubelet's series of the same names have no target.
      g.label('target', 'Target', 'prober_target_ready{job=~"$job",namespace=~"$namespace"}', '.+'),
    ],
  },
  panels: g.lay([
    numbers,
    'What is not ready, and why',
    [10, [14, state], [10, failing]],
    [8, [12, why], [12, share]],
    'Durations',
    [8, [8, durations[0]], [8, durations[1]], [8, used]],
    'How near to a kill',
    [8, [8, nearMisses], [8, longest], [8, slowest]],
    'Lives',
    [8, [8, restarts], [8, changes], [8, startup]],
    'Restarts by the agent',
    [8, [8, acts], [8, backOff], [8, limited]],
    'Agents',
    [8, [8, agents[0]], [8, agents[1]], [8, agents[2]]],
    [6, [12, agents[3]], [12, agents[4]]],
    [8, [8, agents[5]], [8, agents[6]], [8, agents[7]]],
  ]),
}
