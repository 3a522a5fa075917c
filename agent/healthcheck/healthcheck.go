// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package healthcheck makes the binary a client of an agent: it asks a health endpoint, waits
// for an answer, or tells the agent of its pod that the pod is being deleted.
package healthcheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Ask asks a health endpoint once and prints its answer.
func Ask(ctx context.Context, address string, w io.Writer) error {
	client := newClient(5 * time.Second)
	if _, err := ParseURL(address); err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, io.LimitReader(response.Body, 1<<20)); err != nil {
		return fmt.Errorf("health check: read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health check: %s answers %s", request.URL.Redacted(), response.Status)
	}
	return nil
}

// newClient returns a client that follows no redirect.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet asks
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ParseURL parses an http or https URL with a host.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if !strings.Contains(text, "://") || err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err = errors.New("must be an http or https URL with a host")
	}
	return u, err
}
