// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// All ways to reload are one path: a good file is applied, a bad one is refused and
// everything stays as it was.
func TestReload(t *testing.T) {
	app := newApp(t)
	file := write(t, "targets:"+app.target("one"))
	a := start(t, flags(file, "--web.enable-lifecycle")...)
	a.says(a.health+"/ready", 200, "ok")
	if got := metric(t, a, "prober_exporter_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful: %q, want 1", got)
	}
	reloads := map[string]func(){
		"request": func() { do(t, http.MethodPost, a.web+"/-/reload") },
		"signal": func() {
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		},
	}
	for how, reload := range reloads {
		rewrite(t, file, "targets:"+app.target("one")+app.target(how))
		reload()
		a.says(a.health+"/ready/"+how, 200, "ok")
		a.is(a.health+"/ready/one", 200, "ok")

		rewrite(t, file, "targets:"+app.target("one")+"\n  - name: 7up!\n")
		reload()
		a.eventually("a refused reload is counted", func() error {
			if got := metric(t, a, "prober_exporter_config_last_reload_successful"); got != "0" {
				return fmt.Errorf("last reload successful: %s, want 0", got)
			}
			return nil
		})
		a.logs("level=warn", "configuration not loaded", "prober.yml:6", "targets[1].name")
		a.is(a.web+"/", 200, "prober.yml:6: targets[1].name: ")
		a.is(a.web+"/targets/"+how, 200, "the configuration of ")
		a.is(a.health+"/ready/"+how, 200, "ok")
	}
	status, body := do(t, http.MethodPost, a.web+"/-/reload")
	if status != 500 || !strings.Contains(body, "targets[1].name") {
		t.Errorf("a refused reload answers %d %q, want 500 and the mistake", status, body)
	}
	rewrite(t, file, "targets:"+app.target("one"))
	if status, body := do(t, http.MethodPost, a.web+"/-/reload"); status != 200 {
		t.Errorf("a good reload answers %d %q", status, body)
	}
	if _, body := get(t, a.web+"/"); strings.Contains(body, "was refused") {
		t.Errorf("the page tells of a reload that is over:\n%s", body)
	}
	a.is(a.health+"/live/request", 200, "[?]request removed: not probed")
	a.is(a.health+"/ready/request", 404, "")
	if got := metric(t, a, `prober_target_ready{target="request"}`); got != "" {
		t.Errorf("a removed target still has a series: %s", got)
	}
}

// Auto-reload follows the symbolic link of a mounted ConfigMap, tries a bad file
// once, and needs no file system events.
func TestAutoReload(t *testing.T) {
	app := newApp(t)
	dir := t.TempDir()
	version := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		rewrite(t, filepath.Join(dir, name, "prober.yml"), content)
		if err := os.Symlink(name, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("v1", "targets:"+app.target("one"))
	if err := os.Symlink(filepath.Join("..data", "prober.yml"), filepath.Join(dir, "prober.yml")); err != nil {
		t.Fatal(err)
	}
	a := start(t, flags(filepath.Join(dir, "prober.yml"), "--config.enable-auto-reload", "--config.auto-reload-interval=20ms")...)
	a.says(a.health+"/ready/one", 200, "ok")
	version("v2", "targets:"+app.target("two"))
	a.says(a.health+"/ready/two", 200, "ok")
	version("v3", "nonsense")
	a.logs("configuration not loaded")
	version("v4", "targets:"+app.target("four"))
	a.says(a.health+"/ready/four", 200, "ok")
	if n := strings.Count(a.log.String(), "configuration not loaded"); n != 1 {
		t.Errorf("a bad file is complained of %d times, want once:\n%s", n, a.log)
	}
	if err := os.Remove(filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	a.logs("configuration not loaded", "no such file")
	a.is(a.health+"/ready/four", 200, "ok")
}

// With --config.fail-open a broken or missing file kills nobody, and is tried again
// until it is good.
func TestFailOpen(t *testing.T) {
	app := newApp(t)
	for what, content := range map[string]string{"broken": "targets: [", "missing": ""} {
		t.Run(what, func(t *testing.T) {
			file := write(t, content)
			if what == "missing" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			a := start(t, flags(file, "--config.fail-open", "--config.auto-reload-interval=20ms")...)
			a.is(a.health+"/live", 200, "[?] no configuration")
			a.is(a.health+"/live/app", 200, "[?] no configuration")
			for _, path := range []string{"/ready", "/started", "/-/ready", "/ready/app"} {
				a.is(a.health+path, 503, "")
			}
			a.is(a.health+"/-/healthy", 200, "")
			a.is(a.web+"/config", 503, "")
			a.is(a.web+"/", 200, "No configuration is loaded ("+file+"): nothing is probed.")
			a.logs("level=error", "configuration not loaded")
			a.logs("level=warn", "going on without a configuration", "file="+file)
			if got := metric(t, a, "prober_exporter_config_last_reload_successful"); got != "0" {
				t.Errorf("last reload successful: %q, want 0", got)
			}
			rewrite(t, file, "targets:"+app.target("app"))
			a.says(a.health+"/ready/app", 200, "ok")
			a.is(a.health+"/-/ready", 200, "")
		})
	}
}

// On SIGTERM every live answers 200, the aggregate ready 503, one target's ready
// the truth, until the delay is over; a second signal cuts it short. Exit 0.
func TestShutdown(t *testing.T) {
	app, dying := newApp(t), newApp(t)
	file := write(t, "targets:"+app.target("app")+dying.target("dying"))
	terminate := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, flags(file, "--shutdown.delay=1h", "--web.enable-lifecycle")...)
	a.says(a.health+"/ready", 200, "ok")
	dying.broken.Store(true)
	a.says(a.health+"/live/dying", 503, "[-]dying failed: liveness: http_status (2/2)")
	terminate()
	a.says(a.health+"/-/ready", 503, "stopping")
	a.is(a.health+"/live", 200, "")
	a.is(a.health+"/live/dying", 200, "")
	a.is(a.health+"/ready", 503, "[-]agent stopping")
	a.is(a.health+"/ready/app", 200, "ok")
	app.broken.Store(true) // readiness goes on being probed, liveness does not
	a.says(a.health+"/ready/app", 503, "[-]app failed: readiness: http_status (1/1)")
	a.is(a.health+"/live/app", 200, "")
	for _, path := range []string{"/-/reload", "/api/v1/targets/app/new-instance"} {
		if status, body := do(t, http.MethodPost, a.web+path); status != 503 {
			t.Errorf("%s while stopping answers %d %q, want 503", path, status, body)
		}
	}
	if got := metric(t, a, "prober_exporter_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful: %q while stopping, want 1", got)
	}
	begin := time.Now()
	terminate()
	if code := a.wait(); code != 0 || time.Since(begin) > 5*time.Second {
		t.Errorf("exit %d after %v, want 0 at once:\n%s", code, time.Since(begin), a.log)
	}

	a = start(t, flags(file, "--shutdown.delay=200ms")...)
	begin = time.Now()
	terminate()
	if code := a.wait(); code != 0 || time.Since(begin) < 200*time.Millisecond {
		t.Errorf("exit %d after %v, want 0 after the delay of 200 ms", code, time.Since(begin))
	}
}

// A broken web configuration, from the start or later, takes nothing from the
// health listener.
func TestBrokenWebConfig(t *testing.T) {
	app := newApp(t)
	file := write(t, "targets:"+app.target("app"))
	web := write(t, "nonsense: 1\n")
	args := append(flags(file), "--web.config.file="+web)
	a := start(t, append(args, "--config.fail-open", "--config.auto-reload-interval=20ms")...)
	a.says(a.health+"/ready", 200, "ok")
	a.logs("level=error", "the web listener does not serve", "nonsense")
	rewrite(t, web, "basic_auth_users: {}\n")
	a.says(a.web+"/metrics", 200, "prober_probe_total")
	a.stop()

	a = start(t, args...)
	a.says(a.web+"/live", 200, "ok")
	rewrite(t, web, "nonsense: 1\n")
	a.says(a.web+"/live", 500, "")
	a.is(a.health+"/live", 200, "ok")
}

// An agent that fails open and finds its web address taken answers on the health
// listener all the same, and takes the address when it is free.
func TestWebAddressTaken(t *testing.T) {
	app := newApp(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := taken.Addr().String()
	health := "127.0.0.1:" + testutil.Port(t)
	a := &agent{t: t, log: &logBuffer{}, web: "http://" + web, health: "http://" + health, exit: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	t.Cleanup(func() { a.stop() })
	go func() {
		a.exit <- run(ctx, []string{
			"--config.file=" + write(t, "targets:"+app.target("app")), "--config.fail-open", "--config.auto-reload-interval=20ms",
			"--web.listen-address=" + web, "--health.listen-address=" + health,
		}, a.log)
	}()
	a.says(a.health+"/ready/app", 200, "ok")
	a.logs("level=error", "the web listener does not serve", "address already in use")
	taken.Close()
	a.says(a.web+"/metrics", 200, "prober_probe_total")
}

// The web configuration's users guard the web listener, not the health listener;
// without the latter a warning tells what that means.
func TestBasicAuth(t *testing.T) {
	app := newApp(t)
	file := write(t, "targets:"+app.target("app"))
	web := write(t, "basic_auth_users: {alice: $2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG}\n")
	a := start(t, append(flags(file), "--web.config.file="+web)...)
	a.says(a.health+"/ready", 200, "ok")
	a.is(a.web+"/ready", 401, "")
	a.is(a.web+"/metrics", 401, "")
	if strings.Contains(a.log.String(), "level=warn") {
		t.Errorf("a warning in spite of the health listener:\n%s", a.log)
	}
	a.stop()
	a = start(t, "--config.file="+file, "--web.listen-address=127.0.0.1:0", "--web.config.file="+web)
	a.logs("level=warn", "--health.listen-address")
}

// The one-shot client prints the answer and exits 0 for 200 alone.
func TestHealthCheck(t *testing.T) {
	app := newApp(t)
	a := start(t, flags(write(t, "targets:"+app.target("app")))...)
	a.says(a.health+"/ready", 200, "ok")
	for url, want := range map[string]int{
		a.health + "/ready/app":    0,
		a.health + "/ready/nobody": 1,
		"http://127.0.0.1:1/":      1,
		"nonsense://":              1,
		a.health[len("http://"):]:  1,
		"http://bad host/":         1,
	} {
		var log bytes.Buffer
		if code := run(context.Background(), []string{"--health.check=" + url}, &log); code != want {
			t.Errorf("%s: exit %d, want %d: %s", url, code, want, log.String())
		}
	}
}

// Neither the log nor any page shows the value of a header or of a variable, even if
// the target prints it.
func TestSecrets(t *testing.T) {
	app := newApp(t)
	t.Setenv("FROM_ENV", "hunter2secret")
	file := write(t, `targets:
  - name: app
    env: [{name: TOKEN, value: "${FROM_ENV}"}, {name: BOTH, value: "x-$(TOKEN)"}]
    readinessProbe:
      httpGet: {port: `+app.port+`, path: /h, httpHeaders: [{name: Authorization, value: "Bearer ${FROM_ENV}"}]}
      periodSeconds: 0.1
    livenessProbe:
      exec: {command: [sh, -c, "echo $(TOKEN); echo $BOTH; exit 1"]}
      periodSeconds: 0.1
`)
	a := start(t, flags(file, "--log.level=debug", "--log.format=json", "--web.enable-lifecycle")...)
	a.eventually("a failed liveness", func() error {
		if _, body := get(t, a.web+"/api/v1/targets/app"); !strings.Contains(body, "redacted") {
			return fmt.Errorf("no output yet: %s", body)
		}
		return nil
	})
	if h, ok := app.headers.Load("/h"); !ok || h.(http.Header).Get("Authorization") != "Bearer hunter2secret" {
		t.Errorf("the app was not sent the header: %v", h)
	}
	for _, path := range []string{"/metrics", "/config", "/api/v1/targets", "/api/v1/targets/app", "/live?verbose", "/", "/targets/app"} {
		if _, body := get(t, a.web+path); strings.Contains(body, "hunter2") {
			t.Errorf("%s shows a secret: %s", path, body)
		}
	}
	a.is(a.web+"/config", 200, "<redacted>")
	a.is(a.web+"/targets/app", 200, "value: &#34;&lt;redacted&gt;&#34;\n")
	if log := a.log.String(); strings.Contains(log, "hunter2") || !regexp.MustCompile(`"msg":"result changed"`).MatchString(log) {
		t.Errorf("the log shows a secret, or nothing:\n%s", log)
	}
}

// A scrape whose client goes away is no error of ours; any other trouble is.
func TestScrapeLog(t *testing.T) {
	var out bytes.Buffer
	log := scrapeLog{slog.New(slog.NewTextHandler(&out, nil))}
	log.Println("error encoding and sending metric family:", &net.OpError{Op: "write", Err: syscall.ECONNRESET})
	if out.Len() != 0 {
		t.Errorf("a client that goes away is logged: %s", out.String())
	}
	log.Println("error gathering metrics:", errors.New("collected twice"))
	if want := `level=ERROR msg=scrape err="error gathering metrics: collected twice"`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}
