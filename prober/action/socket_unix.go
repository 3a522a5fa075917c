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

//go:build unix

package action

import "syscall"

// exhausted are the errors of a dial that say that the agent or its machine has run
// out of something: descriptors, buffers, memory, ephemeral ports.
var exhausted = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL,
}

// errnos groups the system's errors by the reason they stand for.
var errnos = []errnoReason{
	{ConnectionRefused, []error{syscall.ECONNREFUSED}},
	{ConnectionReset, []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}},
	{NoRoute, []error{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN}},
}

func setLinger(fd uintptr, on bool, seconds int32) error {
	linger := syscall.Linger{Linger: seconds}
	if on {
		linger.Onoff = 1
	}
	return syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &linger)
}
