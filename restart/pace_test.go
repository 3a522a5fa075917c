// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// kubelets is the back-off of a kubelet.
var kubelets = config.BackOff{Initial: 10 * time.Second, Max: 300 * time.Second, Reset: 600 * time.Second}

// The waits after the acts are 10, 20, 40, 80, 160 and then 300 s, counted from the end of each
// act; before the first act of an agent there is one of 10 s.
func TestPaceDoubles(t *testing.T) {
	r := &config.Restart{BackOff: kubelets}
	var p pace
	if got := p.notBefore(r); got != 10*time.Second {
		t.Errorf("the first act not before %v, want 10s after the agent's start", got)
	}
	now := time.Hour
	for i, seconds := range []int{10, 20, 40, 80, 160, 300, 300, 300} {
		want := time.Duration(seconds) * time.Second
		p = p.begin(r.BackOff, now)
		now += 7 * time.Second
		p = p.end(now)
		if got := p.notBefore(r) - now; got != want {
			t.Errorf("%v after act %d, want %v", got, i+1, want)
		}
		if length, _ := p.backOff(r.BackOff); p.inRow != i+1 || length != want {
			t.Errorf("back-off %d of %v after act %d, want %v", p.inRow, length, i+1, want)
		}
		now = p.notBefore(r)
	}
}

// The back-off is forgotten 600 s after the last act, and not 1 ns earlier.
func TestPaceForgets(t *testing.T) {
	r := &config.Restart{BackOff: kubelets}
	p := pace{}.begin(r.BackOff, time.Hour).end(time.Hour)
	p = p.begin(r.BackOff, time.Hour+10*time.Second).end(time.Hour + 10*time.Second)
	last := time.Hour + 10*time.Second
	if q := p.begin(r.BackOff, last+600*time.Second-1); q.inRow != 3 || p.spent(r, last+600*time.Second-1) {
		t.Errorf("forgotten too early: %d in a row", q.inRow)
	}
	if q := p.begin(r.BackOff, last+600*time.Second); q.inRow != 1 || !p.spent(r, last+600*time.Second) {
		t.Errorf("not forgotten: %d in a row", q.inRow)
	}
}

// Of 3 restarts in 100 s the fourth waits until 100 s after the first; in any window of 100 s
// there are 3, also beyond the length of the memory.
func TestPaceLimit(t *testing.T) {
	r := &config.Restart{
		BackOff: config.BackOff{Initial: time.Second, Max: time.Second, Reset: time.Second},
		Limit:   config.Limit{Restarts: 3, Window: 100 * time.Second},
	}
	var p pace
	var begun []moment
	now := time.Hour
	for range 2*config.MaxLimit + 1 {
		p = p.begin(r.BackOff, now).end(now)
		begun = append(begun, now)
		if n := len(begun); n > 3 && begun[n-1]-begun[n-4] != 100*time.Second {
			t.Fatalf("act %d began %v after act %d, want 1m40s", n, begun[n-1]-begun[n-4], n-3)
		}
		now = p.notBefore(r)
	}
	one := pace{}.begin(r.BackOff, now).end(now)
	for _, p := range []pace{p.begin(r.BackOff, now).end(now), one} {
		if p.spent(r, now+r.Limit.Window-1) || !p.spent(r, now+r.Limit.Window) {
			t.Error("the limit's memory is dropped too early or never")
		}
	}
}

// Other numbers count from the acts that there were, at once.
func TestPaceOtherNumbers(t *testing.T) {
	p := pace{}
	for i := range moment(3) {
		p = p.begin(kubelets, time.Hour+i*time.Minute).end(time.Hour + i*time.Minute)
	}
	longer := &config.Restart{BackOff: config.BackOff{Initial: time.Minute, Max: time.Hour, Reset: time.Hour}}
	if got := p.notBefore(longer); got != time.Hour+2*time.Minute+4*time.Minute {
		t.Errorf("not before %v, want 1h6m0s", got)
	}
}
