// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

(import 'config.libsonnet') +
(import 'rules/rules.libsonnet') +
(import 'alerts/alerts.libsonnet') +
(import 'dashboards/dashboards.libsonnet')
