// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  prometheusRules+:: {
    local config = $._config,
    local p = $._parts,
    local names = p.recorded,
    local rate(series) = 'rate(%s[%s])' % [series, config.window],

    // No rule sums a target's own labels away: an alert is to have them.
    local attempts(result) =
      'sum without (result) (%s)' % rate(p.shared('prober_probe_total', 'result="%s"' % result)),

    local took = 'prober_probe_duration_seconds',
    local successful = 'result="successful"',

    // What a scrape took as a native histogram has no classic buckets, and the other
    // way round: quantiles are asked of both.
    local quantile(q, series) = 'histogram_quantile(%s, %s)' % [q, rate(series)],
    local quantiles(q, name, of, matchers='') =
      [quantile(q, of(name, matchers)), quantile(q, of(name + '_bucket', matchers))],

    groups+: [
      {
        name: 'prober.rules',
        rules: [
          {
            record: names.ready,
            expr: 'avg by (job) (%s)' % p.of('prober_target_ready'),
          },
          {
            record: names.attempts,
            expr: 'sum without (result) (%s)' % rate(p.shared('prober_probe_total')),
          },
          {
            record: names.failed,
            expr: |||
              %s
              /
              (%s > 0)
            ||| % [attempts('failed'), names.attempts],
          },
          {
            // What alerts give as the reason: not that the agent was late, which changes no
            // result. A counter appears with its first failure, which increase() does not
            // see.
            record: names.failures,
            expr: |||
              increase(%(failures)s[%(window)s]) > 0
              or
              (%(failures)s unless %(failures)s offset %(window)s)
            ||| % { failures: p.of('prober_probe_failures_total', 'reason!="agent_late"'), window: config.failureWindow },
          },
          {
            // Without those that the agent was too late for: they have an alert of their
            // own. Their counter is absent until there is one.
            record: names.notAttempted,
            expr: |||
              clamp_min(
                %(unknown)s
                - (
                  sum without (reason) (%(late)s)
                  or
                  0 * %(unknown)s
                ),
                0
              )
              /
              (%(attempts)s > 0)
            ||| % {
              unknown: attempts('unknown'),
              late: rate(p.of('prober_probe_failures_total', 'reason="agent_late"')),
              attempts: names.attempts,
            },
          },
          {
            record: names.mean,
            expr: |||
              sum without (result) (
                histogram_sum(%(native)s)
                  / histogram_count(%(native)s)
                or
                %(sum)s
                  / %(count)s
              )
            ||| % {
              native: rate(p.shared(took, successful)),
              sum: rate(p.shared(took + '_sum', successful)),
              count: rate(p.shared(took + '_count', successful)),
            },
          },
          {
            // Of native histograms alone. The classic buckets from 0.5 s to 1 s, and so
            // on, cannot tell half a timeout from all of it.
            record: names.p95,
            expr: 'sum without (result) (%s)' % quantile('0.95', p.shared(took, successful)),
          },
          {
            record: names.p99,
            expr: |||
              sum without (result) (
                %s
                or
                %s
              )
            ||| % quantiles('0.99', took, p.shared, successful),
          },
          {
            record: names.lateness,
            expr: |||
              %s
              or
              %s
            ||| % quantiles('0.99', 'prober_exporter_probe_lateness_seconds', p.of),
          },
        ],
      },
    ],
  },
}
