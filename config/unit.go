// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
)

// ValidUnit returns why systemd could not restart a unit of this name as a service; nil if it
// could. D-Bus wants the whole name, although systemctl takes shop for shop.service. Services
// alone are allowed, because only a service runs the process that a probe judges.
func ValidUnit(name string) error {
	const suffix, longest = ".service", 255 // as systemd counts
	prefix, service := strings.CutSuffix(name, suffix)
	first, instance, isInstance := strings.Cut(prefix, "@")
	switch {
	case name == "":
		return errors.New("must name a service, such as shop.service")
	case !service:
		return fmt.Errorf("%q is no service: the name of a service ends in %s", name, suffix)
	case len(name) > longest:
		return fmt.Errorf("must have at most %d characters", longest)
	case !only(prefix, alphanumeric+`:-_.\@`):
		return fmt.Errorf(`%q must consist of letters, digits and the characters :-_.\@ (systemd-escape writes others)`, name)
	case first == "":
		return fmt.Errorf("%q has nothing before %s", name, name[len(first):])
	case isInstance && instance == "":
		return fmt.Errorf("%q is a template: name an instance of the template, such as %s@1%s", name, first, suffix)
	}
	return nil
}
