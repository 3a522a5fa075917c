// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"fmt"
	"net/url"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// rpcCode is the code of a grpc status.
type rpcCode uint32

// The codes that matter.
const (
	codeOK               rpcCode = 0
	codeUnknown          rpcCode = 2
	codeDeadlineExceeded rpcCode = 4
	codeUnimplemented    rpcCode = 12
)

var codeNames = [...]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
	"PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange",
	"Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated",
}

func (c rpcCode) String() string {
	if int64(c) < int64(len(codeNames)) {
		return codeNames[c]
	}
	return "Code(" + strconv.FormatInt(int64(c), 10) + ")"
}

// failedf returns the outcome of a call that failed before the server sent a status.
func failedf(format string, args ...any) action.Outcome {
	return action.Outcome{Reason: action.GRPCStatus, Output: action.Clip("error: health rpc probe failed: " + fmt.Sprintf(format, args...))}
}

// failedWith returns the outcome of a call that the server ended with a status; message is
// percent-encoded, as in the header (rule 12.3).
func (g *check) failedWith(code rpcCode, message string) action.Outcome {
	if decoded, err := url.PathUnescape(message); err == nil {
		message = decoded
	}
	switch code {
	case codeUnimplemented:
		return action.Outcome{
			Reason: action.GRPCUnimplemented,
			Output: action.Clip("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + message),
		}
	case codeDeadlineExceeded:
		return g.late()
	default:
		return failedf("rpc error: code = %v desc = %s", code, message)
	}
}

// late returns the outcome of a call that the server did not answer in time.
func (g *check) late() action.Outcome {
	return action.Outcome{Reason: action.Timeout, Output: fmt.Sprintf("timeout: health rpc did not complete within %v", g.timeout)}
}

// serving returns the outcome of a call that the server answered.
func serving(status int32) action.Outcome {
	if status == 1 {
		return action.Outcome{Success: true, Output: "service healthy"}
	}
	names := [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}
	name := strconv.Itoa(int(status))
	if status >= 0 && int(status) < len(names) {
		name = names[status]
	}
	return action.Outcome{Reason: action.GRPCNotServing, Output: fmt.Sprintf("service unhealthy (responded with %q)", name)}
}

// parseServing stores the first field of a HealthCheckResponse, a number, in status, and skips the
// other fields.
func parseServing(message []byte, status *int32) (ok bool) { return parseFirst(message, status, 0) }

// parseFirst stores the first field of a message, a number, in first, and skips the other fields.
// The field text, if not 0, must be valid text.
func parseFirst(message []byte, first *int32, text protowire.Number) (ok bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if number == 1 && kind == protowire.VarintType {
			var v uint64
			if v, n = protowire.ConsumeVarint(message); n >= 0 {
				*first = int32(v)
			}
		} else {
			n = protowire.ConsumeFieldValue(number, kind, message)
			if value, _ := protowire.ConsumeBytes(message); number == text && kind == protowire.BytesType && !utf8.Valid(value) {
				return false
			}
		}
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return true
}
