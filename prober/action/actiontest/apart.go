// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// HelperEnv makes the test binary act as a command. Its value names a helper.
const HelperEnv = "PROBER_EXPORTER_TEST_HELPER"

// Main is for a TestMain. It runs the tests, or the helper that the environment names.
func Main(m *testing.M, helpers ...map[string]func(args []string)) {
	if name := os.Getenv(HelperEnv); name != "" {
		for _, some := range append(helpers, map[string]func([]string){"serve": serveApart, "serve-unix": serveUnixApart}) {
			if run := some[name]; run != nil {
				run(os.Args[1:])
				os.Exit(0)
			}
		}
		os.Exit(2)
	}
	// A helper with the race detector would sleep for a second at its exit.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	os.Exit(m.Run())
}

// ServedApart returns the addresses of servers in a process of their own, so that a benchmark
// does not count the servers' costs.
func ServedApart(b *testing.B) (plain, secure, bare string) {
	b.Helper()
	server := exec.CommandContext(b.Context(), os.Args[0])
	server.Env = append(os.Environ(), HelperEnv+"=serve")
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	where := strings.Fields(line)
	if err != nil || len(where) != 3 {
		b.Fatalf("the server said %q, error %v", line, err)
	}
	return where[0], where[1], where[2]
}

// serveApart serves HTTP, HTTPS and bare TCP, prints the addresses, and ends when its input
// ends.
func serveApart([]string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	plain := httptest.NewServer(answer)
	secure := httptest.NewUnstartedServer(answer)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := bare.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				Mute(conn)
			}()
		}
	}()
	fmt.Println(plain.Listener.Addr(), secure.Listener.Addr(), bare.Addr())
	io.Copy(io.Discard, os.Stdin)
}
