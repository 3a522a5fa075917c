// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober"
)

// command is the command of exec probes.
const command = "/bin/true"

// These are the sides of a comparison.
const (
	sideUsual = "usual"
	sideOurs  = "ours"
	sideFloor = "floor"
)

// These are the measurements of a fresh process.
const (
	measureCost     = "cost"
	measureIdle     = "idle"
	measureLateness = "lateness"
)

// spec says what a fresh process measures.
type spec struct {
	Measure string
	Side    string
	Action  string
	Probes  int           // as many as targets, unless there are several Kinds
	Period  time.Duration // 0: as fast as possible
	Kinds   []string      // of the agent's probes; nil: only readiness
	Source  string        // of the agent's instances; empty: the default
	Warm    time.Duration
	Window  time.Duration
	At      []string // the endpoints of Action
	CA      string   // the file with the certificate of the action verified
	Profile string   // a file to write a CPU or heap profile to
}

// address returns the address of probe i.
func (s *spec) address(i int) string { return s.At[i%len(s.At)] }

// figures are the results of a measurement.
type figures struct {
	CPU     float64 // microseconds per probe, user and system
	Allocs  float64 // per probe
	Bytes   float64 // allocated per probe; when idle: resident bytes per probe
	Heap    float64 // when idle: bytes of the heap in use, per probe
	Rate    float64 // probes per second
	P50     float64 // lateness in seconds
	P99     float64 // lateness in seconds
	MaxRSS  float64 // bytes
	Failed  uint64  // the number of failed probes
	Because string  // why the last of them failed
}

// subject is a side with running probes.
type subject struct {
	manager *prober.Manager // of the agent's side
	counts  func() (ok, failed uint64)
	why     func() string
	stop    func()
}

// measure makes the measurement of a fresh process.
func measure(s spec) (figures, error) {
	raiseFiles()
	switch s.Measure {
	case measureIdle:
		return idle(s)
	case measureCost:
		return cost(s)
	case measureLateness:
		return lateness(s)
	}
	return figures{}, fmt.Errorf("cannot measure %q", s.Measure)
}

// raiseFiles raises the limit of open files as far as it goes.
func raiseFiles() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) // a low limit must do
	}
}

// cost measures the CPU time and the garbage of running probes.
func cost(s spec) (figures, error) {
	begin := map[string]func(spec) (*subject, error){sideUsual: usual, sideOurs: ours, sideFloor: floor}[s.Side]
	if begin == nil {
		return figures{}, fmt.Errorf("no side %q", s.Side)
	}
	on, err := begin(s)
	if err != nil {
		return figures{}, err
	}
	defer on.stop()
	ctx := context.Background()
	pause(ctx, s.Warm)
	endProfile, err := profile(s.Profile)
	if err != nil {
		return figures{}, err
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	okBefore, failedBefore := on.counts()
	cpuBefore, began := cpuTime(), time.Now()
	pause(ctx, s.Window)
	ok, failed := on.counts() // before the clock, because counting takes long on a busy machine
	cpu, took := cpuTime()-cpuBefore, time.Since(began)
	runtime.ReadMemStats(&after)
	endProfile()

	f := figures{MaxRSS: maxRSS(), Failed: failed - failedBefore}
	probes := float64(ok-okBefore) + float64(f.Failed)
	if probes == 0 {
		return f, fmt.Errorf("no probe ended within %v", s.Window)
	}
	if f.Failed > 0 {
		f.Because = on.why()
	}
	f.CPU = float64(cpu.Nanoseconds()) / 1e3 / probes
	f.Allocs = float64(after.Mallocs-before.Mallocs) / probes
	f.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / probes
	f.Rate = probes / took.Seconds()
	return f, nil
}

// idle measures the resident memory of a probe between its turns, after each probe has had one
// turn.
func idle(s spec) (figures, error) {
	m, err := apply(s, 1)
	if err != nil {
		return figures{}, err
	}
	defer m.Close()
	ctx := context.Background()
	pause(ctx, time.Second) // the first probes make the runtime take memory for this long
	rss, heap := settled()

	period := s.Period
	if err := reconfigure(m, configuration(s, s.Probes, period, s.Kinds)); err != nil {
		return figures{}, err
	}
	if err := allRun(ctx, m, s.Warm); err != nil {
		return figures{}, err
	}
	if s.Profile != "" {
		if err := heapProfile(s.Profile); err != nil {
			return figures{}, err
		}
	}
	rssAfter, heapAfter := settled()
	probes := float64(s.Probes * len(s.Kinds))
	return figures{
		Bytes: float64(rssAfter-rss) / probes, Heap: float64(heapAfter-heap) / probes, MaxRSS: maxRSS(),
	}, nil
}

// allRun waits until each probe has run.
func allRun(ctx context.Context, m *prober.Manager, atMost time.Duration) error {
	for end := time.Now().Add(atMost); time.Now().Before(end); pause(ctx, 500*time.Millisecond) {
		missing := 0
		for _, t := range m.Status(prober.Brief).Statuses {
			for i := range t.Probes {
				if t.Probes[i].LastRun.IsZero() {
					missing++
				}
			}
		}
		if missing == 0 {
			return nil
		}
	}
	return fmt.Errorf("not every probe ran within %v", atMost)
}

// settled returns the resident memory, and the heap in use without garbage.
func settled() (rss, heap int64) {
	for range 3 {
		debug.FreeOSMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return residentOf("self"), int64(stats.HeapAlloc)
}

// residentOf returns the resident memory of a process in bytes, or 0 if it is unknown.
func residentOf(pid string) int64 { return statm(pid, 1) }

// residentFilesOf returns the part of the resident memory that is pages of files, which all
// processes of a machine share.
func residentFilesOf(pid string) int64 { return statm(pid, 2) }

// statm returns a field of /proc/PID/statm in bytes, or 0 if it is unknown.
func statm(pid string, field int) int64 {
	statm, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) <= field {
		return 0
	}
	pages, err := strconv.ParseInt(fields[field], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// cpuTime returns the CPU time of this process without its children.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS returns the greatest resident memory of this process in bytes. It reads /proc, because
// getrusage also counts the memory of the parent process.
func maxRSS() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0
	}
	return kilobytes * 1024
}

// pause waits until ctx is done, or d has passed.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
