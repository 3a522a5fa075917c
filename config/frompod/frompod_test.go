// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const image = "prober-exporter:0.1.0"

// anyActions is the list of all actions as error messages write it.
var anyActions = regexp.MustCompile(`exec, (\w+, )*\w+ or \w+`)

// outcome returns everything that Convert says, by these names.
func outcome(manifest string, o Options, out, said string) map[string]string {
	o.Image = image
	text, notices, err := Convert("pod.yaml", []byte(manifest), o)
	got := map[string]string{}
	if len(text) > 0 {
		got[out] = string(text)
	}
	for _, n := range notices {
		got[said] += n.Level.String() + " " + n.String() + "\n"
	}
	if err != nil {
		got[said] += anyActions.ReplaceAllString(err.Error(), "ACTIONS") + "\n"
	}
	return got
}

// manifests returns the paths of the archives in testdata, which have all outcomes, or in a directory
// of testdata, which have the outcome of the way of restarting that names the directory.
func manifests(t testing.TB, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", directory, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// everyManifest returns all archives of testdata.
func everyManifest(t testing.TB) []string {
	t.Helper()
	files := manifests(t, "")
	for _, way := range Restarts() {
		files = append(files, manifests(t, way)...)
	}
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	return files
}

// Each file of testdata has a manifest and the exact outcome: the configuration and its notices,
// and the rewritten manifest and its notices.
func TestGolden(t *testing.T) {
	for _, file := range manifests(t, "") {
		golden(t, file, []string{"config", "said", "rewritten", "said of the rewritten"}, func(manifest string, names []string) map[string]string {
			got := outcome(manifest, Options{}, names[0], names[1])
			maps.Copy(got, outcome(manifest, Options{Rewrite: true}, names[2], names[3]))
			return got
		})
	}
}

// The files of a directory have the outcome of a manifest with another way of restarting.
func TestGoldenRestarts(t *testing.T) {
	for _, way := range Restarts()[1:] {
		files := manifests(t, way)
		if len(files) < 5 {
			t.Errorf("%s: %d files", way, len(files))
		}
		for _, file := range files {
			golden(t, file, []string{"rewritten", "said"}, func(manifest string, names []string) map[string]string {
				return outcome(manifest, Options{Rewrite: true, Restart: Restart(way)}, names[0], names[1])
			})
		}
	}
}

// golden compares the outcome for the manifest of a file with the other parts of the file.
func golden(t *testing.T, file string, names []string, convert func(manifest string, names []string) map[string]string) {
	t.Helper()
	t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
		archive := testutil.ReadArchive(t, file)
		manifest := archive.Find("manifest")
		got := convert(manifest, names)
		if testutil.Update() {
			updated := testutil.Archive{Comment: archive.Comment}
			updated.Put("manifest", manifest)
			for _, name := range names {
				updated.Put(name, got[name])
			}
			updated.Write(t, file)
			return
		}
		for _, name := range names {
			if want := archive.Find(name); got[name] != want {
				t.Errorf("%s is\n%swant\n%s", name, got[name], want)
			}
		}
	})
}

// For every manifest in testdata, the configuration loads, and so does the configuration in the
// ConfigMaps of the rewritten manifest. Convert refuses to rewrite a manifest twice.
func TestResultsHold(t *testing.T) {
	for _, file := range everyManifest(t) {
		archive := testutil.ReadArchive(t, file)
		checkResults(t, archive.Find("manifest"))
	}
}

func checkResults(t *testing.T, manifest string) {
	t.Helper()
	plain, _, err := Convert("f", []byte(manifest), Options{Image: image})
	if err == nil {
		for _, d := range split(string(plain)) {
			loads(t, d.text)
		}
	}
	for _, way := range Restarts() {
		rewritten, _, rewriteErr := Convert("f", []byte(manifest), Options{Rewrite: true, Restart: Restart(way), Image: image})
		if rewriteErr != nil || string(rewritten) == manifest {
			continue
		}
		if err != nil {
			t.Fatalf("rewritten, but not converted: %v\n%s", err, manifest)
		}
		checkRewritten(t, string(rewritten), Restart(way))
	}
}

// checkRewritten checks that the configurations in a rewritten manifest load, and that Convert
// refuses to rewrite the manifest again.
func checkRewritten(t *testing.T, rewritten string, way Restart) {
	t.Helper()
	found := 0
	for _, d := range split(rewritten) {
		var m struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(d.text), &m); err == nil && m.Kind == "ConfigMap" && m.Data["prober.yml"] != "" {
			found++
			loads(t, m.Data["prober.yml"])
		}
	}
	if found == 0 {
		t.Fatalf("no configuration in\n%s", rewritten)
	}
	if out, _, err := Convert("f", []byte(rewritten), Options{Rewrite: true, Restart: way, Image: image}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Fatalf("rewritten twice (%v):\n%s", err, out)
	}
	if out, _, err := Convert("f", []byte(rewritten), Options{Image: image}); err == nil {
		t.Fatalf("converted after it was rewritten:\n%s", out)
	}
}

func loads(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, _, err := config.Load("f", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil || len(cfg.Targets) == 0 {
		t.Fatalf("the configuration does not load: %v\n%s", err, text)
	}
	return cfg
}

// Whatever the manifest, Convert returns a result or mistakes and never panics. Its results pass
// the checks of the other tests.
func FuzzConvert(f *testing.F) {
	for _, file := range everyManifest(f) {
		archive := testutil.ReadArchive(f, file)
		f.Add(archive.Find("manifest"))
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		if strings.Contains(manifest, "prober.yml") {
			return // the manifest's own ConfigMap, which may contain anything
		}
		all := []Options{{Image: image}}
		for _, way := range Restarts() {
			all = append(all, Options{Image: image, Rewrite: true, Restart: Restart(way)})
		}
		for _, o := range all {
			out, notices, err := Convert("f", []byte(manifest), o)
			if err != nil && out != nil {
				t.Fatal("both a result and mistakes")
			}
			if err != nil {
				for _, e := range err.(config.Errors) { //nolint:errorlint // the type is the promise
					checkLine(t, e.Error(), e.Line, manifest)
				}
			}
			for _, n := range notices {
				checkLine(t, n.String(), n.Line, manifest)
			}
		}
		checkResults(t, manifest)
	})
}

func checkLine(t *testing.T, text string, line int, manifest string) {
	t.Helper()
	if line < 1 || line > strings.Count(manifest, "\n")+2+strings.Count(manifest, "\r") || strings.ContainsAny(text, "\n\r\x00") {
		t.Fatalf("line %d: %q", line, text)
	}
}
