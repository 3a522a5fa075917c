// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
)

// plot is a chart of lines; both axes are logarithmic.
type plot struct {
	title, x, y string
	all         []*series
}

// series is a line of a plot.
type series struct {
	name   string
	points [][2]float64
}

func (p *plot) add(name string) *series {
	s := &series{name: name}
	p.all = append(p.all, s)
	return s
}

func (s *series) add(x, y float64) { s.points = append(s.points, [2]float64{x, y}) }

// The measures of a plot, in pixels.
const (
	plotWidth, plotHeight = 640, 360
	plotLeft, plotRight   = 70, 20
	plotTop, plotBottom   = 40, 50
)

// colours can be told apart by everybody, on white and on black.
var colours = []string{"#d55e00", "#0072b2", "#009e73"}

// axis maps values to pixels; low and high are powers of ten.
type axis struct{ low, high, from, to float64 }

func newAxis(values []float64, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
	}
	return axis{low: low, high: max(high, low+1), from: from, to: to}
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks are 1, 2 and 5 of each power of ten.
func (a axis) ticks() (all []float64) {
	for e := a.low; e <= a.high; e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); math.Log10(v) <= a.high {
				all = append(all, v)
			}
		}
	}
	return all
}

// svg draws the plot.
func (p *plot) svg() []byte {
	var xs, ys []float64
	for _, s := range p.all {
		for _, point := range s.points {
			xs, ys = append(xs, point[0]), append(ys, point[1])
		}
	}
	x, y := newAxis(xs, plotLeft, plotWidth-plotRight), newAxis(ys, plotHeight-plotBottom, plotTop)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
	}
	path := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
	}
	text(plotWidth/2, plotTop/2, "middle", p.title)
	text(plotWidth/2, plotHeight-12, "middle", p.x)
	text(8, plotTop-8, "start", p.y)
	for _, v := range x.ticks() {
		path(x.at(v), y.from, x.at(v), y.to)
		text(x.at(v), y.from+16, "middle", number(v))
	}
	for _, v := range y.ticks() {
		path(x.from, y.at(v), x.to, y.at(v))
		text(x.from-6, y.at(v)+4, "end", number(v))
	}
	for i, s := range p.all {
		colour := colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, point := range s.points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x.at(point[0]), y.at(point[1]))
		}
		fmt.Fprintln(&b, `"/>`)
		for _, point := range s.points {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(point[0]), y.at(point[1]), colour)
		}
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="12" height="12" fill="%s"/>`+"\n", x.to-140, plotTop+8+18*i, colour)
		text(x.to-122, float64(plotTop+18+18*i), "start", s.name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
