// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// substituted returns a string with each ${NAME} replaced from the environment.
// Messages name the variable, and never contain a value.
func (d *decoder) substituted(v value) (string, bool) {
	s, ok := d.str(v)
	if !ok || !strings.Contains(s, "${") {
		return s, ok
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			i = len(s)
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$${"):
			b.WriteString("${")
			s = s[len("$${"):]
		case strings.HasPrefix(s, "${"):
			name, rest, closed := strings.Cut(s[len("${"):], "}")
			if !closed || !validVariable(name) {
				d.wrong(v, "${ must be followed by the name of an environment variable and }: write $${ for a literal ${")
				return "", false
			}
			val, found := d.lookupEnv(name)
			if !found {
				d.wrong(v, "the environment variable %s is not set", name)
				ok = false
			}
			b.WriteString(val)
			s = rest
		case s != "":
			b.WriteByte('$')
			s = s[1:]
		}
	}
	return b.String(), ok
}

// expand replaces each $(NAME) that lookup knows. As in Kubernetes $$ stands for $,
// and everything else stays as it is: an unknown name, an unclosed $(, a single $.
func expand(s string, lookup map[string]string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch s[1] {
		case '$':
			b.WriteByte('$')
			s = s[2:]
		case '(':
			end := strings.IndexByte(s, ')')
			if end < 0 {
				b.WriteString("$(")
				s = s[2:]
				continue
			}
			if val, ok := lookup[s[2:end]]; ok {
				b.WriteString(val)
			} else {
				b.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
	b.WriteString(s)
	return b.String()
}

// Command returns e's command with $(NAME) expanded from the target's environment:
// the values as the file has them, which is the kubelet's rule for probes.
func (t *Target) Command(e *Exec) []string {
	values := make(map[string]string, len(t.Env))
	for _, v := range t.Env {
		values[v.Name] = v.Value
	}
	argv := make([]string, len(e.Command))
	for i, arg := range e.Command {
		argv[i] = expand(arg, values)
	}
	return argv
}

// Environ returns base, NAME=value each, with the target's environment added: what a
// container with that env would have. A variable replaces an earlier one of its name.
func (t *Target) Environ(base []string) []string {
	own, values := t.expandedEnv()
	env := make([]string, 0, len(base)+len(own))
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if _, replaced := values[name]; !replaced {
			env = append(env, entry)
		}
	}
	for _, v := range own {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// expandedEnv returns the target's environment, without the earlier of two of one
// name, and the same as a map. A value may refer to those before it.
func (t *Target) expandedEnv() ([]EnvVar, map[string]string) {
	values := make(map[string]string, len(t.Env))
	at := make(map[string]int, len(t.Env))
	var env []EnvVar
	for _, v := range t.Env {
		v.Value = expand(v.Value, values)
		values[v.Name] = v.Value
		if i, ok := at[v.Name]; ok {
			env[i].Value = v.Value
			continue
		}
		at[v.Name] = len(env)
		env = append(env, v)
	}
	return env, values
}
