// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// floodEnv makes the test binary an adversary in a process of its own. Its value is a
// floodPlan.
const floodEnv = "PROBER_TEST_FLOOD"

// floodPlan says what an adversary does. It keeps that many connections, sends the same in
// each, and reads nothing. Whenever a connection is closed, the adversary connects anew.
type floodPlan struct {
	Address     string
	Connections int
	Send        string
	Endless     int  // how many bytes of an endless header follow
	Patient     bool // does not connect anew
}

// floodMain is the adversary's process. It prints a line once all its connections have been
// made.
func floodMain(text string) {
	var plan floodPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	sent := []byte(plan.Send + strings.Repeat("a", plan.Endless))
	var made sync.WaitGroup
	made.Add(plan.Connections)
	for range plan.Connections {
		go func() {
			first := sync.OnceFunc(made.Done)
			for {
				c, err := net.Dial("tcp", plan.Address)
				first()
				if err != nil {
					<-time.After(10 * time.Millisecond)
					continue
				}
				_, _ = c.Write(sent)
				if plan.Patient {
					select {}
				}
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			}
		}()
	}
	made.Wait()
	fmt.Println("full")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends this process
	os.Exit(0)
}

// flood starts an adversary, and returns once all its connections have been made.
func flood(t *testing.T, plan floodPlan) {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floodEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := stdout.Read(make([]byte, 16)); err != nil {
		t.Fatalf("the adversary: %v", err)
	}
}

// kubeletAsks asks as a kubelet does, with a new connection and a second for each answer. It
// returns how many requests were answered with 200, and how long the longest answer took.
// Before each request kubeletAsks calls before.
func kubeletAsks(t *testing.T, url string, times int, before ...func()) (answered int, longest time.Duration) {
	t.Helper()
	kubelet := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	period := time.NewTicker(50 * time.Millisecond)
	defer period.Stop()
	for range times {
		for _, f := range before {
			f()
		}
		begin := time.Now()
		resp, err := kubelet.Get(url)
		longest = max(longest, time.Since(begin))
		if err != nil {
			t.Log(err)
		} else {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				answered++
			}
		}
		<-period.C
	}
	return answered, longest
}
