// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// health is a health service whose answer depends on the service's name.
type health struct {
	healthpb.UnimplementedHealthServer
}

func (health) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	answer := healthpb.HealthCheckResponse_SERVING
	switch r.GetService() {
	case "bad":
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	case "unk":
		answer = healthpb.HealthCheckResponse_UNKNOWN
	case "nosuch":
		return nil, status.Error(codes.NotFound, "unknown service")
	case "unavail":
		return nil, status.Error(codes.Unavailable, "un")
	case "plainerr":
		return nil, errors.New("plain")
	case "long":
		return nil, status.Error(codes.Internal, strings.Repeat("l", 30<<10))
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}

// RPC starts a gRPC server, over TLS if encrypted, with the health service if healthy.
func RPC(t testing.TB, encrypted, healthy bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return RPCOn(t, l, encrypted, healthy)
}

// RPCOn is like RPC, but on a listener of the caller, which RPCOn closes.
func RPCOn(t testing.TB, l net.Listener, encrypted, healthy bool) string {
	t.Helper()
	var options []grpc.ServerOption
	if encrypted {
		certificate := WebServer(t, nil, Protocols((*http.Protocols).SetHTTP1), true).TLS.Certificates[0]
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}})))
	}
	s := grpc.NewServer(options...)
	if healthy {
		healthpb.RegisterHealthServer(s, health{})
	}
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return Address(l)
}
