// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package action defines what an attempt returns: an Outcome with a Reason, or an error if the
// attempt says nothing about its target. The packages httpget, tcpsocket, grpc and exec
// implement the kubelet's actions, each with its exact behaviour; package heartbeat implements an
// action of the agent's own. Package prober has the table of all actions, and decides when to
// make an attempt.
package action

import (
	"context"
)

// Reason says why an attempt did not succeed. The set of reasons is bounded, so that a Reason
// can be a label; it never contains a URL, an address or output.
type Reason string

// The reasons.
const (
	Timeout           Reason = "timeout"
	ConnectionRefused Reason = "connection_refused"
	ConnectionReset   Reason = "connection_reset"
	NoRoute           Reason = "no_route"
	DNS               Reason = "dns"
	TLS               Reason = "tls"
	TLSVerify         Reason = "tls_verify"
	HTTPStatus        Reason = "http_status"
	HTTPBody          Reason = "http_body"
	HTTPHeader        Reason = "http_header"
	HTTPProtocol      Reason = "http_protocol"
	GRPCStatus        Reason = "grpc_status"
	GRPCNotServing    Reason = "grpc_not_serving"
	GRPCUnimplemented Reason = "grpc_unimplemented"
	ExitCode          Reason = "exit_code"
	Signal            Reason = "signal"
	ExecStart         Reason = "exec_start"
	NoHeartbeat       Reason = "no_heartbeat"
	HeartbeatLate     Reason = "heartbeat_late"
	LocalFile         Reason = "local_file"
	AgentLate         Reason = "agent_late"
	Other             Reason = "other"
)

// MaxOutput is how many bytes of a body or of a command's output an Outcome keeps.
const MaxOutput = 10 << 10

// Outcome is what an attempt returned. The zero value is a failure.
type Outcome struct {
	// Success says that the attempt succeeded.
	Success bool
	// Warning marks a success that deserves a line in the log (an HTTP redirect
	// that was not followed).
	Warning bool
	// Reason says why the attempt is not a success. It is set together with an error, too.
	Reason Reason
	// Output is the body, the command's output or the error text: at most 10 KiB of
	// hostile input.
	Output string

	// CertExpires is when the first of the certificates that the server has shown expires, in
	// seconds since the epoch; 0 if the server has shown none. A failure may have it, too.
	CertExpires int64

	// The fields below have what the kubelet does not report of a failure.

	// Body is the beginning of the body of a response whose status is a failure: at most
	// 1 KiB of hostile input.
	Body string
	// ExitCode is the exit code of the command, or 128 plus the number of the signal that
	// ended it; 0 if there is none.
	ExitCode int
	// Address is the address that answered, if a redirect led away from the probe's own.
	Address string
}

// Func makes one attempt and returns within the probe's timeout, which Func keeps itself; a
// little later if the agent did not get to run meanwhile. A done ctx cuts the attempt short, and
// the results then mean nothing. A failing target is an Outcome. An error means that the attempt
// could not be made or finished (rule 7.6): it says nothing about the target and does not count.
// When Func returns, everything it has started has ended.
type Func func(ctx context.Context) (Outcome, error)

// kubeletVersion is the version of the kubelet whose probes these are.
const kubeletVersion = "1.37"

// UserAgent is the User-Agent of probes, by which applications and firewalls know the kubelet.
const UserAgent = "kube-probe/" + kubeletVersion

// Clip cuts a text to MaxOutput.
func Clip(text string) string {
	return text[:min(len(text), MaxOutput)]
}
