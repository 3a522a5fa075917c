// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  prometheusAlerts+:: {
    local config = $._config.alerts,
    local p = $._parts,
    local which = 'Target {{ $labels.target }}, watched by {{ $labels.instance }},',

    groups+: [
      {
        name: 'prober.targets',
        rules: [
          $._alert(
            'ProberTargetNotReady',
            '%s == 0' % p.of('prober_target_ready'),
            'Target {{ $labels.target }} is not ready.',
            which + ' has not been ready for %s. Whoever asks /ready sends the target no traffic.' % config.ProberTargetNotReady['for'] +
            $._failure('probe_type!="Liveness"'),
          ),
          $._alert(
            'ProberTargetNotLive',
            '%s == 0' % p.of('prober_target_live'),
            'Target {{ $labels.target }} is not live, and nobody restarts it.',
            which + ' has not been live for %s, and has not been restarted.' % config.ProberTargetNotLive['for'] +
            $._failure('probe_type!="Readiness"'),
          ),
          $._alert(
            'ProberTargetNotRunning',
            '%s == 0' % p.of('prober_target_running'),
            'Target {{ $labels.target }} does not run.',
            which + ' has not run for %s. The target has ended and nobody has started it again, or it never started.' % config.ProberTargetNotRunning['for'],
          ),
          $._alert(
            'ProberTargetFlapping',
            // An instance has two changes at the most that are no flapping: it gets
            // ready, and it fails before it is restarted.
            |||
              increase(%s[%s])
              - ignoring (probe_type) group_left ()
              2 * increase(%s[%s])
              > %g
            ||| % [
              p.of('prober_probe_transitions_total'),
              config.ProberTargetFlapping.window,
              p.of('prober_target_restarts_total'),
              config.ProberTargetFlapping.window,
              config.ProberTargetFlapping.changes,
            ],
            'Target {{ $labels.target }} is flapping.',
            which + ' is unsteady: the result of its {{ $labels.probe_type }} probe has changed about {{ printf "%.0f" $value }} times in ' +
            config.ProberTargetFlapping.window + ', not counting restarts.' +
            $._failure(labels=['probe_type']),
          ),
          $._alert(
            'ProberTargetRestarting',
            'increase(%s[%s]) > %g' % [
              p.of('prober_target_restarts_total'),
              config.ProberTargetRestarting.window,
              config.ProberTargetRestarting.restarts,
            ],
            'Target {{ $labels.target }} keeps restarting.',
            which + ' has been restarted about {{ printf "%.0f" $value }} times in ' + config.ProberTargetRestarting.window + '.' +
            $._failure(),
          ),
          $._alert(
            'ProberTargetStartupStuck',
            // Looking back keeps the alert over the moments at which a crashing target
            // does not run.
            |||
              max_over_time(%s[%s]) == 0
              and
              max_over_time(%s[%s]) == 1
            ||| % [
              p.of('prober_target_started'),
              $._config.window,
              p.of('prober_target_running'),
              $._config.window,
            ],
            'Target {{ $labels.target }} runs but does not start.',
            which + ' runs, but its startup probe has not succeeded for %s.' % config.ProberTargetStartupStuck['for'] +
            $._failure('probe_type="Startup"'),
          ),
        ],
      },
    ],
  },
}
