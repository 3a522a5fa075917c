// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// If nobody answers, the timeout ends the attempt with the kubelet's text. The dial ends with
// the attempt and leaves no descriptor.
func TestDialTimeout(t *testing.T) {
	address := actiontest.BlackHole(t)
	before := actiontest.Descriptors(t)
	for name, c := range map[string]struct {
		f    action.Func
		want string
	}{
		"httpGet":   {httpProbe(address, 100*time.Millisecond, config.HTTPGet{Path: "/"}), fmt.Sprintf("Get %q: context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "http://"+address+"/")},
		"tcpSocket": {tcpProbe(address, 100*time.Millisecond), "dial tcp " + address + ": i/o timeout"},
		"grpc":      {grpcProbe(address, 100*time.Millisecond, "", ""), fmt.Sprintf("timeout: failed to connect service %q within 100ms: context deadline exceeded", address)},
	} {
		began := time.Now()
		got := actiontest.Attempt(t, c.f)
		took := time.Since(began)
		if got != (action.Outcome{Reason: action.Timeout, Output: c.want}) {
			t.Errorf("%s: got %+v, want %s", name, got, c.want)
		}
		if took < 100*time.Millisecond || took > 2*time.Second {
			t.Errorf("%s: took %v, timeout 100ms", name, took)
		}
		if after := actiontest.Descriptors(t); after > before {
			t.Errorf("%s: %d descriptors after, %d before", name, after, before)
		}
	}
}

// 200 attempts of every sort leave no descriptor and no goroutine behind.
func TestNetworkLeavesNothing(t *testing.T) {
	plain := actiontest.Web(t, actiontest.Site())
	secure := actiontest.WebServer(t, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2), true).Listener.Addr().String()
	clear2 := actiontest.WebServer(t, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetUnencryptedHTTP2), false).Listener.Addr().String()
	healthy, encrypted, silent, hole := actiontest.RPC(t, false, true), actiontest.RPC(t, true, true), actiontest.Raw(t, actiontest.Mute), actiontest.BlackHole(t)
	const short = 5 * time.Millisecond
	sorts := []action.Func{
		httpProbe(plain, time.Second, config.HTTPGet{Path: "/h"}),
		httpProbe(plain, time.Second, config.HTTPGet{Path: "/loop?n=9"}),
		httpProbe(plain, time.Second, config.HTTPGet{Path: "/reset"}),
		httpProbe(plain, time.Second, config.HTTPGet{Path: "/bigslow"}),
		httpProbe(plain, short, config.HTTPGet{Path: "/slow"}),
		httpProbe(plain, short, config.HTTPGet{Path: "/slowbody"}),
		httpProbe(secure, time.Second, config.HTTPGet{Path: "/h", Scheme: "HTTPS"}),
		httpProbe(secure, time.Second, config.HTTPGet{Path: "/loop?n=3", Scheme: "HTTPS"}),
		httpProbe(secure, 50*time.Millisecond, config.HTTPGet{Path: "/slow", Scheme: "HTTPS"}),
		httpProbe(clear2, time.Second, config.HTTPGet{Path: "/bigslow", Protocol: "HTTP2"}),
		httpProbe(silent, short, config.HTTPGet{Path: "/", Scheme: "HTTPS"}),
		httpProbe(hole, short, config.HTTPGet{Path: "/"}),
		tcpProbe(plain, time.Second), tcpProbe(hole, short), tcpProbe("127.0.0.1:1", time.Second),
		grpcProbe(healthy, time.Second, "", ""), grpcProbe(healthy, short, "slow", ""), grpcProbe(healthy, time.Second, "bad", ""),
		grpcProbe(encrypted, time.Second, "", "TLS"), grpcProbe(encrypted, short, "", ""), grpcProbe(healthy, short, "", "TLS"),
		grpcProbe(silent, short, "", "TLS"), grpcProbe(hole, short, "", ""),
	}
	round := func() {
		for _, f := range sorts {
			_, _ = f(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _ = f(ctx)
			cancel()
		}
	}
	round()
	var files, goroutines, same int
	testutil.Until(t, "the servers have finished", func() bool {
		f, g := actiontest.Descriptors(t), runtime.NumGoroutine()
		if f != files || g != goroutines {
			files, goroutines, same = f, g, 0
		}
		same++
		return same == 10
	})
	for range 200/len(sorts)/2 + 1 {
		round()
	}
	testutil.Until(t, "no more descriptors than before", func() bool { return actiontest.Descriptors(t) <= files })
	testutil.Until(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// exhaustedEnv passes the addresses of the servers to the child process of the next test.
const exhaustedEnv = "PROBER_EXPORTER_TEST_EXHAUSTED"

// An agent without descriptors reports an error of its own and says nothing about its targets.
// Once descriptors are free again, all attempts succeed.
func TestNetworkOutOfDescriptors(t *testing.T) {
	if addresses := os.Getenv(exhaustedEnv); addresses != "" {
		exhaust(t, strings.Fields(addresses))
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNetworkOutOfDescriptors$")
	child.Env = append(os.Environ(), exhaustedEnv+"="+actiontest.Web(t, actiontest.Site())+" "+actiontest.RPC(t, false, true))
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func exhaust(t *testing.T, addresses []string) {
	probes := map[string]action.Func{
		"httpGet":   httpProbe(addresses[0], 2*time.Second, config.HTTPGet{Path: "/"}),
		"tcpSocket": tcpProbe(addresses[0], 2*time.Second),
		"grpc":      grpcProbe(addresses[1], time.Second, "", ""),
	}
	run := func(want bool) {
		for name, f := range probes {
			got, err := f(t.Context())
			if got.Success != want || errors.Is(err, syscall.EMFILE) == want || !want && got.Reason != action.Other {
				t.Errorf("%s: got %+v, error %v", name, got, err)
			}
		}
		// The look-up of a name needs a descriptor, too.
		if got, err := tcpProbe("app.invalid:80", 5*time.Second)(t.Context()); !want && err == nil {
			t.Errorf("name: got %+v, no error", got)
		}
	}
	run(true) // opens the files that the runtime keeps
	limit := syscall.Rlimit{Cur: uint64(actiontest.Descriptors(t) + 10), Max: uint64(actiontest.Descriptors(t) + 10)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	run(false)
	for _, f := range held {
		f.Close()
	}
	run(true)
}
