// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"gopkg.in/yaml.v3"
)

// The pod of examples/kubernetes/pod.yaml gets 200 for every probe from an agent with the file of
// several-probes.yaml, beside an application with HTTP and gRPC. Without gRPC the application is
// not ready and is live, and the answers have the words of docs/kubernetes.md.
func TestSeveralProbesExample(t *testing.T) {
	text, err := os.ReadFile("examples/kubernetes/several-probes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &configMap); err != nil {
		t.Fatal(err)
	}
	file := configMap.Data["prober.yml"]
	if documented := examples(t, "docs/kubernetes.md")["members"]; documented != file {
		t.Errorf("docs/kubernetes.md has\n%s", documented)
	}
	if text, err = os.ReadFile("examples/kubernetes/pod.yaml"); err != nil {
		t.Fatal(err)
	}
	_, pod := split(t, string(text))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	a := askAsPod(t, pod, strings.NewReplacer("9000", port, "periodSeconds: 5", "periodSeconds: 0.2", "periodSeconds: 2\n", "periodSeconds: 0.2\n").Replace(file))

	a.Says(a.Health+"/ready/app?verbose", 200, ", 2 of 2, all\n")
	server.Stop()
	a.Says(a.Health+"/ready/app", 503, "[-]app failed: readiness/grpc: connection_refused (3/3), 1 of 2, all\n")
	a.Says(a.Health+"/live/app?verbose", 200, ", liveness/grpc: connection_refused (3/3), 1 of 2, any\n")
}
