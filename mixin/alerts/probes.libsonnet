// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  prometheusAlerts+:: {
    local config = $._config.alerts,
    local p = $._parts,
    local which = 'The ' + $._probe + ' of target {{ $labels.target }}, made by {{ $labels.instance }},',

    groups+: [
      {
        name: 'prober.probes',
        rules: [
          $._alert(
            'ProberProbeNearTimeout',
            |||
              (
                %(p95)s
                or
                %(mean)s
              )
              / %(timeout)s
              > %(ratio)g
            ||| % {
              p95: p.recorded.p95,
              mean: p.recorded.mean,
              timeout: p.of('prober_probe_timeout_seconds'),
              ratio: config.ProberProbeNearTimeout.ratio,
            },
            'Probes of target {{ $labels.target }} nearly time out.',
            which + ' takes {{ $value | humanizePercentage }} of its timeout when it succeeds. If it takes longer, it fails.',
          ),
          $._alert(
            'ProberProbeNotAttempted',
            '%s > %g' % [p.recorded.notAttempted, config.ProberProbeNotAttempted.ratio],
            'The agent cannot make attempts at target {{ $labels.target }}.',
            which + ' could not make {{ $value | humanizePercentage }} of its attempts. Its result may be old.' +
            $._failure(labels=['probe_type', 'probe']),
          ),
          $._alert(
            'ProberProbeNotRun',
            |||
              (
                time() - %(last)s
                  > 3 * (%(period)s + %(timeout)s) + %(slack)g
                or
                sum without (result) (%(total)s) == 0
              )
              and %(held)s == 0
              and %(gated)s == 0
              and ignoring (probe_type, probe) %(running)s == 1
            ||| % {
              last: p.of('prober_probe_last_run_timestamp_seconds'),
              period: p.of('prober_probe_period_seconds'),
              timeout: p.of('prober_probe_timeout_seconds'),
              slack: config.ProberProbeNotRun.slackSeconds,
              total: p.shared('prober_probe_total'),
              held: p.of('prober_probe_held'),
              gated: p.of('prober_probe_gated'),
              running: p.of('prober_target_running'),
            },
            'Target {{ $labels.target }} is not probed.',
            which + ' is due but makes no attempts. Its result is old.',
          ),
          $._alert(
            'ProberLivenessNearMiss',
            // A counter appears with its first failure, which increase() may not see.
            |||
              increase(%(misses)s[%(window)s]) >= %(times)g
              or
              (%(misses)s unless %(misses)s offset %(window)s) >= %(times)g
            ||| % {
              misses: p.of('prober_probe_near_misses_total', 'probe_type="Liveness"'),
              window: config.ProberLivenessNearMiss.window,
              times: config.ProberLivenessNearMiss.times,
            },
            'Target {{ $labels.target }} was nearly restarted.',
            which + ' was one failure short of its failureThreshold about {{ printf "%%.0f" $value }} times in %s. One more failure in a row, and the target is not live.' % config.ProberLivenessNearMiss.window +
            $._failure(labels=['probe_type', 'probe']),
          ),
          $._alert(
            'ProberProbeCertificateExpires',
            '%s - time() < %g * 86400' % [
              p.of('prober_probe_tls_earliest_cert_expiry_seconds'),
              config.ProberProbeCertificateExpires.days,
            ],
            'A certificate of target {{ $labels.target }} expires soon.',
            which + ' was shown a certificate that {{ if gt $value 0.0 }}expires in {{ $value | humanizeDuration }}{{ else }}has expired{{ end }}.' +
            ' Clients that verify the certificate fail from then on.',
          ),
        ],
      },
    ],
  },
}
