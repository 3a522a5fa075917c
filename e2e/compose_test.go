// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The compose example comes up and does what its page says. The application is restarted when
// it crashes and when it hangs, so is the worker, no other service is restarted, and Prometheus has all metrics.
func TestCompose(t *testing.T) {
	w := newDockerWorld(t)
	w.composeImages(t)
	if out, err := w.inside("ln", "-s", w.socket, "/run/docker.sock").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// The whole example is valid, even with Grafana, for which this machine has no image.
	w.compose(t, "--profile", "grafana", "config", "--quiet")
	w.compose(t, "build")
	w.compose(t, "up", "--detach", "--wait", "--wait-timeout", "60", "--pull", "never")
	t.Cleanup(func() {
		if t.Failed() {
			for _, service := range []string{"app", "prober", "restarter", "prometheus", "alertmanager"} {
				logs, _ := exec.Command("docker", "--host", "unix://"+w.socket, "logs", "--tail", "20", "shop-"+service+"-1").CombinedOutput()
				t.Logf("%s said:\n%s", service, logs)
			}
		}
		w.compose(t, "down", "--volumes", "--timeout", "1")
	})

	const agent, app = "http://127.0.0.1:9709", "http://127.0.0.1:8080"
	if got := w.asks(t, agent+"/ready?verbose"); !strings.Contains(got, "[+]app ok") {
		t.Errorf("after up --wait /ready says %q", got)
	}
	started := func(service string) string {
		return w.docker(t, "inspect", "--format", "{{.State.StartedAt}}", "shop-"+service+"-1")
	}
	others := func() (all string) {
		for _, service := range []string{"net", "worker", "prober", "restarter", "prometheus", "alertmanager"} {
			all += service + " " + started(service) + "\n"
		}
		return all
	}
	before := others()

	for restarts, fault := range []string{"/crash", "/deadlock"} {
		was := started("app")
		// The application answers neither request.
		exec.Command("nsenter", w.composeArgs("curl", "-s", "-m", "2", app+fault)...).Run()
		testutil.Within(t, 60*time.Second, "the application restarts after "+fault, func() bool { return started("app") != was })
		testutil.Within(t, 30*time.Second, "it is ready after "+fault, func() bool {
			return strings.Contains(w.asks(t, agent+"/ready/app"), "ok")
		})
		want := fmt.Sprintf(`prober_target_restarts_total{service="shop",target="app"} %d`, restarts+1)
		testutil.Within(t, 10*time.Second, want, func() bool { return strings.Contains(w.asks(t, agent+"/metrics"), want) })
	}
	if now := others(); now != before {
		t.Errorf("other services were restarted, too:\n%s%s", before, now)
	}

	testutil.Within(t, 30*time.Second, "Prometheus has the second restart", func() bool {
		return w.query(t, `prober_target_restarts_total{job="prober",instance="shop",target="app",service="shop"}`) == "2"
	})
	testutil.Within(t, 30*time.Second, "Prometheus has the mixin's rules", func() bool {
		return strings.Contains(w.asks(t, "http://127.0.0.1:9090/api/v1/rules"), "ProberTargetNotReady")
	})
	testutil.Within(t, 30*time.Second, "Prometheus knows the Alertmanager", func() bool {
		return strings.Contains(w.asks(t, "http://127.0.0.1:9090/api/v1/alertmanagers"), `"url":"http://alertmanager:9093`)
	})

	// One act for the one hang; the crash was Docker's affair.
	logs := func() string {
		out, _ := exec.Command("docker", "--host", "unix://"+w.socket, "logs", "shop-restarter-1").CombinedOutput()
		return string(out)
	}
	acts := func() int { return strings.Count(logs(), "restarting the target") }
	if n := acts(); n != 1 {
		t.Errorf("the restarter acted %d times, want 1:\n%s", n, logs())
	}

	// The next hang waits for the back-off, 10 s from the end of the last act. The restarter dies
	// in the middle of the act, and the application runs anew all the same.
	was := started("app")
	since, err := time.Parse(time.RFC3339Nano, was)
	if err != nil {
		t.Fatal(err)
	}
	exec.Command("nsenter", w.composeArgs("curl", "-s", "-m", "2", app+"/deadlock")...).Run()
	testutil.Within(t, 60*time.Second, "the second act", func() bool { return acts() == 2 })
	w.docker(t, "kill", "shop-restarter-1")
	testutil.Within(t, 60*time.Second, "the application restarts", func() bool { return started("app") != was })
	next, err := time.Parse(time.RFC3339Nano, started("app"))
	if err != nil || next.Sub(since) < 9900*time.Millisecond {
		t.Errorf("the restarts are %v apart, want 10s at least, error %v", next.Sub(since), err)
	}

	// An agent that is down restarts nobody, and what somebody has stopped stays so.
	w.docker(t, "start", "shop-restarter-1")
	w.docker(t, "stop", "--time", "2", "shop-prober-1")
	testutil.Within(t, 30*time.Second, "the restarter sees the application", func() bool {
		return strings.Count(logs(), "configuration loaded") >= 2
	})
	w.docker(t, "stop", "--time", "2", "shop-app-1")
	was = started("app")
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); dockerTick() {
		if started("app") != was {
			t.Fatalf("somebody has started the application:\n%s", logs())
		}
	}
	if n := acts(); n != 2 {
		t.Errorf("the restarter acted %d times, want 2:\n%s", n, logs())
	}

	// The worker has no port. It hangs, so its beats end, and the restarter restarts the worker.
	was = started("worker")
	w.docker(t, "kill", "--signal", "STOP", "shop-worker-1")
	testutil.Within(t, 60*time.Second, "the worker restarts", func() bool { return started("worker") != was })
	if n := acts(); n != 3 || !strings.Contains(logs(), "heartbeat_late") {
		t.Errorf("the restarter acted %d times, want 3, and for beats:\n%s", n, logs())
	}
}

// composeImages makes the images that the example and its Dockerfile name. Their programs are
// those of this machine, which may be older.
func (w *dockerWorld) composeImages(t *testing.T) {
	t.Helper()
	tools := map[string]string{"busybox": "/bin/busybox"}
	links := "RUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nENV PATH=/bin"
	w.image(t, "busybox:stable", "busybox", links, tools)
	w.golang(t, links)
	w.image(t, "prom/prometheus:v3.15.0", "prometheus", `ENTRYPOINT ["/bin/prometheus"]`, map[string]string{"prometheus": "/bin/prometheus"})
	alertmanager := map[string]string{"prometheus-alertmanager": "/bin/alertmanager"}
	// Debian's Alertmanager has its templates outside of the binary.
	templates, _ := filepath.Glob("/usr/share/prometheus/alertmanager/*.tmpl")
	for _, file := range templates {
		alertmanager[file] = file
	}
	w.image(t, "prom/alertmanager:v0.34.2", "alertmanager", `ENTRYPOINT ["/bin/alertmanager"]`, alertmanager)
}

// golang makes the image that compiles the agent. The image has this machine's Go and the
// modules that the agent imports, because the engine cannot reach a module proxy.
func (w *dockerWorld) golang(t *testing.T, links string) {
	t.Helper()
	env := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	goroot, root := env("GOROOT"), filepath.Join(w.dir, "golang", "root")
	list := exec.Command("go", "list", "-deps", ".", "./examples/shop")
	list.Dir = ".."
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(root, "go/pkg/mod"),
		"GOPROXY=file://"+filepath.Join(env("GOMODCACHE"), "cache/download")+","+env("GOPROXY"))
	for _, c := range []*exec.Cmd{
		exec.Command("mkdir", "-p", filepath.Join(root, "usr/local/go/pkg"), filepath.Join(root, "tmp")),
		exec.Command("cp", "-r", filepath.Join(goroot, "src"), filepath.Join(goroot, "go.env"), filepath.Join(goroot, "VERSION"), filepath.Join(root, "usr/local/go")),
		exec.Command("cp", "-r", filepath.Join(goroot, "pkg/tool"), filepath.Join(goroot, "pkg/include"), filepath.Join(root, "usr/local/go/pkg")),
		list,
	} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	w.image(t, "golang:1.26", "golang", links+":/usr/local/go/bin\nENV GOPATH=/go GOPROXY=off GOTOOLCHAIN=local",
		map[string]string{"busybox": "/bin/busybox", filepath.Join(goroot, "bin/go"): "/usr/local/go/bin/go"})
}

// library matches the file of a library in the output of ldd.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// image builds an image from files of this machine: programs, with the libraries that they are
// linked to.
func (w *dockerWorld) image(t *testing.T, tag, dir, lines string, programs map[string]string) {
	t.Helper()
	root := filepath.Join(w.dir, dir, "root")
	put := func(from, to string) {
		content, err := os.ReadFile(from)
		if err == nil {
			to = filepath.Join(root, to)
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, content, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for program, to := range programs {
		file := program
		if !filepath.IsAbs(file) {
			var err error
			if file, err = exec.LookPath(program); err != nil {
				t.Fatal(err)
			}
		}
		put(file, to)
		libraries, _ := exec.Command("ldd", file).Output() // ldd fails for a static program
		for _, found := range library.FindAllSubmatch(libraries, -1) {
			put(string(found[1]), string(found[1]))
		}
	}
	dockerfile := filepath.Join(w.dir, dir, "Dockerfile")
	if err := os.WriteFile(dockerfile, []byte("FROM scratch\nCOPY root /\n"+lines+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.docker(t, "build", "-q", "-t", tag, "-f", dockerfile, filepath.Join(w.dir, dir))
}

// compose runs Docker Compose on the example.
func (w *dockerWorld) compose(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "../bin/compose/docker-compose", append([]string{"--file", "../examples/compose/compose.yml"}, args...)...)
	c.Env = append(os.Environ(), "DOCKER_HOST=unix://"+w.socket, "DOCKER_CONFIG="+w.dir)
	if out, err := c.CombinedOutput(); err != nil {
		logs, _ := w.try("ps", "--all")
		t.Fatalf("%v: %v\n%s\n%s", c.Args, err, out, logs)
	}
}

// composeArgs returns the arguments with which nsenter runs a command of this machine in the
// engine's network, where the ports are published.
func (w *dockerWorld) composeArgs(args ...string) []string {
	return append([]string{"-t", fmt.Sprint(w.holder), "-n", "--"}, args...)
}

// asks returns the body of an answer, or nothing if there is no answer.
func (w *dockerWorld) asks(t *testing.T, url string) string {
	t.Helper()
	var out bytes.Buffer
	c := exec.Command("nsenter", w.composeArgs("curl", "-s", "-m", "5", url)...)
	c.Stdout = &out
	_ = c.Run() // no answer is an answer, too
	return out.String()
}

// query returns the value of a query with a single series, and otherwise nothing.
func (w *dockerWorld) query(t *testing.T, expr string) string {
	t.Helper()
	c := exec.Command("nsenter", w.composeArgs("curl", "-s", "-G", "--data-urlencode", "query="+expr, "http://127.0.0.1:9090/api/v1/query")...)
	out, _ := c.Output()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if json.Unmarshal(out, &answer) != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
