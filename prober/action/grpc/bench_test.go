// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grpc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// grpcServerEnv makes the test binary the server of the next benchmarks. Its value is the mode.
const grpcServerEnv = "PROBER_EXPORTER_BENCH_GRPC"

// BenchmarkGRPCServer is that server. It has a process of its own, so that benchmarks measure
// the client alone.
func BenchmarkGRPCServer(b *testing.B) {
	mode, ok := os.LookupEnv(grpcServerEnv)
	if !ok {
		b.Skip("the server of the other benchmarks") //nolint:forbidigo // nothing is lacking
	}
	fmt.Println("\nADDRESS " + actiontest.RPC(b, mode == "TLS", true))
	bufio.NewReader(os.Stdin).ReadString(0) // until the client has ended
}

// grpcServer starts the server and returns its address.
func grpcServer(b *testing.B, mode string) string {
	b.Helper()
	child := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkGRPCServer$", "-test.benchtime=1x")
	child.Env = append(os.Environ(), grpcServerEnv+"="+mode)
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); child.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "ADDRESS "); ok {
			return address
		}
	}
	b.Fatal("the server does not say where it is")
	return ""
}

type maker = func(*config.Target, *config.Probe) action.Func

// ofClient runs attempts and reports the client's costs: all its CPU time and its allocations.
func ofClient(b *testing.B, mode string, action maker, run func(once func())) {
	b.Helper()
	host, port := actiontest.Split(grpcServer(b, mode))
	f := action(targetOf(host), grpcOf(port, time.Minute, "", mode))
	once := func() {
		if got, err := f(b.Context()); !got.Success {
			b.Errorf("got %+v, error %v", got, err)
		}
	}
	once()
	b.ReportAllocs()
	b.ResetTimer()
	began := actiontest.CPU(b)
	run(once)
	b.ReportMetric(float64((actiontest.CPU(b)-began).Microseconds())/float64(b.N), "cpu-us/op")
}

// fast makes one attempt after the other.
func fast(b *testing.B, mode string, action maker) {
	b.Helper()
	ofClient(b, mode, action, func(once func()) {
		for range b.N {
			once()
		}
	})
}

// paced makes 1,000 attempts a second, together at a time.
func paced(b *testing.B, action maker, together int) {
	b.Helper()
	ofClient(b, "", action, func(once func()) {
		beat := time.NewTicker(time.Duration(together) * time.Millisecond)
		defer beat.Stop()
		var all sync.WaitGroup
		for done := 0; done < b.N; done += together {
			<-beat.C
			for range min(together, b.N-done) {
				all.Go(once)
			}
		}
		all.Wait()
	})
}

func BenchmarkGRPC(b *testing.B)          { fast(b, "", New) }
func BenchmarkGRPCUsual(b *testing.B)     { fast(b, "", newUsual) }
func BenchmarkGRPCTLS(b *testing.B)       { fast(b, "TLS", New) }
func BenchmarkGRPCTLSUsual(b *testing.B)  { fast(b, "TLS", newUsual) }
func BenchmarkGRPC1000Grid(b *testing.B)  { paced(b, New, 50) }
func BenchmarkGRPC1000(b *testing.B)      { paced(b, New, 1) }
func BenchmarkGRPC1000Usual(b *testing.B) { paced(b, newUsual, 1) }
