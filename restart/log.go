// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file tells of acts, in the log and to whoever wants to know.

// maxLogged is the most bytes of an output in the log.
const maxLogged = 256

// tell tells whoever wants to know of acts.
func (r *Restarter) tell(name string, a Act) {
	if r.o.Told != nil {
		r.o.Told(name, a)
	}
}

// logEnd logs how an act ended. begun says that a line of its beginning has told the verdict.
func (r *Restarter) logEnd(name string, a *Act, begun bool) {
	args := []any{"target", name, "instance_id", a.Instance}
	if !begun {
		args = a.attributes(name)
	}
	args = append(args, "duration", a.Duration.String(), "message", a.Message)
	switch a.Result {
	case Stale:
		r.o.Logger.Info("restart dropped", args...)
	case DryRun:
		r.o.Logger.Warn("dry run: the target would be restarted", args...)
	case Failed:
		r.o.Logger.Error("restart failed", args...)
	case Succeeded:
		r.o.Logger.Info("restart done", args...)
	}
}

// attributes returns the attributes of a log line about an act: its verdict.
func (a *Act) attributes(target string) []any {
	args := []any{"target", target, "instance_id", a.Instance, "probe_type", prober.ProbeType(a.Kind)}
	if a.Probe != "" {
		args = append(args, "probe", a.Probe)
	}
	args = append(args, "reason", string(a.Reason),
		"attempt", fmt.Sprintf("%d/%d", min(a.Failures, uint64(a.Threshold)), a.Threshold), "handler", a.Handler)
	if a.Output != "" {
		args = append(args, "output", output.Visible(output.Cut(a.Output, maxLogged)))
	}
	return args
}
