// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"strings"
	"testing"
	"time"
)

// The check fails only by an answer 503 in which an agent says that a target does not pass.
func TestVerdict(t *testing.T) {
	const verdict = "[-]app failed: liveness: http_status (3/3)\nlive check failed\n"
	for _, c := range []struct {
		status, body string
		fails        bool
	}{
		{"503", verdict, true},
		{"503", "[?]old unknown target\n" + verdict, true},
		{"503", "[+]db ok, since 2026-11-22T04:13:11Z\n" + verdict, true},
		{"503", "[-]app failed: startup: timeout (30/30)\n… and 7 more\nstarted check failed\n", true},
		{"503", "[-]app failed: not running\nready check failed\n", true},
		{"503", "[-]app failed: liveness: timeout (3/3), since 2026-11-22T04:13:11Z, restart in 35 s (back-off, third)\nlive check failed\n", true},
		{"503", "[-]app failed: liveness: overdue\nagent healthy check failed\n", true},
		{"500", verdict, false},
		{"502", verdict, false},
		{"200", verdict, false},
		{"503", "", false},
		{"503", "ok\n", false},
		{"503", "live check failed\n", false},
		{"503", strings.TrimSuffix(verdict, "\n"), false}, // cut
		{"503", "[-]app failed: liveness: http_status (3/3)\n", false},
		{"503", verdict + "\n", false},
		{"503", verdict + "more\n", false},
		{"503", "<html>\n" + verdict, false},
		{"503", "[-]app failed: timeout\nlivez check failed\n", false}, // an API server
		{"503", "[-]no configuration\nready check failed\n", false},
		{"503", "[-]agent stopping\nready check failed\n", false},
		{"503", "[-]pod terminating\nstarted check failed\n", false},
		{"503", "[-] failed: timeout\nlive check failed\n", false},
		{"503", "[-]app failed: \nlive check failed\n", false},
		{"503", "[+]app failed: timeout\nlive check failed\n", false},
		{"503", "The agent is stopping.\n", false},
		{"503", "<html><body>no server is available</body></html>\n", false},
		{"503", "upstream connect error or disconnect/reset before headers", false},
	} {
		var stdout, stderr strings.Builder
		code := Answer{Status: c.status, Body: c.body}.Tell(&stdout, &stderr)
		if fails := code == 1; fails != c.fails {
			t.Errorf("%s %q: exit %d, want failure %t", c.status, c.body, code, c.fails)
		}
		said := c.status == "200" || c.fails
		if want := map[bool]string{true: c.body}[said]; stdout.String() != want || (stderr.Len() == 0) != said || !said && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s %q: printed %q, said %q", c.status, c.body, stdout.String(), stderr.String())
		}
	}
}

// Without an answer the check passes, and stderr says why there was no answer.
func TestNoAnswer(t *testing.T) {
	for problem, want := range map[string]string{
		Refused:                             "exit with 0: nobody answers: connection refused\n",
		Late(time.Second):                   "exit with 0: no answer in time: waited 1s\n",
		Late(-time.Second):                  "exit with 0: no answer in time: this process took too long to start\n",
		"no answer: broken pipe":            "exit with 0: no answer: broken pipe\n",
		"no: " + strings.Repeat("x", 1<<20): "xxx",
	} {
		var stdout, stderr strings.Builder
		a := Answer{Status: "503", Body: "[-]app failed: timeout\nlive check failed\n", Problem: problem}
		if code := a.Tell(&stdout, &stderr); code != 0 || stdout.Len() > 0 || !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("exit %d, printed %q, said %q, want %q", code, stdout.String(), stderr.String(), want)
		}
	}
}

// The client's output fits into an empty pipe of any size.
func TestPrintedFits(t *testing.T) {
	var stdout, stderr strings.Builder
	body := strings.Repeat("[-]app failed: timeout\n", 1000) + "live check failed\n"
	if code := (Answer{Status: "503", Body: body}).Tell(&stdout, &stderr); code != 1 || stdout.Len() != maxPrinted || stderr.Len() > 0 {
		t.Errorf("exit %d, printed %d bytes, said %q", code, stdout.Len(), stderr.String())
	}
}
