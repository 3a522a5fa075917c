// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// The defaults of an instance block.
const (
	defaultMaxHold = time.Minute
	defaultRefresh = time.Second
	defaultSocket  = "/var/run/docker.sock"
)

// lowestRefresh is the shortest time between two reads of the sockets.
const lowestRefresh = 100 * time.Millisecond

// sources are the values of instance.source. instanceKeys has the keys of each source,
// allInstanceKeys the keys of all sources.
var (
	sources      = []string{sourceAuto, SourceStatic, SourceListener, SourceProcess, SourceDocker, SourceKubernetes}
	instanceKeys = map[string][]string{
		sourceAuto:       {"ports", "maxHoldSeconds", "refreshSeconds"},
		SourceListener:   {"ports", "maxHoldSeconds", "refreshSeconds"},
		SourceProcess:    {"pidFile", "port", "match"},
		SourceDocker:     {"container", "label", "socket"},
		SourceKubernetes: {"container"},
	}
	allInstanceKeys = []string{
		"source", "ports", "maxHoldSeconds", "refreshSeconds", "pidFile", "port", "match", "container", "label", "socket",
	}
)

// instance returns the source of t's instances; t's ports are known already. The method
// listeners does the part that depends on the probes.
func (d *decoder) instance(v value, t *Target) Instance {
	var o object
	if v.set() {
		var ok bool
		if o, ok = d.object(v, allInstanceKeys...); !ok {
			return Instance{Source: SourceStatic}
		}
	}
	source := sourceAuto
	if s := o.get("source"); s.set() {
		if source = d.enum(s, sources...); source == "" {
			return Instance{Source: SourceStatic}
		}
	}
	for _, key := range allInstanceKeys[1:] {
		if v := o.get(key); v.set() && !slices.Contains(instanceKeys[source], key) {
			d.wrong(v, "is not a key of source: %s", source)
		}
	}
	i := Instance{Source: source}
	switch source {
	case sourceAuto, SourceListener:
		d.listener(o, &i, t)
		i.Auto = source == sourceAuto
	case SourceProcess:
		d.process(o, &i, t)
	case SourceDocker:
		d.docker(o, &i)
	case SourceKubernetes:
		i.Container = d.container(o.get("container"))
	}
	return i
}

// container returns the name of a container, which is required.
func (d *decoder) container(v value) string {
	s, ok := d.str(v)
	if ok && s == "" {
		d.wrong(v, required)
	}
	return s
}

// listener reads the keys of the sources listener and auto.
func (d *decoder) listener(o object, i *Instance, t *Target) {
	i.MaxHold = cmp.Or(d.seconds(o.get("maxHoldSeconds")), defaultMaxHold)
	i.Refresh = cmp.Or(d.seconds(o.get("refreshSeconds")), defaultRefresh)
	if v := o.get("refreshSeconds"); i.Refresh < lowestRefresh {
		d.wrong(v, "must be greater than or equal to %s, is %s", formatSeconds(lowestRefresh), formatSeconds(i.Refresh))
	}
	if v := o.get("ports"); v.set() && meansSocket(t.Host) {
		d.wrong(v, "must not be set: the target's host is a Unix socket, which has no ports")
		return
	}
	for _, item := range d.list(o.get("ports")) {
		p := d.portRef(item, t.Ports)
		i.Ports = append(i.Ports, p)
		i.addListener(t.Host, p.Number)
	}
}

// listeners decides which sockets the listener watches, and what auto becomes. v is the
// instance block.
func (d *decoder) listeners(v value, t *Target) {
	i := &t.Instance
	if i.Source != sourceAuto && i.Source != SourceListener {
		return
	}
	if len(i.Ports) == 0 {
		for _, p := range t.All() {
			if host, port := p.endpoint(t.Host); port != 0 || meansSocket(host) {
				i.addListener(host, port)
			}
		}
	}
	if i.Auto {
		d.choose(i)
		return
	}
	i.Listeners = d.shared.listening(i.Listeners)
	if len(i.Listeners) == 0 && !d.failed() {
		d.wrong(v, "source: listener needs a port to watch: no probe uses a TCP port, and instance.ports is empty")
	}
}

// choose replaces auto: by the listener if the target has ports on this machine to
// watch, otherwise by static.
func (d *decoder) choose(i *Instance) {
	i.Source = SourceStatic
	var local []Listener
	for _, l := range i.Listeners {
		if d.isLocal(l.Host) {
			local = append(local, l)
		}
	}
	switch {
	case runtime.GOOS != "linux":
		i.Why = "the agent sees listening sockets on Linux only"
	case len(i.Listeners) == 0:
		i.Why = "no probe uses a TCP port"
	case len(local) == 0:
		i.Why = fmt.Sprintf("host %s is not an address of this machine", i.Listeners[0].Host)
		if _, err := netip.ParseAddr(i.Listeners[0].Host); err != nil {
			i.Why = fmt.Sprintf("host %s is a name, which the agent does not look up", i.Listeners[0].Host)
		}
	default:
		i.Source = SourceListener
		i.Why = d.shared.text(watching(local))
		i.Listeners = d.shared.listening(local)
		return
	}
	// No setting of the listener stays: static has none.
	*i = Instance{Source: SourceStatic, Auto: true, Why: d.shared.text(i.Why)}
}

// watching says which sockets of this machine a listener watches.
func watching(local []Listener) string {
	var ports, sockets []string
	host := ""
	for _, l := range local {
		if path, ok := SocketPath(l.Host); ok {
			sockets = append(sockets, path)
			continue
		}
		host = cmp.Or(host, l.Host)
		ports = append(ports, strconv.Itoa(l.Port))
	}
	var parts []string
	if len(ports) > 0 {
		parts = append(parts, fmt.Sprintf("host %s is local, watching the listeners of TCP %s", host, strings.Join(ports, ", ")))
	}
	if len(sockets) > 0 {
		parts = append(parts, "watching the socket "+strings.Join(sockets, ", "))
	}
	return strings.Join(parts, ", and ")
}

// IsLocalhost reports whether a host name always means this machine (RFC 6761), so
// that no name server has to be asked.
func IsLocalhost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isLocal reports whether a host is this machine, as far as the agent can know without
// asking a name server. A socket always is.
func (d *decoder) isLocal(host string) bool {
	if meansSocket(host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return IsLocalhost(host)
	}
	addr = addr.Unmap()
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	if d.localAddrs == nil {
		d.localAddrs = map[netip.Addr]bool{}
		addrs, _ := net.InterfaceAddrs() // without them, nothing else is local
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				d.localAddrs[prefix.Addr().Unmap()] = true
			}
		}
	}
	return d.localAddrs[addr.WithZone("")]
}

func (i *Instance) addListener(host string, port int) {
	if l := (Listener{host, port}); !slices.Contains(i.Listeners, l) {
		i.Listeners = append(i.Listeners, l)
	}
}

// endpoint returns the host and port to which a probe connects: port 0 for a socket, and no host if
// the probe does not connect.
func (p *Probe) endpoint(host string) (string, int) {
	if a := p.kind(); a != nil && a.endpoint != nil {
		return a.endpoint(p, host)
	}
	return "", 0
}

func (d *decoder) process(o object, i *Instance, t *Target) {
	found := 0
	if v := o.get("pidFile"); v.set() {
		found++
		i.PIDFile = d.absolute(v)
	}
	if v := o.get("port"); v.set() {
		found++
		i.Port = d.portRef(v, t.Ports)
		if runtime.GOOS == "linux" && os.Geteuid() > 0 {
			d.noticef(Info, v.line, v.path(), "the agent sees the owner of a socket only if it has the target's user ID or CAP_SYS_PTRACE")
		}
	}
	if v := o.get("match"); v.set() {
		found++
		s, ok := d.str(v)
		i.Match = s
		if _, err := regexp.Compile(s); ok && err != nil {
			d.wrong(v, "must be a regular expression: %v", err)
		} else if ok && s == "" {
			d.wrong(v, "must not be empty")
		}
	}
	if found != 1 {
		d.wrong(o.value, "must have exactly one of pidFile, port, match")
	}
}

func (d *decoder) docker(o object, i *Instance) {
	container, label := o.get("container"), o.get("label")
	if container.set() == label.set() {
		d.wrong(o.value, "must have exactly one of container, label")
	}
	if container.set() {
		i.Container = d.container(container)
	}
	if label.set() {
		s, ok := d.str(label)
		name, value, found := strings.Cut(s, "=")
		if ok && (!found || name == "") {
			d.wrong(label, "must be key=value, is %s", quote(s))
		}
		i.Label = Label{Name: name, Value: value}
	}
	i.Socket = defaultSocket
	if v := o.get("socket"); v.set() {
		i.Socket = d.absolute(v)
	}
}

// absolute returns the path of a file, which must not depend on where the agent was
// started. The form of DOCKER_HOST, unix:///path, is understood.
func (d *decoder) absolute(v value) string {
	s, ok := d.str(v)
	if !ok {
		return ""
	}
	path := strings.TrimPrefix(s, "unix://")
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		d.wrong(v, "must be an absolute path, is %s", quote(s))
	}
	return path
}

// node returns the block as the file would have it.
func (i *Instance) node() *yaml.Node {
	n := mapping()
	source := text(i.Source)
	if i.Auto {
		source = text(sourceAuto)
		source.LineComment = i.Source + ": " + i.Why
	}
	add(n, "source", source)
	ports := list()
	for _, p := range i.Ports {
		ports.Content = append(ports.Content, p.node())
	}
	addSome(n, "ports", ports)
	if i.Source == SourceListener {
		add(n, "maxHoldSeconds", scalar(formatSeconds(i.MaxHold)))
		add(n, "refreshSeconds", scalar(formatSeconds(i.Refresh)))
	}
	addText(n, "pidFile", i.PIDFile)
	addPort(n, i.Port)
	addText(n, "match", i.Match)
	addText(n, "container", i.Container)
	if i.Label.Name != "" {
		add(n, "label", text(i.Label.Name+"="+i.Label.Value))
	}
	addText(n, "socket", i.Socket)
	return n
}
