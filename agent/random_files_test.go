// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// object is a mapping of a file. JSON is YAML.
type object = map[string]any

// places is what random files may ask: where something that answers well listens or lies.
type places struct {
	http, https, grpc, secure, tcp int    // secure: grpc with TLS
	ca, cert, key, token, beat     string // files; the token is a secret
	socket                         string // http
	beats                          bool   // somebody posts beats
	container                      bool   // the agent has containers and a pod: all sources are possible
}

// maker makes valid files at random, over all keys of a target. A new key needs a line in the
// method that makes its mapping.
type maker struct {
	*rand.Rand
	places
	quick  bool // all periods and delays are short
	shared bool // a target of this file restarts who listens at the shared port
}

// pick returns one of some values.
func pick[T any](f *maker, of ...T) T { return of[f.IntN(len(of))] }

// once reports true once in n times.
func (f *maker) once(n int) bool { return f.IntN(n) == 0 }

// some adds each of the keys to the object with a chance of one half.
func (f *maker) some(o, keys object) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if f.once(2) {
			o[key] = keys[key]
		}
	}
}

// file returns a file with one to five of six targets, whose names are t0 to t5.
func (f *maker) file() string {
	f.shared = false
	var targets []object
	for _, i := range f.Perm(6)[:1+f.IntN(5)] {
		targets = append(targets, f.target(fmt.Sprintf("t%d", i)))
	}
	text, err := json.MarshalIndent(object{"targets": targets}, "", " ")
	if err != nil {
		panic(err) // an object has only what JSON has
	}
	return string(text)
}

func (f *maker) target(name string) object {
	t := object{
		"name":  name,
		"ports": []object{{"name": "http", "containerPort": f.http}, {"name": "tcp", "containerPort": f.tcp}},
	}
	f.some(t, object{
		"host":   "127.0.0.1",
		"env":    []object{{"name": "A", "value": "some"}, {"name": "B", "value": pick(f, "$(A)thing", "secret")}},
		"labels": object{"team": pick(f, "a", "b")},
	})
	before := len(t)
	for _, kind := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		f.probes(t, kind)
	}
	if len(t) == before {
		t["livenessProbe"] = f.probe("livenessProbe")
	}
	f.instance(t)
	return t
}

// probes adds the probes of a kind: none, one, or a list.
func (f *maker) probes(t object, kind string) {
	switch f.IntN(4) {
	case 0:
	case 1, 2:
		t[kind] = f.probe(kind)
	default:
		var members []object
		for _, i := range f.Perm(4)[:1+f.IntN(3)] {
			p := f.probe(kind)
			p["name"] = fmt.Sprintf("m%d", i)
			members = append(members, p)
		}
		list := object{"probes": members}
		f.some(list, object{"require": pick[any](f, "all", "any", 1+f.IntN(len(members)))})
		t[kind+"s"] = list
	}
}

// instance chooses the source of a target, and perhaps who restarts the target.
func (f *maker) instance(t object) {
	sources := []object{
		nil,
		{"source": "auto", "refreshSeconds": pick(f, 0.1, 1)},
		{"source": "static"},
		{"source": "listener", "ports": []any{pick[any](f, "http", f.tcp)}, "maxHoldSeconds": pick(f, 1, 60)},
	}
	if f.container {
		name := fmt.Sprint(t["name"])
		sources = append(sources, object{"source": "process", "match": "^" + name}, object{"source": "kubernetes", "container": name},
			object{"source": "docker", "container": name}, object{"source": "docker", "label": "app=" + name})
	}
	source := pick(f, sources...)
	if source == nil {
		return
	}
	t["instance"] = source
	sees := source["source"]
	judged := slices.ContainsFunc([]string{"startupProbe", "startupProbes", "livenessProbe", "livenessProbes"}, func(k string) bool { return t[k] != nil })
	if sees == "auto" || sees == "static" || !judged || f.once(2) {
		return
	}
	if sees == "listener" && f.shared {
		return // only one target may restart who listens there
	}
	f.shared = f.shared || sees == "listener"
	r := object{"dryRun": true}
	handler := "exec"
	if sees == "docker" && f.once(2) {
		handler = "docker"
	}
	r[handler] = map[string]object{"exec": {"command": []string{"true"}}, "docker": {}}[handler]
	f.some(r, object{
		"terminationGracePeriodSeconds": pick(f, 2, 30),
		"backOff":                       object{"initialSeconds": pick(f, 0.5, 10)},
		"limit":                         object{"restarts": 3, "seconds": 60},
	})
	t["restart"] = r
}

// probe returns a probe of a kind, whose keys are those of the kind and those of all.
func (f *maker) probe(kind string) object {
	period, delay := pick(f, 0.5, 1, 3, 10.0), pick(f, 0, 0.3, 2)
	p := object{"timeoutSeconds": 10}
	if f.quick {
		period, delay = 0.1, 0.05
		p["periodSeconds"] = period
	}
	name, action := f.action()
	p[name] = action
	f.some(p, object{
		"initialDelaySeconds": delay,
		"periodSeconds":       period,
		"failureThreshold":    1 + f.IntN(3),
	})
	if p["periodSeconds"] == nil {
		period = 10
	}
	if kind == "readinessProbe" {
		f.some(p, object{"successThreshold": 1 + f.IntN(3)})
	} else {
		f.some(p, object{"terminationGracePeriodSeconds": pick(f, 2, 30)})
	}
	if kind != "livenessProbe" {
		f.some(p, object{"unhealthyPeriodSeconds": period / pick(f, 1.0, 2, 8)})
	}
	return p
}

// action returns an action and its name.
func (f *maker) action() (string, object) {
	switch f.IntN(5) {
	case 4:
		o := object{"maxAgeSeconds": 3600, "file": f.beat}
		if f.beats && f.once(2) {
			delete(o, "file")
		}
		return "heartbeat", o
	case 0:
		return "exec", object{"command": pick(f, []string{"true"}, []string{"echo", "$(A)"})}
	case 1:
		if f.once(3) {
			return "tcpSocket", object{"host": "unix://" + f.socket}
		}
		return "tcpSocket", f.host(object{"port": pick[any](f, "tcp", f.tcp)})
	case 2:
		o := object{"port": f.grpc}
		f.some(o, object{"mode": "Plaintext", "service": ""})
		if f.once(2) {
			o["port"], o["mode"] = f.secure, "TLS"
			f.some(o, object{"tlsConfig": f.tls()})
		}
		return "grpc", o
	default:
		return "httpGet", f.httpGet()
	}
}

func (f *maker) httpGet() object {
	o := object{"port": pick[any](f, "http", f.http)}
	f.some(o, object{
		"path": pick(f, "/", "/ok?a=b"),
		"httpHeaders": pick(f, []object{{"name": "X-Key", "value": "secret"}},
			[]object{{"name": "Authorization", "valueFile": f.token, "prefix": "Bearer "}}),
	})
	if f.once(3) {
		expect := object{"statusCodes": pick(f, []any{200}, []any{"200-299", "307"})}
		f.some(expect, object{
			"bodyMatches": "^fi", "bodyDoesNotMatch": `"status":\s*"DOWN"`,
			"headers": []object{{"name": "Content-Type", "matches": "^text/"}},
		})
		o["expect"] = expect
	}
	switch f.IntN(4) {
	case 3:
		delete(o, "port")
		o["host"] = "unix://" + f.socket
	case 0:
		o["port"], o["scheme"] = f.https, "HTTPS"
		f.some(o, object{"tlsConfig": f.tls()})
	case 1:
		f.host(o)["scheme"] = "HTTP"
	}
	return o
}

// tls returns a tlsConfig with which the servers verify.
func (f *maker) tls() object {
	o := object{}
	if f.once(3) {
		o["insecureSkipVerify"] = true
	} else {
		o["caFile"] = f.ca
	}
	if f.once(2) {
		o["certFile"], o["keyFile"] = f.cert, f.key
	}
	f.some(o, object{"serverName": "127.0.0.1", "minVersion": pick(f, "TLS12", "TLS13")})
	return o
}

// host perhaps gives an action a host of its own.
func (f *maker) host(o object) object {
	f.some(o, object{"host": pick(f, "127.0.0.1", "localhost")})
	return o
}
