// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package gate

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var vectorsFile = flag.String("vectors", "testdata/gate.jsonl.gz", "recorded passes to replay, a .gz or plain JSON Lines file")

// trace is one recorded run of a container's workers, passes only, no timers.
type trace struct {
	Number        int               `json:"n"`
	Kind          string            `json:"k"`
	RestartPolicy string            `json:"rp"`
	Sidecar       int               `json:"sc"`
	Eager         int               `json:"e"`
	Probes        map[string][3]int `json:"p"`
	Ticks         []tick            `json:"t"`
	// Restart is set where the kubelet itself has just been restarted (rule 2.7).
	Restart *struct {
		Ready bool `json:"ready"` // the pod's Ready condition, from before
	} `json:"restart"`
}

// tick is one round of passes: what the kubelet was given, what it did.
type tick struct {
	State    string // r running, w waiting, t terminated, e no ID yet, n container missing, 0 no status
	ID       int
	X        int64  // r: milliseconds since the start, t: exit code
	Events   string // d deletion, F and S final pod phases, p the container is older than the kubelet
	Handlers string // what each handler would answer
	Outcomes [NumKinds]string
	Started  int
	Ready    int
	Trigger  int
}

func (t *tick) UnmarshalJSON(data []byte) error {
	columns := []any{
		&t.State, &t.ID, &t.X, &t.Events, &t.Handlers,
		&t.Outcomes[0], &t.Outcomes[1], &t.Outcomes[2], &t.Started, &t.Ready, &t.Trigger,
	}
	want := len(columns)
	if err := json.Unmarshal(data, &columns); err != nil {
		return err
	}
	if len(columns) != want {
		return fmt.Errorf("tick has %d columns, want %d", len(columns), want)
	}
	return nil
}

// Every pass that was recorded from the genuine kubelet worker is decided alike:
// going on or ending, attempts, cached result, hold, last result, run and updates,
// and the started and ready derived from them.
func TestKubeletVectors(t *testing.T) {
	file, err := os.Open(*vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	traces, ticks, err := replayAll(t, file, strings.HasSuffix(*vectorsFile, ".gz"))
	if err != nil {
		t.Fatalf("%s: %v", *vectorsFile, err)
	}
	if ticks == 0 {
		t.Fatalf("%s: nothing to replay", *vectorsFile)
	}
	t.Logf("%s: compared %d traces, %d ticks", *vectorsFile, traces, ticks)
}

// A file in which one character of an outcome is altered does not agree, and the
// report names the trace and the tick.
func TestKubeletVectorsCanFail(t *testing.T) {
	const good = `{"n":7,"k":"hand:x","rp":"Always","sc":0,"e":1,"p":{"s":[0,3,1],"r":[0,3,1],"l":[0,3,1]},"t":[["r",1,0,"","SSS","Af1ShS0:US","At1S.S1:FS","At1S.S1:S",1,1,0]]}`
	if got := replayLine(t, good); len(got) != 0 {
		t.Fatalf("the unaltered trace disagrees: %q", got)
	}
	start := strings.Index(good, "Af1")
	end := strings.Index(good, `S",1,1,0]`) + 1
	for i := start; i < end; i++ {
		if strings.ContainsRune(`",`, rune(good[i])) {
			continue
		}
		altered := good[:i] + "Q" + good[i+1:]
		got := replayLine(t, altered)
		if len(got) != 1 || !strings.Contains(got[0], "trace 7") || !strings.Contains(got[0], "tick 1") {
			t.Errorf("altered at %d (%s): got %q, want one report that names trace 7, tick 1", i, altered[start:end], got)
		}
	}
	for _, altered := range []string{strings.Replace(good, `1,1,0]`, `0,1,0]`, 1), strings.Replace(good, `1,1,0]`, `1,0,0]`, 1)} {
		if got := replayLine(t, altered); len(got) != 1 {
			t.Errorf("altered started or ready: got %q, want one report", got)
		}
	}
}

func replayLine(t *testing.T, line string) []string {
	t.Helper()
	var tr trace
	if err := json.Unmarshal([]byte(line), &tr); err != nil {
		t.Fatal(err)
	}
	return tr.replay()
}

// replayAll replays each line of r and reports every disagreement to t.
func replayAll(t *testing.T, r io.Reader, gzipped bool) (traces, ticks int, err error) {
	if gzipped {
		if r, err = gzip.NewReader(r); err != nil {
			return 0, 0, err
		}
	}
	lines := bufio.NewReader(r)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			var tr trace
			if err := json.Unmarshal(line, &tr); err != nil {
				return traces, ticks, fmt.Errorf("line %d: %w", traces+1, err)
			}
			for _, disagreement := range tr.replay() {
				t.Error(disagreement)
			}
			traces++
			ticks += len(tr.Ticks)
		}
		if errors.Is(readErr, io.EOF) {
			return traces, ticks, nil
		}
		if readErr != nil {
			return traces, ticks, readErr
		}
	}
}

// kubelet plays what is around the gate: the published status, the pod's phase
// and the restart policy.
type kubelet struct {
	*trace
	now      time.Time
	target   Target
	deleting bool
	// published is the Started flag that the workers see, publishedID whose it is.
	published   bool
	publishedID string
	// older says that the container is older than the kubelet; unjudged, whether a
	// probe has adopted it so and has no entry in its cache yet.
	older    bool
	unjudged [NumKinds]bool
}

func (tr *trace) replay() (disagreements []string) {
	var params [NumKinds]Params
	for i, letter := range []string{"s", "r", "l"} {
		if p, ok := tr.Probes[letter]; ok {
			params[i] = Params{
				Configured:       true,
				InitialDelay:     time.Duration(p[0]) * time.Second,
				FailureThreshold: p[1],
				SuccessThreshold: p[2],
			}
		}
	}
	k := &kubelet{trace: tr, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), target: New(params)}
	if tr.Restart != nil && len(tr.Ticks) > 0 {
		// A restarted kubelet's first status is computed before it has workers, and
		// says Started of whatever runs (rule 2.7.6).
		inst := k.instance(tr.Ticks[0])
		k.published, k.publishedID = inst.running(), inst.ID
	}
	for i, tick := range tr.Ticks {
		outcomes, started, ready := k.tick(tick)
		if outcomes != tick.Outcomes || started != (tick.Started == 1) || ready != (tick.Ready == 1) {
			disagreements = append(disagreements, fmt.Sprintf(
				"trace %d (%s), tick %d: got %q started=%t ready=%t, the kubelet %q started=%t ready=%t",
				tr.Number, tr.Kind, i+1, outcomes, started, ready, tick.Outcomes, tick.Started == 1, tick.Ready == 1))
		}
	}
	return disagreements
}

func (k *kubelet) tick(tick tick) (outcomes [NumKinds]string, started, ready bool) {
	k.deleting = k.deleting || strings.Contains(tick.Events, "d")
	inst := k.instance(tick) // what the status says
	seen := inst             // what the workers are told
	if strings.ContainsAny(tick.Events, "FS") && tick.State != "0" {
		seen = Instance{Final: true} // the pod has ended
	}
	k.older = strings.Contains(tick.Events, "p")
	k.publish(inst)
	for _, kind := range Kinds() {
		outcomes[kind] = k.pass(kind, inst, seen, tick.Handlers[kind])
		if k.Eager == 1 {
			k.publish(inst)
		}
	}
	return outcomes, k.started(inst), k.ready(inst)
}

func (k *kubelet) publish(inst Instance) {
	k.published, k.publishedID = k.started(inst), inst.ID
}

// started carries the published flag of the same container over where the startup
// probe has said nothing of it (rule 2.5.1 c).
func (k *kubelet) started(inst Instance) bool {
	carried := inst.running() && k.published && k.publishedID == inst.ID
	startup := k.target.Probe(Startup)
	silent := k.unjudged[Startup] || startup.Exists && startup.InstanceID != inst.ID
	return k.target.Started(inst) || carried && silent
}

// ready adds what a restarted kubelet believes of a container that is older than
// itself until its own probe has spoken (rule 2.7.4).
func (k *kubelet) ready(inst Instance) bool {
	if k.target.Ready(inst) || !k.started(inst) || !k.older {
		return k.target.Ready(inst)
	}
	readiness := k.target.Probe(Readiness)
	if !readiness.Exists {
		return true
	}
	return (k.unjudged[Readiness] || readiness.InstanceID != inst.ID) && (k.Restart == nil || k.Restart.Ready)
}

func (k *kubelet) instance(tick tick) Instance {
	inst := Instance{ID: strconv.Itoa(tick.ID), Deleting: k.deleting}
	switch tick.State {
	case "r":
		inst.Phase = Running
		inst.StartedAt = k.now.Add(-time.Duration(tick.X) * time.Millisecond)
	case "w":
		inst.Phase = Waiting
	case "t":
		inst.Phase = Terminated
		inst.Final = k.Sidecar == 0 && (k.RestartPolicy == "Never" || k.RestartPolicy == "OnFailure" && tick.X == 0)
	default:
		return Instance{}
	}
	return inst
}

// pass makes one pass of a worker and writes it down as the vectors do.
func (k *kubelet) pass(kind Kind, inst, seen Instance, handler byte) string {
	if _, configured := k.Probes[kind.String()[:1]]; !configured {
		return ""
	}
	before := k.target.Probe(kind)
	if !before.Exists {
		return "x"
	}
	goesOn, flag, attempts := "A", "-", "0"
	if inst.known() {
		flag = map[bool]string{true: "t", false: "f"}[k.published]
	}
	seeded := ""
	if seen.known() && seen.ID != before.InstanceID {
		seeded = k.meet(kind, seen)
	}
	met := k.target.Probe(kind)
	next, verdict := k.target.Next(kind, seen, k.published, k.now)
	decided := next.Probe(kind)
	switch verdict {
	case Wait:
	case Attempt:
		switch attempts = "1"; handler {
		case 'S', 'W':
			next = next.Fold(kind, Success)
		case 'F', 'U':
			next = next.Fold(kind, Failure)
		case 'E':
			attempts = "3"
		}
	case Quit:
		goesOn = "X"
	}
	after := next.Probe(kind)
	k.target = next
	if verdict == Quit {
		k.target = next.Remove(kind)
	}
	updates := seeded + updates(kind, met, decided, after)
	if updates != seeded {
		k.unjudged[kind] = false
	}
	cached, hold := letter(after), "."
	if k.unjudged[kind] {
		cached = "-"
	}
	if after.Held {
		hold = "h"
	}
	if updates != "" {
		updates = ":" + updates
	}
	return goesOn + flag + attempts + cached + hold + after.Last.String()[:1] + strconv.Itoa(after.Run) + updates
}

// meet is what happens at first sight of a container beside its initial value: one
// that is older than the kubelet gets none, and a sidecar's startup probe takes the
// Started flag's word for it. It returns the updates.
func (k *kubelet) meet(kind Kind, inst Instance) string {
	k.unjudged[kind] = false
	seeds := kind == Startup && k.Sidecar == 1 && k.published
	switch {
	case seeds && k.older:
		k.target = k.target.Adopt(kind, inst, Success)
	case k.older:
		k.target = k.target.Adopt(kind, inst, Unknown)
		k.unjudged[kind] = true
	}
	if seeds {
		return "S"
	}
	return ""
}

// letter is a probe's entry in the results cache.
func letter(p Probe) string {
	if p.InstanceID == "" {
		return "-"
	}
	return p.Result.String()[:1]
}

// updates are the changes of a probe's entry during a pass, in order: the initial
// value of a new container, what was decided before the attempt, and the result.
func updates(kind Kind, before, decided, after Probe) (u string) {
	last := before.Result
	if decided.InstanceID != before.InstanceID {
		last = kind.initial()
		u = last.String()[:1]
	}
	for _, r := range []Result{decided.Result, after.Result} {
		if r != last {
			u += r.String()[:1]
		}
		last = r
	}
	return u
}
