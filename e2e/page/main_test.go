// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package page tests the status page in a real Chromium, with the shipped binary and an
// application whose state the tests drive. `make e2e-page` runs the tests.
package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const (
	binary    = "../../bin/e2e-page/prober_exporter"
	artifacts = "artifacts" // the screenshots
	patience  = 30 * time.Second
)

// tabs is the browser. A test opens a tab in it.
var tabs context.Context

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e-page cannot run: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if what := os.Getenv(frontOf); what != "" {
		return 0, beFront(what)
	}
	if _, err := os.Stat(binary); err != nil {
		return 0, fmt.Errorf("the binary is missing: %w: make e2e-page builds it", err)
	}
	browser, err := findBrowser()
	if err != nil {
		if os.Getenv("PROBER_REQUIRE_ALL") != "" {
			return 0, err
		}
		fmt.Fprintf(os.Stderr, "e2e-page is skipped: %v\n", err)
		return 0, nil
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return 0, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	tabs, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(tabs, chromedp.Navigate("about:blank")); err != nil {
		return 0, fmt.Errorf("start %s: %w", browser, err)
	}
	return m.Run(), nil
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no chromium, chromium-browser or google-chrome")
}

// tab is a tab of the browser. Every complaint of the browser fails the test, also a breach of
// the policy on scripts and styles.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	expected   string // complaints that contain this do not fail the test
}

func open(t *testing.T, url string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(tabs)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	console := chromedp.Console(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		for message, err := range console {
			if err != nil {
				return
			}
			b.mu.Lock()
			if what := message.String() + " " + message.URL; b.expected == "" || !strings.Contains(what, b.expected) {
				b.complaints = append(b.complaints, what)
			}
			b.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		end()
		listening.Wait()
		for _, complaint := range b.complaints {
			t.Errorf("the browser says: %s", complaint)
		}
	})
	b.do(chromedp.EmulateViewport(1280, 860))
	b.do(before...)
	b.navigate(url)
	return b
}

// expect allows the browser a complaint.
func (b *tab) expect(complaint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = complaint
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) navigate(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// eval returns the value of a JavaScript expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text returns what a reader sees of an element, on one line.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}

// shows waits until an element shows all of the texts.
func (b *tab) shows(selector string, texts ...string) {
	b.t.Helper()
	var got string
	testutil.Eventually(b.t, "an element shows a text", func() error {
		got = b.text(selector)
		for _, want := range texts {
			if !strings.Contains(got, want) {
				return fmt.Errorf("%s shows %q, want %q", selector, got, want)
			}
		}
		return nil
	})
}

// targets returns the names of the targets on the page, in order.
func (b *tab) targets() string {
	b.t.Helper()
	return eval[string](b, "[...document.querySelectorAll('.target h2')].map(e => e.textContent).join(' ')")
}

func (b *tab) lists(want string) {
	b.t.Helper()
	testutil.Eventually(b.t, "the page lists targets", func() error {
		if got := b.targets(); got != want {
			return fmt.Errorf("the page has %q, want %q", got, want)
		}
		return nil
	})
}

// scheme makes the page light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}

// shoot stores a picture of the window.
func (b *tab) shoot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(artifacts, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
