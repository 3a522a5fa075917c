// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// LookCommand returns the path of the executable that file names. A name with a
// slash is used as it is; any other name is searched for in pathEnv, which has the form
// of PATH. An executable from a relative directory of pathEnv is an error: the command
// must not depend on the directory in which the agent was started.
func LookCommand(file, pathEnv string) (string, error) {
	if file == "" {
		return "", &exec.Error{Name: file, Err: exec.ErrNotFound}
	}
	if filepath.Base(file) != file {
		return exec.LookPath(file)
	}
	for _, dir := range filepath.SplitList(pathEnv) {
		path := filepath.Join(dir, file)
		if !filepath.IsAbs(path) {
			path = "." + string(filepath.Separator) + path
		}
		// With a directory in front, LookPath checks only that file. LookPath knows the
		// system's rules: which files are executable, and which extensions they have.
		path, err := exec.LookPath(path)
		switch {
		case err != nil:
		case !filepath.IsAbs(path):
			return "", &exec.Error{Name: file, Err: exec.ErrDot}
		default:
			return path, nil
		}
	}
	return "", &exec.Error{Name: file, Err: exec.ErrNotFound}
}

// command has the arguments of LookCommand.
type command struct{ file, pathEnv string }

// noticeCommand warns of a command that does not exist. The command may appear later,
// so this is no error. A command that runs in the target's container is not looked for
// here. The notice names the command as the file has it: expanded, the name might
// contain a secret.
func (d *decoder) noticeCommand(v value, e *Exec, t *Target) {
	if t.Instance.Source == SourceDocker {
		return
	}
	_, values := t.expandedEnv()
	path, ok := values["PATH"]
	if !ok {
		path, _ = d.lookupEnv("PATH")
	}
	c := command{t.Command(e)[0], path}
	err, known := d.commands[c]
	if !known {
		_, err = LookCommand(c.file, c.pathEnv)
		d.commands[c] = err
	}
	if err == nil {
		return
	}
	// The reason without the path, for the same reason.
	if execErr, ok := errors.AsType[*exec.Error](err); ok {
		err = execErr.Err
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	d.noticef(Warn, v.line, v.path(), "the command %s cannot be executed now: %v", quote(e.Command[0]), err)
}

// noticeBoots warns of a target that could be killed while it boots, because its source
// does not see when a boot begins.
func (d *decoder) noticeBoots(v value, t *Target) {
	live, starts := t.Of(gate.Liveness), len(t.Of(gate.Startup)) > 0
	delays := slices.ContainsFunc(live, func(p *Probe) bool { return p.InitialDelay > 0 })
	if len(live) == 0 || !starts && !delays {
		return
	}
	source := t.Instance.Source
	if t.Instance.Auto {
		source = fmt.Sprintf("%s, which is %s: %s", sourceAuto, source, t.Instance.Why)
	}
	switch t.Instance.Source {
	case SourceListener:
		if starts {
			return
		}
		d.noticef(Warn, v.line, v.path(), "the agent does not see the first boot before the target listens (instance.source: %s), so initialDelaySeconds counts from the start of the agent: "+
			"add a startupProbe, or keep the delay on the probe that asks /live/%s", source, t.Name)
	case SourceStatic:
		d.noticef(Warn, v.line, v.path(), "the agent does not see restarts (instance.source: %s), so startupProbe and initialDelaySeconds protect the first boot only: "+
			"a later boot that takes longer than %s s (failureThreshold × periodSeconds) will be killed again", source, formatSeconds(t.patience(gate.Liveness)))
	}
}

// patience returns how long the probes of a kind fail before they say Failure together.
func (t *Target) patience(k gate.Kind) time.Duration {
	var all []time.Duration
	for _, p := range t.Of(k) {
		all = append(all, times(p.FailureThreshold, p.Period))
	}
	slices.Sort(all)
	return all[len(all)-t.Require(k)]
}
