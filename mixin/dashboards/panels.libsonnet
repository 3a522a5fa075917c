// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The few parts of Grafana's dashboard model that are used here.
{
  local datasource = { type: 'prometheus', uid: '${datasource}' },

  // A query over time; its legend names the labels that tell its series apart.
  query(expr, legend=''):: {
    expr: expr,
    legendFormat: legend,
    range: true,
    datasource: datasource,
  },

  // A query of this moment, as a row for each series.
  now(expr):: {
    expr: expr,
    format: 'table',
    instant: true,
    datasource: datasource,
  },

  // Colours from a value on: [[null, 'green'], [1, 'red']].
  steps(list):: {
    mode: 'absolute',
    steps: [{ value: step[0], color: step[1] } for step in list],
  },

  // What to show instead of a number: { '0': ['no', 'red'] }.
  words(names):: [{
    type: 'value',
    options: {
      [value]: { text: names[value][0], color: names[value][1] }
      for value in std.objectFields(names)
    },
  }],

  local panel(type, title, description, targets) = {
    type: type,
    title: title,
    description: description,
    datasource: datasource,
    targets: std.mapWithIndex(function(i, target) target { refId: std.char(std.codepoint('A') + i) }, targets),
    fieldConfig: { defaults: {}, overrides: [] },
    options: {},
  },

  // One number. What is wrong has a colour.
  stat(title, description, expr, steps, unit='none'):: panel('stat', title, description, [self.query(expr) { range: false, instant: true }]) {
    fieldConfig+: { defaults+: { unit: unit, noValue: '0', thresholds: steps } },
    options+: {
      colorMode: 'value',
      graphMode: 'none',
      justifyMode: 'center',
      reduceOptions: { calcs: ['lastNotNull'] },
    },
  },

  // Lines over time.
  lines(title, description, targets, unit='none', stacked=false):: panel('timeseries', title, description, targets) {
    fieldConfig+: {
      defaults+: {
        unit: unit,
        min: 0,
        custom: {
          lineWidth: 1,
          fillOpacity: if stacked then 40 else 5,
          showPoints: 'never',
          stacking: { mode: if stacked then 'normal' else 'none' },
        },
      },
    },
    options+: {
      legend: { showLegend: true, displayMode: 'table', placement: 'right', calcs: ['lastNotNull', 'max'], sortBy: 'Max', sortDesc: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  // A line in the colour of a limit.
  limit(value):: {
    fieldConfig+: {
      defaults+: {
        thresholds: { mode: 'absolute', steps: [{ value: null, color: 'transparent' }, { value: value, color: 'red' }] },
        custom+: { thresholdsStyle: { mode: 'line' } },
      },
    },
  },

  // A bar for each series, coloured by state.
  states(title, description, target, words):: panel('state-timeline', title, description, [target]) {
    fieldConfig+: { defaults+: { mappings: words, custom: { fillOpacity: 80, lineWidth: 0 } } },
    options+: { showValue: 'never', mergeValues: true, rowHeight: 0.8, perPage: 40, legend: { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] } },
  },

  // A row for each set of labels, a column for each query: [name, query, words or null].
  // Rows are merged by their labels, so all queries have to return the same ones.
  table(title, description, columns):: panel('table', title, description, [column[1] for column in columns]) {
    fieldConfig+: {
      overrides: [
        {
          matcher: { id: 'byName', options: column[0] },
          properties: [
            { id: 'mappings', value: column[2] },
            { id: 'custom.cellOptions', value: { type: 'color-text' } },
          ],
        }
        for column in columns
        if column[2] != null
      ],
    },
    options+: { showHeader: true, cellHeight: 'sm' },
    transformations: [
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: { Time: true },
          renameByName: { ['Value #' + std.char(std.codepoint('A') + i)]: columns[i][0] for i in std.range(0, std.length(columns) - 1) },
        },
      },
    ],
  },

  // Panels in lines of 24 columns: each line is [height, [width, panel], …], or the
  // title of a section.
  lay(lines)::
    local place(state, line) =
      if std.isString(line) then {
        y: state.y + 1,
        panels: state.panels + [{
          type: 'row',
          title: line,
          collapsed: false,
          panels: [],
          gridPos: { x: 0, y: state.y, w: 24, h: 1 },
        }],
      } else {
        local height = line[0],
        local cells = line[1:],
        y: state.y + height,
        panels: state.panels + [
          cells[i][1] {
            gridPos: {
              x: std.foldl(function(x, cell) x + cell[0], cells[:i], 0),
              y: state.y,
              w: cells[i][0],
              h: height,
            },
          }
          for i in std.range(0, std.length(cells) - 1)
        ],
      };
    local laid = std.foldl(place, lines, { y: 0, panels: [] }).panels;
    std.mapWithIndex(function(i, p) p { id: i + 1 }, laid),

  // A variable with the values of a label. "All" is what all matches.
  label(name, label, metric, all):: {
    type: 'query',
    name: name,
    label: label,
    datasource: datasource,
    query: { query: 'label_values(%s, %s)' % [metric, name], refId: name },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: all,
    current: { selected: true, text: ['All'], value: ['$__all'] },
  },

  datasources:: {
    type: 'datasource',
    name: 'datasource',
    label: 'Data source',
    query: 'prometheus',
    refresh: 1,
    current: { selected: true, text: 'default', value: 'default' },
  },
}
