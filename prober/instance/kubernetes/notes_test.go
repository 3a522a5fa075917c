// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The source writes its log without a lock. So a log that asks the source, or that nobody reads, does
// not delay the source.
func TestKubernetesLogsWithoutLocks(t *testing.T) {
	own := seen(t, podOf("10", ""))
	synctest.Test(t, func(t *testing.T) {
		stuck, logged := make(chan struct{}), make(chan string, 10)
		var k *Source
		k = New(own, slog.New(testutil.LogFunc(func(line string) {
			k.Describe("app")
			logged <- line
			<-stuck
		})))
		k.Watch(appTarget("app", "nobody"))
		k.Watch(appTarget("another", "nobody"))
		ctx, cancel := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() { k.write(ctx) })
		<-logged
		k.Watch(appTarget("third", "nobody"))
		close(stuck)
		synctest.Wait()
		if got := len(logged); got != 2 {
			t.Errorf("%d more lines, want 2", got)
		}
		cancel()
		writing.Wait()
	})
}
