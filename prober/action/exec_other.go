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

//go:build !linux

package action

import (
	"os"
	"runtime"
	"strings"
)

// On systems other than Linux a command is killed alone: processes that it has
// started live on. Production runs on Linux; elsewhere the agent is for development.

func startChild(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, argv, attr)
}

// killChild kills p and reports whether it was running until then.
func killChild(p *os.Process) bool { return p.Kill() == nil }

// waitChild waits for p to end.
func waitChild(p *os.Process) (*os.ProcessState, error) { return p.Wait() }

// isPath reports whether name is that of the variable that commands are searched in.
func isPath(name string) bool {
	return name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH")
}
