// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// board is the part of a dashboard that the tests need.
type board struct {
	Panels []struct {
		ID         int
		Type       string
		Title      string
		GridPos    struct{ X, Y, W, H int }
		Datasource *struct{ UID string }
		Targets    []struct {
			RefID      string
			Expr       string
			Datasource struct{ UID string }
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func dashboard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(read(t, "rendered/dashboards/prober.json")), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Each panel has an ID and a place of its own, and asks the chosen data source. Every variable
// that a panel uses exists.
func TestDashboard(t *testing.T) {
	b := dashboard(t)
	variables := []string{"__rate_interval", "__range"}
	for _, v := range b.Templating.List {
		variables = append(variables, v.Name)
	}
	for _, want := range []string{"datasource", "job", "namespace", "target"} {
		if !slices.Contains(variables, want) {
			t.Errorf("there is no variable %s", want)
		}
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: ID %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: %+v is beyond the grid", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[cell] != "" {
					t.Fatalf("panel %q lies on %q", p.Title, taken[cell])
				}
				taken[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource == nil || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks nobody: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("panel %q uses $%s, which does not exist", p.Title, m[1])
				}
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("only %d panels", len(ids))
	}
}

// Grafana's provisioning has a data source of the type that the dashboard asks for, and a
// provider for the dashboard's file.
func TestProvisioning(t *testing.T) {
	const dir = "../examples/grafana/provisioning/"
	var sources struct {
		APIVersion  int
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool
			JSONData                     map[string]string
		}
	}
	var boards struct {
		APIVersion int
		Providers  []struct {
			Name, Folder, Type    string
			AllowUIUpdates        bool
			UpdateIntervalSeconds int
			Options               struct{ Path string }
		}
	}
	for file, into := range map[string]any{"datasources/prometheus.yaml": &sources, "dashboards/prober.yaml": &boards} {
		if err := yaml.UnmarshalStrict([]byte(read(t, dir+file)), into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if len(sources.Datasources) != 1 || sources.APIVersion != 1 || sources.Datasources[0].Type != "prometheus" || !sources.Datasources[0].IsDefault {
		t.Errorf("got data sources %+v", sources)
	}
	if len(boards.Providers) != 1 || boards.APIVersion != 1 || boards.Providers[0].Type != "file" || !strings.HasPrefix(boards.Providers[0].Options.Path, "/") {
		t.Errorf("got providers %+v", boards)
	}
}
