// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package failopen is the client of --health.check.fail-open, which a kubelet runs in the
// application's container: only an agent's verdict on a target fails the check.
//
// The client runs every two seconds, and where the application has used up its share of CPU
// time. Most of what an ordinary start of the binary costs is the init of the packages that
// an agent needs. So package early calls Early from an init function, before all that. Packages
// are initialized in the order of their paths as far as their imports allow: this package
// imports os and what os imports, and neither strings nor strconv, which come late. Early takes
// the plain case and leaves everything else to main, which asks with net/http.
package failopen

import (
	"io"
	"time"
)

const (
	// askTime is how long the client waits for an answer.
	askTime = time.Second
	// wholeTime is how old the process may become. The kernel counts from where the container's
	// runtime begins to start the process, which takes seconds if the container is starved of
	// CPU time. The client then still asks, but leaves half of the timeoutSeconds: 60 of its probe.
	wholeTime = 30 * time.Second
	// maxPrinted bounds what the client prints to each stream. So much fits an empty pipe, and
	// a reader that is slow cannot delay the end of the client.
	maxPrinted = 4096
	// UserAgent is how the client calls itself. A kubelet runs the client only while the container
	// runs, so the agent takes the question for a kubelet's own.
	UserAgent = "kube-probe/prober_exporter"
	// MaxAnswer bounds the answer.
	MaxAnswer = 1 << 20
)

// Patience returns how long the client may still wait for an answer.
func Patience() time.Duration { return min(askTime, wholeTime-age()) }

// Answer is what the client learns.
type Answer struct {
	// Status and Body are the answer, if Problem is empty. Status has three digits.
	Status, Body string
	// Problem says why there is no answer.
	Problem string
}

// The problems.
const (
	Refused = "nobody answers: connection refused"
	late    = "no answer in time"
)

// Late is the problem that there was no answer for that long.
func Late(waited time.Duration) string {
	if waited <= 0 {
		return late + ": this process took too long to start"
	}
	return late + ": waited " + waited.Round(time.Millisecond).String()
}

// Fails reports whether the answer is an agent's verdict that a target does not pass.
func (a Answer) Fails() bool { return a.Problem == "" && a.Status == "503" && isVerdict(a.Body) }

// Tell prints the answer of an agent to stdout, and anything else to stderr. It returns the
// exit code of the process.
func (a Answer) Tell(stdout, stderr io.Writer) int {
	code := 0
	why := a.Problem
	switch {
	case a.Fails():
		code = 1
	case why == "" && a.Status == "503":
		why = "the answer has status 503, but is not an agent's verdict on a target"
	case why == "" && a.Status != "200":
		why = "the answer has status " + a.Status
	}
	if why != "" {
		write(stderr, "prober_exporter: --health.check.fail-open: exit with 0: "+why+"\n")
	} else {
		write(stdout, a.Body)
	}
	return code
}

// write writes what fits, in one piece. Nobody can be told of an error.
func write(w io.Writer, text string) { _, _ = io.WriteString(w, text[:min(len(text), maxPrinted)]) }

// isVerdict reports whether a body is how an agent says that a target does not pass: a line
// «[-]TARGET failed: WHY», and «CHECK check failed» as the last line. What an agent says of
// itself, such as «[-]no configuration», is not a verdict on a target.
func isVerdict(body string) bool {
	found := false
	for {
		line, rest, complete := cut(body, "\n")
		if !complete {
			return false
		}
		if rest == "" {
			return found && isFailure(line)
		}
		switch mark := line[:min(len(line), 3)]; mark {
		case "[-]":
			target, why, failed := cut(line[len(mark):], " failed: ")
			found = found || failed && target != "" && why != ""
		case "[+]", "[?]", "…": // three bytes each
		default:
			return false
		}
		body = rest
	}
}

// isFailure reports whether a line is the last of an answer 503 of a health endpoint.
func isFailure(line string) bool {
	switch line {
	case "live check failed", "ready check failed", "started check failed", "agent healthy check failed":
		return true
	}
	return false
}

// cut is strings.Cut, which comes too late.
func cut(s, sep string) (before, after string, found bool) {
	for i := range len(s) - len(sep) + 1 {
		if s[i:i+len(sep)] == sep {
			return s[:i], s[i+len(sep):], true
		}
	}
	return s, "", false
}
