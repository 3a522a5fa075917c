// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// flushAt is how much text is written in one go.
const flushAt = 64 << 10

// byName lists the families in the order of an exposition.
var byName = func() []id {
	all := make([]id, numMetrics)
	for m := range all {
		all[m] = id(m)
	}
	slices.SortFunc(all, func(a, b id) int { return strings.Compare(table[a].name, table[b].name) })
	return all
}()

// writeTexts gives each series its labels as text.
func (a *allSeries) writeTexts() {
	var b []byte
	for _, of := range a.lists() {
		for i := range of {
			b = appendLabels(b[:0], of[i].labels)
			of[i].text = string(b)
		}
	}
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func appendLabels(b []byte, ls labels) []byte {
	for i, l := range ls {
		if i > 0 {
			b = append(b, ',')
		}
		value := l.GetValue()
		if strings.ContainsAny(value, "\\\n\"") {
			value = labelEscaper.Replace(value)
		}
		b = append(b, l.GetName()...)
		b = append(b, '=', '"')
		b = append(b, value...)
		b = append(b, '"')
	}
	return b
}

// textWriter writes the families as text, in the classic format or as OpenMetrics 1. The
// result is byte for byte that of expfmt.
type textWriter struct {
	out  io.Writer
	open bool // OpenMetrics
	form Histograms
	les  []string // of the family: the bounds of the classic buckets as labels, +Inf too
	buf  []byte
	err  error // of out; nothing is written after an error
}

func newTextWriter(out io.Writer, open bool, form Histograms) *textWriter {
	return &textWriter{out: out, open: open, form: form, buf: make([]byte, 0, flushAt+flushAt/4)}
}

// setBuckets makes the labels of the classic buckets of a family.
func (w *textWriter) setBuckets(m id) {
	w.les = w.les[:0]
	for _, bound := range append(slices.Clone(w.form.bounds(m)), math.Inf(1)) {
		w.les = append(w.les, `le="`+string(w.appendFloat(nil, bound))+`"`)
	}
}

// family writes one family, unless it has no series.
func (w *textWriter) family(m id, a *allSeries) {
	f := &families[m]
	of := f.of(a)
	begun := false
	for i := range of {
		v, known := f.value(&of[i])
		if !known {
			continue
		}
		if !begun {
			begun = true
			w.head(m, f.kind)
			if f.kind == dto.MetricType_HISTOGRAM {
				w.setBuckets(m)
			}
		}
		if f.kind == dto.MetricType_HISTOGRAM {
			w.histogram(table[m].name, &of[i])
		} else {
			w.name(table[m].name, "", of[i].text, "")
			w.buf = append(w.appendFloat(w.buf, v), '\n')
		}
		if len(w.buf) >= flushAt {
			w.flush()
		}
	}
}

func (w *textWriter) head(m id, kind dto.MetricType) {
	name := table[m].name
	if w.open && kind == dto.MetricType_COUNTER {
		name = strings.TrimSuffix(name, "_total")
	}
	w.buf = append(w.buf, "# HELP "...)
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, ' ')
	w.buf = append(w.buf, table[m].help...)
	w.buf = append(w.buf, "\n# TYPE "...)
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, ' ')
	w.buf = append(w.buf, strings.ToLower(kind.String())...)
	w.buf = append(w.buf, '\n')
}

// name writes a line up to its value; more is a label of that line alone.
func (w *textWriter) name(name, suffix, text, more string) {
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, suffix...)
	if text != "" || more != "" {
		w.buf = append(w.buf, '{')
		w.buf = append(w.buf, text...)
		if text != "" && more != "" {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, more...)
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, ' ')
}

func (w *textWriter) histogram(name string, s *series) {
	var sum uint64
	last := len(w.les) - 1
	for i := range last {
		if i < len(s.histogram.Classic) {
			sum += s.histogram.Classic[i]
		}
		w.name(name, "_bucket", s.text, w.les[i])
		w.count(sum)
	}
	w.name(name, "_bucket", s.text, w.les[last])
	w.count(s.histogram.Count)
	w.name(name, "_sum", s.text, "")
	w.buf = append(w.appendFloat(w.buf, s.histogram.Sum), '\n')
	w.name(name, "_count", s.text, "")
	w.count(s.histogram.Count)
}

func (w *textWriter) count(n uint64) {
	if w.open {
		w.buf = strconv.AppendUint(w.buf, n, 10)
	} else {
		w.buf = w.appendFloat(w.buf, float64(n))
	}
	w.buf = append(w.buf, '\n')
}

func (w *textWriter) appendFloat(b []byte, v float64) []byte {
	const exponentFrom = 1e6 // below it, whole numbers are written without an exponent
	if v >= 0 && v < exponentFrom && v == math.Trunc(v) {
		b = strconv.AppendUint(b, uint64(v), 10)
		if w.open {
			b = append(b, '.', '0')
		}
		return b
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	if w.open && !math.IsNaN(v) && !math.IsInf(v, 0) && !bytes.ContainsAny(b[from:], "e.") {
		b = append(b, '.', '0')
	}
	return b
}

// flush writes what is in the buffer.
func (w *textWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.out.Write(w.buf)
	}
	w.buf = w.buf[:0]
}
