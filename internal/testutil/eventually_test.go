// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// failed is a test that remembers how it failed.
type failed struct {
	testing.TB
	how string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.how = fmt.Sprintf(format, args...)
	panic(f)
}

// A wait ends when its condition holds, and fails with the last error at its limit.
func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := Within(t, time.Minute, "30 s have passed", func() bool { return time.Since(began) >= 30*time.Second })
		if late := at.Sub(began) - 30*time.Second; late > slowest {
			t.Errorf("%v late, want %v at most", late, slowest)
		}
		got := &failed{TB: t}
		began = time.Now()
		func() {
			defer func() { _ = recover() }()
			Eventually(got, "never", func() error { return errors.New("no") })
		}()
		if took := time.Since(began); got.how != "never: not within 30s: no" || took < patience || took > patience+slowest {
			t.Errorf("%q after %v", got.how, took)
		}
	})
}
