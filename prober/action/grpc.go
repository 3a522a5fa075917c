// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package action

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
)

const (
	// maxGRPCMessage and maxGRPCHeader are how much an answer may have: it is two
	// bytes, but who answers is not to be trusted. grpc's own bounds are 4 and 16 MiB.
	maxGRPCMessage = 64 << 10
	maxGRPCHeader  = 64 << 10

	// grpcWindow is how much a server may send ahead. Fixed, because grpc would let it
	// grow to 16 MiB.
	grpcWindow = 64 << 10

	// grpcBuffer is the size of a connection's read and write buffer, for one message
	// each way.
	grpcBuffer = 4 << 10
)

// The library logs to stderr in a format of its own; what goes wrong is in the
// outcome. It has to be told before it is used, hence at this point.
var _ = func() grpclog.LoggerV2 {
	silent := grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)
	grpclog.SetLoggerV2(silent)
	return silent
}()

// grpcCheck is what the attempts of a grpc probe have in common.
type grpcCheck struct {
	address string
	target  string // the address as grpc takes it
	timeout time.Duration
	request *healthpb.HealthCheckRequest
	dialer  *net.Dialer
	mode    string
	options []grpc.DialOption
}

// newGRPC returns the action that asks a server's grpc.health.v1.Health.
func newGRPC(t *config.Target, p *config.Probe) Func {
	address := hostPort(t.Host, p.GRPC.Port)
	g := &grpcCheck{
		address: address,
		// Escaped, so that the zone of an IPv6 address passes through.
		target:  (&url.URL{Scheme: "passthrough", Path: "/" + address}).String(),
		timeout: p.Timeout,
		request: &healthpb.HealthCheckRequest{Service: p.GRPC.Service},
		dialer:  newDialer(0),
		mode:    p.GRPC.Mode,
		options: []grpc.DialOption{
			grpc.WithUserAgent(userAgent),
			grpc.WithNoProxy(),
			grpc.WithDisableServiceConfig(),
			grpc.WithDisableRetry(),
			grpc.WithDisableHealthCheck(),
			grpc.WithIdleTimeout(0),
			grpc.WithReadBufferSize(grpcBuffer),
			grpc.WithWriteBufferSize(grpcBuffer),
			grpc.WithStaticStreamWindowSize(grpcWindow),
			grpc.WithStaticConnWindowSize(grpcWindow),
			grpc.WithMaxHeaderListSize(maxGRPCHeader),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxGRPCMessage)),
		},
	}
	return g.attempt
}

// attempt connects and asks once, both within the timeout.
func (g *grpcCheck) attempt(ctx context.Context) (Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	conns := newConns(ctx, g.dialer)
	defer conns.close()
	var word lastWord

	client, err := grpc.NewClient(g.target, append(slices.Clip(g.options),
		grpc.WithTransportCredentials(heardCredentials{g.credentials(), &word}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return g.dial(ctx, conns, &word)
		}),
	)...)
	if err != nil {
		return failed(ctx, err, fmt.Sprintf("error: failed to connect service at %q: %v", g.address, err))
	}
	defer hangUp(limited, client, conns)

	if !connect(limited, client) {
		return g.unconnected(ctx, limited.Err(), word.get())
	}
	response, err := healthpb.NewHealthClient(client).Check(limited, g.request)
	if err != nil {
		return g.unanswered(ctx, err)
	}
	if serving := response.GetStatus(); serving != healthpb.HealthCheckResponse_SERVING {
		return Outcome{
			Reason: GRPCNotServing,
			Output: fmt.Sprintf("service unhealthy (responded with %q)", serving),
		}, nil
	}
	return Outcome{Success: true, Output: "service healthy"}, nil
}

// connect waits until client is connected, through as many attempts as there is time
// for, or returns false when ctx is done (rule 12.1).
func connect(ctx context.Context, client *grpc.ClientConn) bool {
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

// hangUp closes client. That begins with a goodbye, which grpc lets a peer that does
// not read delay by seconds: here by no more than what is left of ctx. The reset is
// not armed before the outcome is known, so that the outcome is never that of the reset.
func hangUp(ctx context.Context, client *grpc.ClientConn, conns *conns) {
	defer context.AfterFunc(ctx, conns.reset)()
	_ = client.Close()
}

// unconnected is the outcome of a connect that ran into its deadline. The kubelet's
// text says no more than that; the reason is what the last try of it heard.
func (g *grpcCheck) unconnected(ctx context.Context, deadline, heard error) (Outcome, error) {
	text := fmt.Sprintf("timeout: failed to connect service %q within %v: %v", g.address, g.timeout, deadline)
	if heard == nil {
		heard = deadline
	}
	return failed(ctx, heard, text)
}

// unanswered is the outcome of a call that ended in an error (rule 12.3).
func (g *grpcCheck) unanswered(ctx context.Context, err error) (Outcome, error) {
	if ctx.Err() != nil {
		return cutShort(ctx)
	}
	switch answer, _ := status.FromError(err); answer.Code() {
	case codes.Unimplemented:
		return Outcome{
			Reason: GRPCUnimplemented,
			Output: clip("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + answer.Message()),
		}, nil
	case codes.DeadlineExceeded:
		return Outcome{
			Reason: Timeout,
			Output: fmt.Sprintf("timeout: health rpc did not complete within %v", g.timeout),
		}, nil
	default:
		return Outcome{Reason: GRPCStatus, Output: clip(fmt.Sprintf("error: health rpc probe failed: %v", err))}, nil
	}
}

// credentials returns what the connections are secured with, new ones for each
// attempt: nothing is shared, and a probe at rest holds nothing.
func (g *grpcCheck) credentials() credentials.TransportCredentials {
	if g.mode == "TLS" {
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) // as httpGet over HTTPS
	}
	return insecure.NewCredentials()
}

// dial connects and listens in.
func (g *grpcCheck) dial(ctx context.Context, conns *conns, word *lastWord) (net.Conn, error) {
	conn, err := conns.dial(ctx, "tcp", g.address)
	if err != nil {
		word.set(err)
		return nil, err
	}
	return &heardConn{Conn: conn, word: word, encrypted: g.mode == "TLS"}, nil
}
