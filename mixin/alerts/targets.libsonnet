// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  prometheusAlerts+:: {
    local config = $._config.alerts,
    local p = $._parts,
    // How often the agent itself restarted a target, with this result.
    local acts(result, window) = 'sum without (result) (increase(%s[%s]))' % [p.of('prober_target_restart_actions_total', 'result="%s"' % result), window],
    local loop = '%s > %g' % [acts('succeeded', config.ProberTargetRestartLoop.window), config.ProberTargetRestartLoop.restarts],
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
              - ignoring (probe_type, probe) group_left ()
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
            which + ' is unsteady: the result of its ' + $._probe + ' has changed about {{ printf "%.0f" $value }} times in ' +
            config.ProberTargetFlapping.window + ', not counting restarts.' +
            $._failure(labels=['probe_type', 'probe']),
          ),
          $._alert(
            'ProberTargetRestarting',
            // The loop of an agent that restarts has an alert of its own.
            |||
              increase(%s[%s]) > %g
              unless
              %s
            ||| % [
              p.of('prober_target_restarts_total'),
              config.ProberTargetRestarting.window,
              config.ProberTargetRestarting.restarts,
              loop,
            ],
            'Target {{ $labels.target }} keeps restarting.',
            which + ' has been restarted about {{ printf "%.0f" $value }} times in ' + config.ProberTargetRestarting.window + '.' +
            $._failure(),
          ),
          $._alert(
            'ProberTargetRestartFailing',
            // increase() is no whole number: a half is less than one failure.
            |||
              %s
              - %s
              > 0.5
            ||| % [acts('failed', config.ProberTargetRestartFailing.window), acts('succeeded', config.ProberTargetRestartFailing.window)],
            'The agent cannot restart target {{ $labels.target }}.',
            which + ' was to be restarted by the agent, which has failed more often than it has succeeded in ' + config.ProberTargetRestartFailing.window + '.' +
            $._failure('probe_type!="Readiness"'),
          ),
          $._alert(
            'ProberTargetRestartLoop',
            loop,
            'The agent restarts target {{ $labels.target }} again and again.',
            which + ' has been restarted by the agent about {{ printf "%.0f" $value }} times in ' + config.ProberTargetRestartLoop.window + ', which does not help.' +
            $._failure('probe_type!="Readiness"'),
          ),
          $._alert(
            'ProberTargetRestartLimited',
            '%s == 1' % p.of('prober_target_restart_limited'),
            'The agent does not restart target {{ $labels.target }} any more.',
            which + ' has been restarted as often as its limit allows. Until the window of the limit has passed, the agent does nothing if the target is not live.' +
            $._failure('probe_type!="Readiness"'),
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
