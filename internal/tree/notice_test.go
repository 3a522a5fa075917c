// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// NOTICE names each module that is linked into the binaries, on any system, and no other
// module.
func TestNoticeNamesTheModules(t *testing.T) {
	var linked []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		c := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".")
		c.Dir, c.Env, c.Stderr = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system), os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		for module := range strings.FieldsSeq(string(out)) {
			linked = append(linked, regexp.MustCompile(`/v\d+$`).ReplaceAllString(module, ""))
		}
	}
	slices.Sort(linked)
	linked = slices.Compact(linked)

	var named []string
	for _, line := range regexp.MustCompile(`(?m)^[a-z.]+/.*$`).FindAllString(string(read(t, "NOTICE")), -1) {
		named = append(named, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	slices.Sort(named)
	if !slices.Equal(named, linked) {
		t.Errorf("NOTICE names\n%v\nthe binaries have\n%v", named, linked)
	}
}
