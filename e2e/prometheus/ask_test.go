// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// server is a Prometheus server.
type server struct {
	name, file, addr string
	process          *process
}

// sample is one series of an answer, with its value at one moment.
type sample struct {
	labels map[string]string
	value  float64 // for a native histogram, its number of observations
}

// query runs a query now.
func (s *server) query(t *testing.T, expr string) []sample {
	t.Helper()
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct {
				Metric    map[string]string
				Value     [2]any
				Histogram []any
			}
		}
	}
	s.ask(t, "/api/v1/query", url.Values{"query": {expr}}, &answer)
	if answer.Data.ResultType != "vector" {
		t.Fatalf("%s: %s is a %s", s.name, expr, answer.Data.ResultType)
	}
	var all []sample
	for _, r := range answer.Data.Result {
		text := r.Value[1]
		if len(r.Histogram) == 2 {
			text = r.Histogram[1].(map[string]any)["count"]
		}
		value, err := strconv.ParseFloat(fmt.Sprint(text), 64)
		if err != nil {
			t.Fatalf("%s: %s: %v", s.name, expr, err)
		}
		all = append(all, sample{r.Metric, value})
	}
	return all
}

// one waits for an answer with one sample, and returns the sample.
func (s *server) one(t *testing.T, expr string) sample {
	t.Helper()
	var got []sample
	testutil.Within(t, time.Minute, fmt.Sprintf("%s: one series: %s", s.name, expr), func() bool {
		got = s.query(t, expr)
		return len(got) == 1
	})
	return got[0]
}

// becomes waits until the only sample of an answer has a value.
func (s *server) becomes(t *testing.T, expr string, want float64) {
	t.Helper()
	testutil.Within(t, time.Minute, fmt.Sprintf("%s: %s is %v", s.name, expr, want), func() bool {
		got := s.query(t, expr)
		return len(got) == 1 && got[0].value == want
	})
}

// ask makes a request to the API.
func (s *server) ask(t *testing.T, path string, form url.Values, answer any) {
	t.Helper()
	body, err := fetch("http://" + s.addr + path + "?" + form.Encode())
	if err == nil {
		err = json.Unmarshal([]byte(body), answer)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", s.name, err, body)
	}
}

// own returns the sum of a metric of the server itself.
func (s *server) own(t *testing.T, metric string) float64 {
	t.Helper()
	body, err := fetch("http://" + s.addr + "/metrics")
	found := regexp.MustCompile(`(?m)^`+metric+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(body, -1)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no metric %s: %v", s.name, metric, err)
	}
	sum := 0.0
	for _, m := range found {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// panel is the part of a panel that the tests need.
type panel struct {
	Title   string
	Targets []struct{ RefID, Expr string }
}

// dashboard returns the panels of the rendered dashboard, and the queries of its variables by
// their labels.
func dashboard(t *testing.T) (panels []panel, variables map[string]string) {
	t.Helper()
	var board struct {
		Panels     []panel
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../mixin/rendered/dashboards/prober.json")), &board); err != nil {
		t.Fatal(err)
	}
	variables = map[string]string{}
	for _, v := range board.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			variables[v.Name] = fmt.Sprint(query["query"])
		}
	}
	return board.Panels, variables
}

// chosen replaces a dashboard's variables by values, as Grafana does.
func chosen(expr string) string {
	for _, pair := range [][2]string{
		{"$__rate_interval", "10s"},
		{"$__range", "5m"},
		{"$job", "prober"},
		{"$namespace", "(monitoring|shop)"},
		{"$target", "(app|hung|gone|broken|flapping)"},
	} {
		expr = strings.ReplaceAll(expr, pair[0], pair[1])
	}
	return expr
}

// get returns an error unless a URL has a good answer.
func get(url string) error {
	_, err := fetch(url)
	return err
}

// fetch returns the body of a good answer.
func fetch(url string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(body), err
}

// command runs a program that must succeed, and returns its output.
func command(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// version returns the major version of a program of Prometheus.
func version(t *testing.T, program string) int {
	t.Helper()
	out := command(t, nil, program, "--version")
	m := regexp.MustCompile(`version (\d+)\.`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%s has no version: %s", program, out)
	}
	major, _ := strconv.Atoi(m[1])
	return major
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
