// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// All ways to reload lead to the same result: the agent applies a good file, and refuses a bad
// file and changes nothing.
func TestReload(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("one"))
	a := start(t, file, withRequests)
	a.Says(a.Health+"/ready", 200, "ok")
	if got := a.Metric("prober_exporter_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful: %q, want 1", got)
	}
	reloads := map[string]func(){
		"request": func() { testutil.Do(t, http.MethodPost, a.Web+"/-/reload") },
		"signal": func() {
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		},
	}
	for how, reload := range reloads {
		testutil.Rewrite(t, file, "targets:"+app.Target("one")+app.Target(how))
		reload()
		a.Says(a.Health+"/ready/"+how, 200, "ok")
		a.Is(a.Health+"/ready/one", 200, "ok")

		testutil.Rewrite(t, file, "targets:"+app.Target("one")+"\n  - name: 7up!\n")
		reload()
		a.Eventually("the agent counts a refused reload", func() error {
			if got := a.Metric("prober_exporter_config_last_reload_successful"); got != "0" {
				return fmt.Errorf("last reload successful: %s, want 0", got)
			}
			return nil
		})
		a.Logs("level=warn", "configuration not loaded", "prober.yml:6", "targets[1].name")
		a.Is(a.Web+"/", 200, "prober.yml:6: targets[1].name: ")
		a.Is(a.Web+"/targets/"+how, 200, "the configuration of ")
		a.Is(a.Health+"/ready/"+how, 200, "ok")
	}
	status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload")
	if status != 500 || !strings.Contains(body, "targets[1].name") {
		t.Errorf("a refused reload answers %d %q, want 500 and the mistake", status, body)
	}
	testutil.Rewrite(t, file, "targets:"+app.Target("one"))
	if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != 200 {
		t.Errorf("a good reload answers %d %q", status, body)
	}
	if _, body := testutil.Get(t, a.Web+"/"); strings.Contains(body, "was refused") {
		t.Errorf("the page still shows a refused reload:\n%s", body)
	}
	a.Is(a.Health+"/live/request", 200, "[?]request removed: not probed")
	a.Is(a.Health+"/ready/request", 404, "")
	if got := a.Metric(`prober_target_ready{target="request"}`); got != "" {
		t.Errorf("a removed target still has a series: %s", got)
	}
}

// Auto-reload follows the symbolic link of a mounted ConfigMap, tries a bad file once, and
// needs no file system events.
func TestAutoReload(t *testing.T) {
	app := agenttest.NewApp(t)
	dir := t.TempDir()
	version := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		testutil.Rewrite(t, filepath.Join(dir, name, "prober.yml"), content)
		if err := os.Symlink(name, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("v1", "targets:"+app.Target("one"))
	if err := os.Symlink(filepath.Join("..data", "prober.yml"), filepath.Join(dir, "prober.yml")); err != nil {
		t.Fatal(err)
	}
	a := start(t, filepath.Join(dir, "prober.yml"), retrySoon, func(o *Options) { o.AutoReload = true })
	a.Says(a.Health+"/ready/one", 200, "ok")
	version("v2", "targets:"+app.Target("two"))
	a.Says(a.Health+"/ready/two", 200, "ok")
	version("v3", "nonsense")
	a.Logs("configuration not loaded")
	version("v4", "targets:"+app.Target("four"))
	a.Says(a.Health+"/ready/four", 200, "ok")
	if n := strings.Count(a.Log.String(), "configuration not loaded"); n != 1 {
		t.Errorf("the log complains of a bad file %d times, want once:\n%s", n, a.Log)
	}
	if err := os.Remove(filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	a.Logs("configuration not loaded", "no such file")
	a.Is(a.Health+"/ready/four", 200, "ok")
}

// With --config.fail-open a broken or missing file kills nobody, and the agent tries the file
// again until it is good.
func TestFailOpen(t *testing.T) {
	app := agenttest.NewApp(t)
	for what, content := range map[string]string{"broken": "targets: [", "missing": ""} {
		t.Run(what, func(t *testing.T) {
			file := testutil.Write(t, content)
			if what == "missing" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			a := start(t, file, failOpen, retrySoon)
			a.Is(a.Health+"/live", 200, "[?] no configuration")
			a.Is(a.Health+"/live/app", 200, "[?] no configuration")
			for _, path := range []string{"/ready", "/started", "/-/ready", "/ready/app"} {
				a.Is(a.Health+path, 503, "")
			}
			a.Is(a.Health+"/-/healthy", 200, "")
			a.Is(a.Web+"/config", 503, "")
			a.Is(a.Web+"/", 200, "No configuration is loaded ("+file+"): nothing is probed.")
			a.Logs("level=error", "configuration not loaded")
			a.Logs("level=warn", "running without a configuration", "file="+file)
			if got := a.Metric("prober_exporter_config_last_reload_successful"); got != "0" {
				t.Errorf("last reload successful: %q, want 0", got)
			}
			testutil.Rewrite(t, file, "targets:"+app.Target("app"))
			a.Says(a.Health+"/ready/app", 200, "ok")
			a.Is(a.Health+"/-/ready", 200, "")
		})
	}
}

// After SIGTERM, until the delay is over, every live check answers 200, the aggregate ready
// check answers 503, and the ready check of one target answers its real state. A second signal
// cuts the delay short. The exit code is 0.
func TestShutdown(t *testing.T) {
	app, dying := agenttest.NewApp(t), agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app")+dying.Target("dying"))
	terminate := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, file, withRequests, func(o *Options) { o.ShutdownDelay = time.Hour })
	a.Says(a.Health+"/ready", 200, "ok")
	dying.Broken.Store(true)
	a.Says(a.Health+"/live/dying", 503, "[-]dying failed: liveness: http_status (2/2)")
	terminate()
	a.Says(a.Health+"/-/ready", 503, "stopping")
	a.Is(a.Health+"/live", 200, "")
	a.Is(a.Health+"/live/dying", 200, "")
	a.Is(a.Health+"/ready", 503, "[-]agent stopping")
	a.Is(a.Health+"/ready/app", 200, "ok")
	app.Broken.Store(true) // the agent goes on probing readiness, but not liveness
	a.Says(a.Health+"/ready/app", 503, "[-]app failed: readiness: http_status (1/1)")
	a.Is(a.Health+"/live/app", 200, "")
	for _, path := range []string{"/-/reload", "/api/v1/targets/app/new-instance"} {
		if status, body := testutil.Do(t, http.MethodPost, a.Web+path); status != 503 {
			t.Errorf("%s while stopping answers %d %q, want 503", path, status, body)
		}
	}
	if got := a.Metric("prober_exporter_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful: %q while stopping, want 1", got)
	}
	begin := time.Now()
	terminate()
	if code := a.Wait(); code != 0 || time.Since(begin) > 5*time.Second {
		t.Errorf("exit %d after %v, want 0 at once:\n%s", code, time.Since(begin), a.Log)
	}

	a = start(t, file, func(o *Options) { o.ShutdownDelay = 200 * time.Millisecond })
	begin = time.Now()
	terminate()
	if code := a.Wait(); code != 0 || time.Since(begin) < 200*time.Millisecond {
		t.Errorf("exit %d after %v, want 0 after the delay of 200 ms", code, time.Since(begin))
	}
}

// A web configuration that is broken, from the start or later, does not affect the health
// listener.
func TestBrokenWebConfig(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app"))
	web := testutil.Write(t, "nonsense: 1\n")
	a := start(t, file, webConfig(web), failOpen, retrySoon)
	a.Says(a.Health+"/ready", 200, "ok")
	a.Logs("level=error", "the web listener does not serve", "nonsense")
	testutil.Rewrite(t, web, "basic_auth_users: {}\n")
	a.Says(a.Web+"/metrics", 200, "prober_probe_total")
	a.Stop()

	a = start(t, file, webConfig(web))
	a.Says(a.Web+"/live", 200, "ok")
	testutil.Rewrite(t, web, "nonsense: 1\n")
	a.Says(a.Web+"/live", 500, "")
	a.Is(a.Health+"/live", 200, "ok")
}

// An agent that fails open and finds its web address taken still answers on the health
// listener, and takes the address once it is free.
func TestWebAddressTaken(t *testing.T) {
	app := agenttest.NewApp(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := taken.Addr().String()
	health := "127.0.0.1:" + testutil.Port(t)
	o := options(testutil.Write(t, "targets:"+app.Target("app")), failOpen, retrySoon, func(o *Options) {
		o.Web.WebListenAddresses, o.HealthAddresses = &[]string{web}, []string{health}
	})
	a := agenttest.New(t)
	a.Web, a.Health = "http://"+web, "http://"+health
	a.Run(func(ctx context.Context, log io.Writer) int { return runWith(ctx, o, log) })
	a.Says(a.Health+"/ready/app", 200, "ok")
	a.Logs("level=error", "the web listener does not serve", "address already in use")
	taken.Close()
	a.Says(a.Web+"/metrics", 200, "prober_probe_total")
}

// The users of the web configuration guard the web listener, but not the health listener.
// Without a health listener a warning explains the consequence.
func TestBasicAuth(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app"))
	web := testutil.Write(t, "basic_auth_users: {alice: $2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG}\n")
	a := start(t, file, webConfig(web))
	a.Says(a.Health+"/ready", 200, "ok")
	a.Is(a.Web+"/ready", 401, "")
	a.Is(a.Web+"/metrics", 401, "")
	if strings.Contains(a.Log.String(), "level=warn") {
		t.Errorf("a warning in spite of the health listener:\n%s", a.Log)
	}
	a.Stop()
	a = start(t, file, webConfig(web), func(o *Options) { o.HealthAddresses = nil })
	a.Logs("level=warn", "--health.listen-address")
}

// Neither the log nor any page shows the value of a header or of a variable, even if
// the target prints it.
func TestSecrets(t *testing.T) {
	app := agenttest.NewApp(t)
	t.Setenv("FROM_ENV", "hunter2secret")
	file := testutil.Write(t, `targets:
  - name: app
    env: [{name: TOKEN, value: "${FROM_ENV}"}, {name: BOTH, value: "x-$(TOKEN)"}]
    readinessProbe:
      httpGet: {port: `+app.Port+`, path: /h, httpHeaders: [{name: Authorization, value: "Bearer ${FROM_ENV}"}]}
      periodSeconds: 0.1
    livenessProbe:
      exec: {command: [sh, -c, "echo $(TOKEN); echo $BOTH; exit 1"]}
      periodSeconds: 0.1
`)
	a := start(t, file, verbose, withRequests)
	a.Eventually("a failed liveness", func() error {
		if _, body := testutil.Get(t, a.Web+"/api/v1/targets/app"); !strings.Contains(body, "redacted") {
			return fmt.Errorf("no output yet: %s", body)
		}
		return nil
	})
	if h, ok := app.Headers.Load("/h"); !ok || h.(http.Header).Get("Authorization") != "Bearer hunter2secret" {
		t.Errorf("the app did not get the header: %v", h)
	}
	for _, path := range []string{"/metrics", "/config", "/api/v1/targets", "/api/v1/targets/app", "/live?verbose", "/", "/targets/app"} {
		if _, body := testutil.Get(t, a.Web+path); strings.Contains(body, "hunter2") {
			t.Errorf("%s shows a secret: %s", path, body)
		}
	}
	a.Is(a.Web+"/config", 200, "<redacted>")
	a.Is(a.Web+"/targets/app", 200, "value: &#34;&lt;redacted&gt;&#34;\n")
	a.Logs(`"msg":"result changed"`)
	if log := a.Log.String(); strings.Contains(log, "hunter2") {
		t.Errorf("the log shows a secret:\n%s", log)
	}
}

// The log does not treat a scrape whose client goes away as an error. It does report any other
// trouble.
func TestScrapeLog(t *testing.T) {
	var out bytes.Buffer
	log := scrapeLog{slog.New(slog.NewTextHandler(&out, nil))}
	log.Println("error encoding and sending metric family:", &net.OpError{Op: "write", Err: syscall.ECONNRESET})
	if out.Len() != 0 {
		t.Errorf("the log has a client that goes away: %s", out.String())
	}
	log.Println("error gathering metrics:", errors.New("collected twice"))
	if want := `level=ERROR msg=scrape err="error gathering metrics: collected twice"`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}
