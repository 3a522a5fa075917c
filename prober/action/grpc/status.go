// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/encoding/protowire"
)

// rpcCode is the code of a status.
type rpcCode uint32

// The codes that are of our own making.
const (
	codeOK                rpcCode = 0
	codeCanceled          rpcCode = 1
	codeUnknown           rpcCode = 2
	codeDeadlineExceeded  rpcCode = 4
	codePermissionDenied  rpcCode = 7
	codeResourceExhausted rpcCode = 8
	codeUnimplemented     rpcCode = 12
	codeInternal          rpcCode = 13
	codeUnavailable       rpcCode = 14
	codeUnauthenticated   rpcCode = 16
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

// rpcError is how a call ended.
type rpcError struct {
	code    rpcCode
	message string
}

// String is the text of the error.
func (s rpcError) String() string {
	return "rpc error: code = " + s.code.String() + " desc = " + s.message
}

// statusf returns a status with a formatted message.
func statusf(code rpcCode, format string, args ...any) *rpcError {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// connectionError is the text of an error of a connection.
func connectionError(text string) string { return fmt.Sprintf("connection error: desc = %q", text) }

// codeOfHTTP2 is the code that an error of HTTP/2 stands for.
func codeOfHTTP2(e http2.ErrCode) rpcCode {
	switch e {
	case http2.ErrCodeFlowControl, http2.ErrCodeEnhanceYourCalm:
		return codeResourceExhausted
	case http2.ErrCodeRefusedStream:
		return codeUnavailable
	case http2.ErrCodeCancel:
		return codeCanceled
	case http2.ErrCodeInadequateSecurity:
		return codePermissionDenied
	default:
		if e <= http2.ErrCodeHTTP11Required {
			return codeInternal
		}
		return codeUnknown
	}
}

// codeOfHTTP is the code that an HTTP status stands for, of a server that does not
// speak grpc.
func codeOfHTTP(status int) rpcCode {
	switch status {
	case http.StatusBadRequest:
		return codeInternal
	case http.StatusUnauthorized:
		return codeUnauthenticated
	case http.StatusForbidden:
		return codePermissionDenied
	case http.StatusNotFound:
		return codeUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codeUnavailable
	}
	return codeUnknown
}

// servingName is the name of a health status.
func servingName(status int32) string {
	names := [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}
	if status >= 0 && int(status) < len(names) {
		return names[status]
	}
	return strconv.Itoa(int(status))
}

// errMessage is the error of protobuf for bytes that are no message.
const errMessage = "proto: cannot parse invalid wire-format data"

// parseServing reads the status of a HealthCheckResponse, and skips what else is in
// it. It changes status as far as it comes.
func parseServing(message []byte, status *int32) (ok bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if number == 1 && kind == protowire.VarintType {
			var v uint64
			if v, n = protowire.ConsumeVarint(message); n >= 0 {
				*status = int32(v)
			}
		} else {
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return true
}

// detailed is a status with its details, if there is one set of them and they are a
// google.rpc.Status: they have the last word on the message.
func detailed(s rpcError, details []string) rpcError {
	if len(details) != 1 {
		return s
	}
	var code int32
	var message string
	for b := []byte(details[0]); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return s
		}
		b = b[n:]
		switch {
		case number == 1 && kind == protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			code = int32(v)
		case number == 2 && kind == protowire.BytesType:
			var v []byte
			v, n = protowire.ConsumeBytes(b)
			if !utf8.Valid(v) {
				return s
			}
			message = string(v)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return s
		}
		b = b[n:]
	}
	if code == int32(s.code) {
		return rpcError{s.code, message}
	}
	return *statusf(codeInternal, "grpc-status-details-bin mismatch: grpc-status=%v, grpc-message=%q, grpc-status-details-bin=code:%d message:%q",
		s.code, s.message, code, message)
}

// decodeMessage undoes the percent-encoding of a grpc-message. What is not encoded
// properly stays as it is.
func decodeMessage(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				decoded = append(decoded, byte(c))
				i += 2
				continue
			}
		}
		decoded = append(decoded, s[i])
	}
	return string(decoded)
}

// decodeBinary decodes the value of a header whose name ends in -bin.
func decodeBinary(value string) (string, error) {
	encoding := base64.RawStdEncoding
	if len(value)%4 == 0 {
		encoding = base64.StdEncoding
	}
	b, err := encoding.DecodeString(value)
	return string(b), err
}

// isContent says whether a content type is one of grpc.
func isContent(value string) bool {
	rest, ok := strings.CutPrefix(value, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
