// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

{
  local build = import 'prober.libsonnet',

  grafanaDashboards+:: {
    'prober.json': build($._config.dashboard),
  },
}
