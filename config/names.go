// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	digits       = "0123456789"
	lower        = "abcdefghijklmnopqrstuvwxyz"
	letters      = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alphanumeric = letters + digits
)

// reservedLabels are set by the exporter or by Prometheus, or have a meaning to it.
var reservedLabels = map[string]bool{
	"target": true, "probe_type": true, "result": true, "reason": true, "source": true,
	"instance_id": true, "instance": true, "job": true, "le": true, "quantile": true, "condition": true,
}

// only reports whether s consists of these characters. An empty s does.
func only(s, chars string) bool {
	for i := range len(s) {
		if strings.IndexByte(chars, s[i]) < 0 {
			return false
		}
	}
	return true
}

func validTargetName(s string) bool {
	return s != "" && len(s) <= 63 && only(s[:1], alphanumeric) && only(s, alphanumeric+"-_.")
}

// portNameProblem returns the API server's message about a port name, empty if the name
// is valid.
func portNameProblem(s string) string {
	switch {
	case len(s) > 15:
		return "must be no more than 15 characters"
	case !only(s, lower+digits+"-"):
		return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
	case !strings.ContainsAny(s, lower):
		return "must contain at least one letter (a-z)"
	case strings.Contains(s, "--"):
		return "must not contain consecutive hyphens"
	case strings.HasPrefix(s, "-"), strings.HasSuffix(s, "-"):
		return "must not begin or end with a hyphen"
	}
	return ""
}

func validEnvName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) < 0
}

func labelNameProblem(s string) string {
	switch {
	case !validVariable(s):
		return "a label name must match [a-zA-Z_][a-zA-Z0-9_]*"
	case strings.HasPrefix(s, "__"):
		return "a label name must not begin with __"
	case reservedLabels[s]:
		return "the label name is reserved"
	}
	return ""
}

// validVariable reports whether s may stand in ${NAME}, or name a label.
func validVariable(s string) bool {
	return s != "" && !only(s[:1], digits) && only(s, alphanumeric+"_")
}

// validSubdomain reports whether s is a DNS subdomain, as Kubernetes checks it.
func validSubdomain(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !only(label, lower+digits+"-") || !bounded(label, lower+digits) {
			return false
		}
	}
	return true
}

// validQualifiedName reports whether s is a qualified name of Kubernetes without its domain.
func validQualifiedName(s string) bool {
	return len(s) <= 63 && only(s, alphanumeric+"-_.") && bounded(s, alphanumeric)
}

// bounded reports whether s begins and ends with one of these characters.
func bounded(s, chars string) bool {
	return s != "" && only(s[:1], chars) && only(s[len(s)-1:], chars)
}

func validHeaderName(s string) bool { return s != "" && only(s, alphanumeric+"-") }

// validHeaderValue reports whether a request can have a header with this value.
func validHeaderValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}

// validHost reports whether a host could be dialled. Names are not looked up, and they
// may be names that DNS would not take: a hosts file may have them.
func validHost(s string) bool {
	const longest = 253 // in the DNS
	if addr, err := netip.ParseAddr(s); err == nil {
		return validHostName(addr.Zone())
	}
	name := strings.TrimSuffix(s, ".")
	return name != "" && len(name) <= longest && validHostName(s)
}

func validHostName(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		if r < unicode.MaxASCII {
			return !strings.ContainsRune(alphanumeric+"-_.", r)
		}
		return r == unicode.ReplacementChar || !unicode.In(r, unicode.L, unicode.M, unicode.N)
	}) < 0
}

// signals are the names of signals other than real-time ones, as a container's stopSignal in
// Kubernetes may have them.
var signals = []string{
	"SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGKILL",
	"SIGPIPE", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP",
	"SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
}

// validSignal reports whether s is the name of a signal.
func validSignal(s string) bool {
	_, realTime := RealTimeSignal(s)
	return realTime || slices.Contains(signals, s)
}

// firstRealTime and lastRealTime are the numbers of SIGRTMIN and SIGRTMAX, as in the C library.
const firstRealTime, lastRealTime = 34, 64

// RealTimeSignal returns the number of a real-time signal by its name: SIGRTMIN, SIGRTMIN+1 to
// SIGRTMIN+15, SIGRTMAX-14 to SIGRTMAX-1, or SIGRTMAX.
func RealTimeSignal(name string) (number int, ok bool) {
	for i := range 16 {
		offset := strconv.Itoa(i)
		switch {
		case name == "SIGRTMIN+"+offset && i > 0, name == "SIGRTMIN" && i == 0:
			return firstRealTime + i, true
		case name == "SIGRTMAX-"+offset && 0 < i && i < 15, name == "SIGRTMAX" && i == 0:
			return lastRealTime - i, true
		}
	}
	return 0, false
}
