// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

// Package prometheus runs a real Prometheus, a real Alertmanager and the shipped agent with the
// files of examples/prometheus, the mixin's rules and its dashboard. `make e2e-prometheus`
// installs the programs and runs the tests.
package prometheus

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// world has all running programs, with their files in one directory.
type world struct {
	t        *testing.T // the test with which the world ends
	dir      string
	binary   string
	agent    *agent
	app      *app
	gone     *app
	hook     *hook
	renamed  *server // the scrape's labels win; classic histograms; rules with short waits
	honoured *server // the target's labels win; native histograms; the rules as they are
	alerts   string  // the address of the Alertmanager
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.binary = filepath.Join(w.dir, "prober_exporter")
	command(t, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", w.binary, "../..")
	command(t, nil, "go", "-C", "../../mixin", "run", ".", "-config", short, "-out", filepath.Join(w.dir, "short"))

	w.app, w.gone, w.hook = w.newApp(t, "app"), w.newApp(t, "gone"), newHook(t)
	w.agent = w.newAgent(t, "agent", w.targets())
	w.alerts = w.newAlertmanager(t)
	w.renamed = w.newPrometheus(t, "renamed", true)
	w.honoured = w.newPrometheus(t, "honoured", false)
	return w
}

// short is a configuration of the mixin with short waits.
const short = `{
	window: '10s',
	alerts:: std.mapWithKey(function(name, alert) alert { 'for': '2s' }, super.alerts),
}`

// targets returns a configuration with a target in each state.
func (w *world) targets() string {
	return fmt.Sprintf(`targets:
  - name: app # its readiness is what the test says; it can be restarted
    labels: {team: payments, namespace: shop}
    startupProbe: {httpGet: {path: /, port: %[1]s}, periodSeconds: 0.2}
    readinessProbe: {httpGet: {path: /ready, port: %[1]s}, periodSeconds: 0.2, failureThreshold: 2}
    livenessProbe: {httpGet: {path: /slow, port: %[1]s}, periodSeconds: 0.2}
  - name: hung # neither ready nor live, and the agent restarts it in vain: it is this process
    labels: {team: payments}
    instance: {source: process, pidFile: %[3]s}
    restart: {exec: {command: ["true"]}, backOff: {initialSeconds: 1, maxSeconds: 1}}
    readinessProbe: {exec: {command: ["false"]}, periodSeconds: 0.5, failureThreshold: 1}
    livenessProbe: {exec: {command: ["false"]}, periodSeconds: 0.5, failureThreshold: 1}
  - name: gone # will end, and not come back
    instance: {source: listener, maxHoldSeconds: 600}
    readinessProbe: {tcpSocket: {port: %[2]s}, periodSeconds: 0.5}
  - name: pair # ready by one of its two readiness probes
    instance: {source: static}
    readinessProbes:
      require: any
      probes:
        - {name: here, tcpSocket: {port: %[1]s}, periodSeconds: 0.5}
        - {name: away, exec: {command: ["false"]}, periodSeconds: 0.5, failureThreshold: 1}
  - name: flapping # each second attempt fails: near misses
    instance: {source: static}
    livenessProbe: {exec: {command: [sh, -c, 'rm %[4]s 2>/dev/null || ! touch %[4]s']}, periodSeconds: 0.5, failureThreshold: 2}
  - name: broken # the file asks for what is not there
    livenessProbe: {exec: {command: ["/not/there"]}, periodSeconds: 0.5}
`, w.app.port, w.gone.port, testutil.Write(w.t, strconv.Itoa(os.Getpid())), filepath.Join(w.dir, "flapping"))
}

// agent is the shipped binary as a process.
type agent struct {
	w          *world
	name, addr string
	file       string
	flags      []string // beside the flags of every agent
	process    *process
}

func (w *world) newAgent(t *testing.T, name, config string) *agent {
	t.Helper()
	a := &agent{w: w, name: name, addr: "127.0.0.1:" + testutil.Port(w.t), file: filepath.Join(w.dir, name+".yml")}
	testutil.Rewrite(t, a.file, config)
	a.start(t)
	return a
}

// start starts the agent on its address, the same at each start.
func (a *agent) start(t *testing.T) {
	t.Helper()
	a.process = a.w.run(t, a.name, a.w.binary, append(a.flags, "--config.file="+a.file, "--web.listen-address="+a.addr)...)
	testutil.Within(t, time.Minute, a.name+" serves", func() bool { return get("http://"+a.addr+"/-/ready") == nil })
}

// replacing returns a file of examples/ with some of its text replaced. The file must contain
// each text.
func replacing(t *testing.T, file string, pairs ...string) string {
	t.Helper()
	text := read(t, filepath.Join("../../examples/prometheus", file))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s does not say %q", file, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// newPrometheus starts a server with the example's file, and replaces the addresses and
// intervals. The scrape attaches a namespace, as in Kubernetes.
func (w *world) newPrometheus(t *testing.T, name string, classic bool) *server {
	t.Helper()
	pairs := []string{
		"127.0.0.1:9093", w.alerts,
		"interval: 15s", "interval: 1s",
		`- targets: ["127.0.0.1:9709"]`, fmt.Sprintf("- targets: [%q]\n        labels: {namespace: monitoring}", w.agent.addr),
	}
	rules := filepath.Join(w.dir, "short")
	args := []string{}
	if !classic {
		rules = absolute(t, "../../mixin/rendered")
		pairs = append(pairs, "honor_labels: false", "honor_labels: true")
		if version(t, "prometheus") < 3 {
			args = append(args, "--enable-feature=native-histograms")
		} else {
			pairs = append(pairs, "# scrape_native", "scrape_native")
		}
	}
	file := filepath.Join(w.dir, name+".yml")
	testutil.Rewrite(t, file, replacing(t, "prometheus.yml", append(pairs, "../../mixin/rendered", rules)...))
	s := &server{name: name, file: file, addr: "127.0.0.1:" + testutil.Port(w.t)}
	s.process = w.run(t, name, "prometheus", append(args, "--config.file="+file, "--web.listen-address="+s.addr,
		"--storage.tsdb.path="+filepath.Join(w.dir, name))...)
	testutil.Within(t, time.Minute, name+" serves", func() bool { return get("http://"+s.addr+"/-/ready") == nil })
	return s
}

// newAlertmanager starts an Alertmanager with the example's file, and replaces the receiver's
// address and the waits. It returns its address.
func (w *world) newAlertmanager(t *testing.T) string {
	t.Helper()
	file := filepath.Join(w.dir, "alertmanager.yml")
	testutil.Rewrite(t, file, replacing(t, "alertmanager.yml",
		"http://127.0.0.1:9095/alerts", w.hook.url, "group_wait: 30s", "group_wait: 1s", "group_interval: 5m", "group_interval: 1s"))
	addr := "127.0.0.1:" + testutil.Port(w.t)
	w.run(t, "alertmanager", "prometheus-alertmanager", "--config.file="+file, "--web.listen-address="+addr,
		"--storage.path="+filepath.Join(w.dir, "alerts"), "--cluster.listen-address=")
	testutil.Within(t, time.Minute, "the Alertmanager serves", func() bool { return get("http://"+addr+"/-/ready") == nil })
	return addr
}

// hook receives the deliveries of the Alertmanager.
type hook struct {
	url string

	mu   sync.Mutex
	seen []notice
}

// notice is one alert of a delivery.
type notice struct {
	Status      string
	Labels      map[string]string
	Annotations map[string]string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{url: fmt.Sprintf("http://%s/alerts", listener.Addr())}
	server := &http.Server{Handler: h}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Close(); done.Wait() })
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var delivery struct{ Alerts []notice }
	if err := json.NewDecoder(r.Body).Decode(&delivery); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, delivery.Alerts...)
}

// find returns the last notice of an alert on a target with a status.
func (h *hook) find(alert, target, status string) (notice, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range slices.Backward(h.seen) {
		if n.Labels["alertname"] == alert && n.Labels["target"] == target && n.Status == status {
			return n, true
		}
	}
	return notice{}, false
}

// process is a running program.
type process struct {
	cmd *exec.Cmd
	log string
}

// run starts a program, which ends with the world at the latest.
func (w *world) run(t *testing.T, name, program string, args ...string) *process {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(program, args...), log: log.Name()}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.stop(syscall.SIGTERM)
		if w.t.Failed() {
			text := read(w.t, p.log)
			w.t.Logf("the last words of %s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return p
}

// stop ends the process, if it still runs, and waits for its end.
func (p *process) stop(signal os.Signal) {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	stuck := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer stuck.Stop()
	_ = p.cmd.Wait()
}
