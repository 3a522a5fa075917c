// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0; see LICENSE.

(import 'config.libsonnet') +
(import 'rules/rules.libsonnet') +
(import 'alerts/alerts.libsonnet') +
(import 'dashboards/dashboards.libsonnet')
