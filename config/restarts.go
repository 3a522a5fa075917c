// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

// This file finds targets that would restart the same thing, each with a back-off of its own.

// restarts is what a restart block acts on, as the file names it: an instance or a unit.
type restarts struct {
	source, socket string
	container      string
	label          Label
	pidFile, match string
	port           int
	unit           string
}

// firstRestart is the first target that restarts something.
type firstRestart struct {
	name string
	line int
}

// instanceOf returns the instance that t restarts, and whether the file names one for certain: two
// listeners may watch some of the same sockets, and the agent leaves that to the time of the act.
func instanceOf(t *Target) (restarts, bool) {
	i := &t.Instance
	switch r := (restarts{source: i.Source}); i.Source {
	case SourceProcess:
		r.pidFile, r.match, r.port = i.PIDFile, i.Match, i.Port.Number
		return r, true
	case SourceDocker, SourceKubernetes:
		r.socket, r.container, r.label = i.Socket, i.Container, i.Label
		return r, true
	}
	return restarts{}, false
}

// checkRestarts checks, if there is no mistake so far, that no two targets restart the same instance
// or unit. items are the targets of c.
func (d *decoder) checkRestarts(items []value, c *Config) {
	if d.failed() {
		return
	}
	seen := map[restarts]firstRestart{}
	for i := range c.Targets {
		t := &c.Targets[i]
		if t.Restart == nil {
			continue
		}
		v := d.newObject(items[i]).get("restart")
		same := false
		if is, ok := instanceOf(t); ok {
			same = d.restartsToo(v, t, seen, is, "the same instance")
		}
		if s := t.Restart.Systemd; s != nil && !same {
			d.restartsToo(v, t, seen, restarts{unit: s.Unit}, s.Unit)
		}
	}
}

// restartsToo reports whether a target before t restarts the same thing, which is a mistake.
func (d *decoder) restartsToo(v value, t *Target, seen map[restarts]firstRestart, what restarts, called string) bool {
	first, same := seen[what]
	if same {
		d.wrong(v, "targets %s (line %d) and %s restart %s: only one of the two may have restart",
			quote(first.name), first.line, quote(t.Name), called)
		return true
	}
	seen[what] = firstRestart{t.Name, v.line}
	return false
}
