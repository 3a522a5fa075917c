// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// The API server's defaults (rule 13.1).
const (
	defaultTimeout          = time.Second
	defaultPeriod           = 10 * time.Second
	defaultSuccessThreshold = 1
	defaultFailureThreshold = 3
)

// probeFields returns the keys of a probe.
func probeFields() []string {
	return append(ActionNames(),
		"initialDelaySeconds", "timeoutSeconds",
		"periodSeconds", "unhealthyPeriodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds")
}

// probe returns a probe of t. The ports and the environment of t are known already.
func (d *decoder) probe(v value, kind gate.Kind, t *Target) *Probe {
	o, ok := d.object(v, d.probeFields...)
	if !ok {
		return nil
	}
	return d.probeOf(o, "", kind, t)
}

// probeOf returns a probe of t under a name, which is empty for the only probe of its kind.
func (d *decoder) probeOf(o object, name string, kind gate.Kind, t *Target) *Probe {
	p := &Probe{
		Name:             name,
		InitialDelay:     d.seconds(o.get("initialDelaySeconds")),
		Timeout:          cmp.Or(d.seconds(o.get("timeoutSeconds")), defaultTimeout),
		Period:           cmp.Or(d.seconds(o.get("periodSeconds")), defaultPeriod),
		SuccessThreshold: cmp.Or(d.count(o.get("successThreshold")), defaultSuccessThreshold),
		FailureThreshold: cmp.Or(d.count(o.get("failureThreshold")), defaultFailureThreshold),
	}
	if kind != gate.Readiness && p.SuccessThreshold != 1 {
		v := o.get("successThreshold")
		d.wrong(v, "must be 1, is %s", clip(v.node.Value))
	}
	p.UnhealthyPeriod = d.unhealthyPeriod(o.get("unhealthyPeriodSeconds"), kind, p)
	p.TerminationGracePeriodSeconds = d.gracePeriod(o.get("terminationGracePeriodSeconds"), kind, t)
	d.action(o, p, t)
	d.noticeVerified(o, kind, p)
	return d.shared.probe(p)
}

// gracePeriod returns the grace period of a probe of t, whose restart block is known already.
func (d *decoder) gracePeriod(v value, kind gate.Kind, t *Target) *int64 {
	if !v.set() {
		return nil
	}
	if kind == gate.Readiness {
		d.wrong(v, "must not be set for readinessProbes")
		return nil
	}
	n := d.integer(v, 1, math.MaxInt64, positive, "must be less than or equal to 9223372036854775807")
	if n > 0 && t.Restart == nil {
		d.noticef(Info, v.line, v.path(), "has no effect here: keep the key on the container's own probe")
	}
	return &n
}

// portRef returns a port by number or by name. The first port of that name counts,
// whatever its protocol (rule 8.1). Unlike in a kubelet, an unknown name is an error,
// because the probe would never count (rule 7.6).
func (d *decoder) portRef(v value, ports []Port) PortRef {
	if v.set() && typeName(v.node) != aNumber && typeName(v.node) != aString {
		d.wrong(v, "must be a number or a string, is %s", typeName(v.node))
		return PortRef{}
	}
	if !v.set() || typeName(v.node) == aNumber || v.node.Style == 0 && isNumber(v.node.Value) {
		return PortRef{Number: d.portNumber(v)}
	}
	name := d.shared.text(v.node.Value)
	if problem := portNameProblem(name); problem != "" {
		d.wrong(v, "%s, is %s", problem, quote(name))
		return PortRef{}
	}
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Name == name })
	if i < 0 {
		d.wrong(v, "must be the name of one of the target's ports, is %s", quote(name))
		return PortRef{}
	}
	return PortRef{Name: name, Number: ports[i].ContainerPort}
}

func isNumber(s string) bool {
	_, ok := parseDecimal(s)
	return ok
}
