// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// A unit that the file may name is a service that can run, by its whole name.
func TestValidUnit(t *testing.T) {
	for name, want := range map[string]string{
		"shop.service":                        "",
		"a.b-c_d:1.service":                   "",
		`dev-disk\x2dby.service`:              "",
		"shop@eu.service":                     "",
		"shop@eu@west.service":                "",
		strings.Repeat("s", 247) + ".service": "",
		"":                                    "must name a service, such as shop.service",
		"shop":                                `"shop" is no service: the name of a service ends in .service`,
		"shop.socket":                         `"shop.socket" is no service: the name of a service ends in .service`,
		"shop.service.d":                      `"shop.service.d" is no service: the name of a service ends in .service`,
		"shop.Service":                        `"shop.Service" is no service: the name of a service ends in .service`,
		".service":                            `".service" has nothing before .service`,
		"@.service":                           `"@.service" has nothing before @.service`,
		"@eu.service":                         `"@eu.service" has nothing before @eu.service`,
		"shop@.service":                       `"shop@.service" is a template: name an instance of the template, such as shop@1.service`,
		strings.Repeat("s", 248) + ".service": "must have at most 255 characters",
		"my shop.service":                     `"my shop.service" must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`,
		"usr/shop.service":                    `"usr/shop.service" must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`,
		"shöp.service":                        `"shöp.service" must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`,
		"shop\n.service":                      `"shop\n.service" must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`,
		"*.service":                           `"*.service" must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`,
	} {
		got := ""
		if err := ValidUnit(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
