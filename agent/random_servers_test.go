// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// wellServed returns places where real servers answer well.
func wellServed(t *testing.T) places {
	t.Helper()
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	port := func(address string) int {
		_, port := actiontest.Split(address)
		return port
	}
	web := actiontest.Protocols((*http.Protocols).SetHTTP1)
	encrypted := actiontest.WebServer(t, fine, web, true)
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := httptest.NewUnstartedServer(fine)
	local.Listener.Close()
	local.Listener = l
	local.Start()
	t.Cleanup(local.Close)
	certificate, key := testutil.NewAuthority(t, "clients").Issue(t)
	return places{
		http:   port(actiontest.Web(t, fine)),
		https:  port(encrypted.Listener.Addr().String()),
		grpc:   port(actiontest.RPC(t, false, true)),
		secure: port(actiontest.RPC(t, true, true)),
		tcp:    port(actiontest.Raw(t, actiontest.Mute)),
		ca:     testutil.Write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw}))),
		cert:   testutil.Write(t, certificate),
		key:    testutil.Write(t, key),
		token:  testutil.Write(t, "hunter2\n"),
		beat:   testutil.Write(t, "beat"),
		beats:  true,
		socket: socket,
	}
}

// harm finds the attempts that an agent has counted against a target, and the restarts that it
// would have made.
var harm = regexp.MustCompile(`(?m)^prober_(probe_total\{.*result="failed".*|target_restart_actions_total\{.*) [1-9].*$`)

// An agent that loads random files one after the other, whose servers answer well, finds each
// target ready and live, and counts no failure. A try of each file succeeds.
func TestRandomFilesOfServers(t *testing.T) {
	seed := rand.Uint64()
	f := &maker{Rand: rand.New(rand.NewPCG(seed, 0)), places: wellServed(t), quick: true}
	file := testutil.Write(t, "targets: []\n")
	a := start(t, file, withRequests)
	for range 6 {
		text := f.file()
		testutil.Rewrite(t, file, text)
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != http.StatusOK {
			t.Fatalf("seed %d: a reload answers %d %s\n%s", seed, status, body, text)
		}
		var out, said bytes.Buffer
		if err := Try(context.Background(), options(file), nil, &out, &said); err != nil {
			t.Errorf("--config.try: %v\n%s%s", err, out.String(), said.String())
		}
		cfg, _, err := config.LoadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cfg.Targets {
			name := cfg.Targets[i].Name
			for _, member := range []string{"", "/m0", "/m1", "/m2", "/m3"} {
				_, _ = testutil.Do(t, http.MethodPost, a.Health+"/heartbeat/"+name+member) // 404, if there is no such probe
			}
			a.Eventually(name+" is ready", func() error {
				if status, body := testutil.Get(t, a.Web+"/live/"+name); status != http.StatusOK {
					t.Fatalf("seed %d: /live/%s answers %d %s", seed, name, status, body)
				}
				if status, body := testutil.Get(t, a.Web+"/ready/"+name+"?verbose"); status != http.StatusOK {
					return fmt.Errorf("/ready answers %d %s", status, body)
				}
				return nil
			})
		}
		if _, metrics := testutil.Get(t, a.Web+"/metrics"); harm.MatchString(metrics) {
			t.Errorf("the metrics have %q", harm.FindAllString(metrics, -1))
		}
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, text)
		}
	}
}
