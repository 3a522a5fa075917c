// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

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
	"strings"
	"testing"
	"time"
)

var vectorsFile = flag.String("vectors", "testdata/gate.jsonl.gz", "recorded passes to replay, a .gz or plain JSON Lines file")

// trace is one recorded run of a container's workers: their passes, without timers.
type trace struct {
	Number        int               `json:"n"`
	Kind          string            `json:"k"`
	RestartPolicy string            `json:"rp"`
	Sidecar       int               `json:"sc"`
	Eager         int               `json:"e"`
	Probes        map[string][3]int `json:"p"`
	Ticks         []tick            `json:"t"`
	// Restart is set if the kubelet itself has just been restarted (rule 2.7).
	Restart *struct {
		Ready bool `json:"ready"` // the pod's Ready condition before the restart
	} `json:"restart"`
}

// tick is one round of passes: the kubelet's input and its acts.
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

// The gate decides every pass that was recorded from the genuine kubelet worker alike: going on
// or ending, attempts, cached result, hold, last result, run and updates. The derived started
// and ready agree, too.
func TestKubeletVectors(t *testing.T) { replayVectors(t, New) }

// A list with one member decides alike.
func TestKubeletVectorsOfAList(t *testing.T) {
	replayVectors(t, func(params [NumKinds]Params) Target {
		target := New([NumKinds]Params{})
		target.lists = new([NumKinds]list)
		for k, p := range params {
			if p.Configured { // WithList would take the only member for a single probe
				target.lists[k] = list{require: 1, params: []Params{p}, probes: []Probe{{Exists: true}}}
			}
		}
		return target
	})
}

// replayVectors replays the recorded traces against targets of that shape.
func replayVectors(t *testing.T, shape func([NumKinds]Params) Target) {
	t.Helper()
	file, err := os.Open(*vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	traces, ticks, err := replayAll(t, file, strings.HasSuffix(*vectorsFile, ".gz"), shape)
	if err != nil {
		t.Fatalf("%s: %v", *vectorsFile, err)
	}
	if ticks == 0 {
		t.Fatalf("%s: nothing to replay", *vectorsFile)
	}
	t.Logf("%s: compared %d traces, %d ticks", *vectorsFile, traces, ticks)
}

// If a file has one character of an outcome altered, the replay disagrees, and its report names
// the trace and the tick.
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
	return tr.replay(New)
}

// replayAll replays each line of r and reports every disagreement to t.
func replayAll(t *testing.T, r io.Reader, gzipped bool, shape func([NumKinds]Params) Target) (traces, ticks int, err error) {
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
			for _, disagreement := range tr.replay(shape) {
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

func (tr *trace) replay(shape func([NumKinds]Params) Target) (disagreements []string) {
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
	k := &kubelet{trace: tr, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), target: shape(params)}
	if tr.Restart != nil && len(tr.Ticks) > 0 {
		// A restarted kubelet computes its first status before it has workers, and that
		// status says Started of every running container (rule 2.7.6).
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
