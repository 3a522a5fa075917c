// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// The usual way to make a grpc probe, as in the kubelet: grpc-go, with a client for each
// attempt. Tests compare the action by hand with this way.

// usualBuffer is the size of a connection's read and write buffer, for one message
// each way.
const usualBuffer = 4 << 10

// The library logs to stderr in a format of its own, although the outcome has every error. The
// logger must be set before the library is used, hence here.
var _ = func() grpclog.LoggerV2 {
	silent := grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)
	grpclog.SetLoggerV2(silent)
	return silent
}()

// usual is what the attempts of a grpc probe share.
type usual struct {
	address string
	socket  string // the path of a Unix socket
	target  string // the address in the form that grpc takes
	timeout time.Duration
	request *healthpb.HealthCheckRequest
	mode    string
	options []grpc.DialOption
}

// newUsual returns the action in the kubelet's way.
func newUsual(t *config.Target, p *config.Probe) action.Func {
	address := Address(t, p)
	// The path is escaped so that the zone of an IPv6 address passes through.
	target := (&url.URL{Scheme: "passthrough", Path: "/" + address}).String()
	socket, isSocket := config.SocketPath(address)
	if isSocket {
		target = address
	}
	g := &usual{
		address: address,
		socket:  socket,
		target:  target,
		timeout: p.Timeout,
		request: &healthpb.HealthCheckRequest{Service: p.GRPC.Service},
		mode:    p.GRPC.Mode,
		options: []grpc.DialOption{
			grpc.WithUserAgent(action.UserAgent),
			grpc.WithNoProxy(),
			grpc.WithDisableServiceConfig(),
			grpc.WithDisableRetry(),
			grpc.WithDisableHealthCheck(),
			grpc.WithIdleTimeout(0),
			grpc.WithReadBufferSize(usualBuffer),
			grpc.WithWriteBufferSize(usualBuffer),
			grpc.WithStaticStreamWindowSize(window),
			grpc.WithStaticConnWindowSize(window),
			grpc.WithMaxHeaderListSize(maxHeader),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		},
	}
	return g.attempt
}

// attempt connects and asks once, both within the timeout.
func (g *usual) attempt(ctx context.Context) (action.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	conns := dial.NewConns(ctx, dial.NewStopwatch(time.Hour)) // the client keeps the time
	conns.Socket = g.socket
	defer conns.Close()

	client, err := grpc.NewClient(g.target, append(slices.Clip(g.options),
		grpc.WithTransportCredentials(g.credentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return conns.Dial(ctx, "tcp", g.address)
		}),
	)...)
	if err != nil {
		return action.Failed(ctx, err, fmt.Sprintf("error: failed to connect service at %q: %v", g.address, err))
	}
	defer hangUpUsual(limited, client, conns)

	if !connectUsual(limited, client) {
		return action.Failed(ctx, limited.Err(), fmt.Sprintf("timeout: failed to connect service %q within %v: %v", g.address, g.timeout, limited.Err()))
	}
	response, err := healthpb.NewHealthClient(client).Check(limited, g.request)
	if err != nil {
		return g.unanswered(ctx, err)
	}
	if serving := response.GetStatus(); serving != healthpb.HealthCheckResponse_SERVING {
		return action.Outcome{
			Reason: action.GRPCNotServing,
			Output: fmt.Sprintf("service unhealthy (responded with %q)", serving),
		}, nil
	}
	return action.Outcome{Success: true, Output: "service healthy"}, nil
}

// connectUsual waits until client is connected, and makes as many tries as there is time for.
// It returns false when ctx is done (rule 12.1).
func connectUsual(ctx context.Context, client *grpc.ClientConn) bool {
	for {
		state := client.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.Idle:
			client.Connect()
		default:
		}
		if !client.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// hangUpUsual closes client, which begins with a goodbye. grpc lets a peer that does not read
// delay the goodbye by seconds, hangUpUsual only by the time left of ctx. The reset is armed
// only after the outcome is known, so that the reset cannot change the outcome.
func hangUpUsual(ctx context.Context, client *grpc.ClientConn, conns *dial.Conns) {
	defer context.AfterFunc(ctx, conns.Reset)()
	_ = client.Close()
}

// unanswered returns the outcome of a call that ended in an error (rule 12.3).
func (g *usual) unanswered(ctx context.Context, err error) (action.Outcome, error) {
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	switch answer, _ := status.FromError(err); answer.Code() {
	case codes.Unimplemented:
		return action.Outcome{
			Reason: action.GRPCUnimplemented,
			Output: action.Clip("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + answer.Message()),
		}, nil
	case codes.DeadlineExceeded:
		return action.Outcome{
			Reason: action.Timeout,
			Output: fmt.Sprintf("timeout: health rpc did not complete within %v", g.timeout),
		}, nil
	default:
		return action.Outcome{Reason: action.GRPCStatus, Output: action.Clip(fmt.Sprintf("error: health rpc probe failed: %v", err))}, nil
	}
}

// credentials returns new credentials for each attempt: attempts share nothing, and a probe at
// rest holds nothing.
func (g *usual) credentials() credentials.TransportCredentials {
	if g.mode == "TLS" {
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) // as httpGet over HTTPS
	}
	return insecure.NewCredentials()
}
