// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen"
)

// The rhythm of AskUntil: at first the answer counts soon, later the agent has other things to do.
const (
	firstPause = 100 * time.Millisecond
	firstFor   = 5 * time.Second
	laterPause = time.Second
	// askTime is how long AskUntil waits for an answer.
	askTime = time.Second
)

// ErrFails is the error of a check that fails, which is on stderr or stdout already.
var ErrFails = errors.New("the health check fails")

// AskFailOpen asks a health endpoint once and waits that long for the answer. Only an agent's
// verdict on a target fails the check.
func AskFailOpen(ctx context.Context, address string, patience time.Duration, stdout, stderr io.Writer) error {
	return end(fetch(ctx, address, failopen.UserAgent, patience), stdout, stderr)
}

// AskUntil asks a health endpoint again and again until the answer is 200, or until the time is
// over: then the check fails. With failOpen, the last answer decides in the manner of
// AskFailOpen. AskUntil prints a line to stderr when the answer has changed.
func AskUntil(ctx context.Context, address string, wait time.Duration, failOpen bool, stdout, stderr io.Writer) error {
	last, ok := poll(ctx, wait, stderr, func(patience time.Duration) failopen.Answer {
		return fetch(ctx, address, "prober_exporter", patience)
	})
	switch {
	case ok:
		_, _ = io.WriteString(stdout, last.Body)
		return nil
	case failOpen:
		return end(last, stdout, stderr)
	}
	_, _ = fmt.Fprintf(stderr, "prober_exporter: --health.check.wait: no answer 200 within %v\n", wait)
	return ErrFails
}

func end(a failopen.Answer, stdout, stderr io.Writer) error {
	if a.Tell(stdout, stderr) != 0 {
		return ErrFails
	}
	return nil
}

// poll asks until the answer is 200, then ok is true, or until the time is over.
func poll(ctx context.Context, wait time.Duration, stderr io.Writer, ask func(patience time.Duration) failopen.Answer) (last failopen.Answer, ok bool) {
	begin := time.Now()
	told := ""
	for {
		asked := time.Now()
		patience := min(askTime, wait-asked.Sub(begin))
		a := ask(patience)
		if patience < askTime && a.Problem == failopen.Late(patience) && told != "" {
			return last, false // the end of the time has cut the question short
		}
		last = a
		if now := described(last); now != told {
			told = now
			_, _ = fmt.Fprintf(stderr, "prober_exporter: --health.check.wait: after %.1f s: %s\n", time.Since(begin).Seconds(), told)
		}
		if last.Problem == "" && last.Status == "200" {
			return last, true
		}
		pause := firstPause
		if asked.Sub(begin) >= firstFor {
			pause = laterPause
		}
		next := asked.Add(pause)
		if next.Sub(begin) >= wait {
			return last, false
		}
		if !sleep(ctx, time.Until(next)) {
			return last, false
		}
	}
}

// sleep waits, and returns false if ctx is done before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// described returns an answer as one short line.
func described(a failopen.Answer) string {
	if a.Problem != "" {
		return a.Problem
	}
	const most = 300
	text := strings.ReplaceAll(strings.TrimSuffix(a.Body[:min(len(a.Body), most)], "\n"), "\n", "; ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	return a.Status + ": " + text
}

// fetch asks once.
func fetch(ctx context.Context, address, userAgent string, patience time.Duration) failopen.Answer {
	if patience <= 0 {
		return failopen.Answer{Problem: failopen.Late(patience)}
	}
	if _, err := ParseURL(address); err != nil {
		return failopen.Answer{Problem: "nobody is asked: " + innermost(err)}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := get(ctx, address, userAgent)
	switch {
	case err == nil:
		return a
	case ctx.Err() != nil:
		return failopen.Answer{Problem: failopen.Late(patience)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return failopen.Answer{Problem: failopen.Refused}
	}
	return failopen.Answer{Problem: "no answer: " + innermost(err)}
}

func get(ctx context.Context, address, userAgent string) (failopen.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return failopen.Answer{}, err
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := newClient(0).Do(request)
	if err != nil {
		return failopen.Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, failopen.MaxAnswer))
	return failopen.Answer{Status: fmt.Sprintf("%03d", response.StatusCode), Body: string(body)}, err
}

// innermost returns the cause of an error: neither a URL, which may have a password, nor a
// local port, which differs from time to time.
func innermost(err error) string {
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			return err.Error()
		}
		err = cause
	}
}
