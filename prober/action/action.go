// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package action defines what an attempt returns: an Outcome with a Reason, or an error
// where the attempt says nothing of its target. The packages below implement the actions,
// each with the kubelet's exact behaviour: httpget, tcpsocket, grpc and exec. The table of
// all actions is in package prober, which also decides when to make an attempt.
package action

import (
	"context"
)

// Reason says why an attempt did not succeed. The set is bounded, so it can be a
// label: it never holds a URL, an address or output.
type Reason string

// The reasons.
const (
	Timeout           Reason = "timeout"
	ConnectionRefused Reason = "connection_refused"
	ConnectionReset   Reason = "connection_reset"
	NoRoute           Reason = "no_route"
	DNS               Reason = "dns"
	TLS               Reason = "tls"
	HTTPStatus        Reason = "http_status"
	HTTPProtocol      Reason = "http_protocol"
	GRPCStatus        Reason = "grpc_status"
	GRPCNotServing    Reason = "grpc_not_serving"
	GRPCUnimplemented Reason = "grpc_unimplemented"
	ExitCode          Reason = "exit_code"
	Signal            Reason = "signal"
	ExecStart         Reason = "exec_start"
	AgentLate         Reason = "agent_late"
	Other             Reason = "other"
)

// MaxOutput is how many bytes of a body or of a command's output are kept.
const MaxOutput = 10 << 10

// Outcome is what an attempt returned. The zero value is a failure.
type Outcome struct {
	// Success says that the target is well.
	Success bool
	// Warning marks a success that deserves a line in the log (an HTTP redirect
	// that was not followed).
	Warning bool
	// Reason says why it is not a success. It is set together with an error, too.
	Reason Reason
	// Output is the body, the command's output or the error text: 10 KiB at most,
	// and hostile input.
	Output string

	// What the kubelet does not tell of a failure.

	// Body is the beginning of what a server said beside a status that is none of a
	// success: 1 KiB at most, and hostile input.
	Body string
	// ExitCode is the command's, or 128 and the number of the signal that ended it; 0 if
	// there is none.
	ExitCode int
	// Address is what was asked, if a redirect has led away from the probe's own.
	Address string
}

// Func makes one attempt and returns within the probe's timeout, which it keeps
// itself; a little later if this process did not get to run meanwhile. A done ctx cuts
// the attempt short, and what it then returns means nothing. A target that is unwell is
// an Outcome. An error means that the attempt could not be made or not be finished (rule
// 7.6): it says nothing of the target and counts for nothing. All that was started has
// ended when it returns.
type Func func(ctx context.Context) (Outcome, error)

// kubeletVersion is the version of the kubelet whose probes these are.
const kubeletVersion = "1.37"

// UserAgent is how probes introduce themselves: applications and firewalls know the
// kubelet by it.
const UserAgent = "kube-probe/" + kubeletVersion

// Clip keeps a text within what an Outcome may hold.
func Clip(text string) string {
	return text[:min(len(text), MaxOutput)]
}
