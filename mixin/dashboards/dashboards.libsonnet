// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0; see LICENSE.

{
  local build = import 'prober.libsonnet',

  grafanaDashboards+:: {
    'prober.json': build($._config.dashboard),
  },
}
