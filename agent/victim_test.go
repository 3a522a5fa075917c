// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// victimEnv makes the test binary a victim, an application in a process of its own that tests
// kill. Its value is a victimPlan.
const victimEnv = "PROBER_TEST_VICTIM"

// victimPlan says how a victim behaves.
type victimPlan struct {
	Ports []string      // the ports of HTTP
	TLS   string        // the port of HTTPS, if any
	GRPC  string        // the port of the health service, if any
	Boot  time.Duration // how long the victim boots before it listens; negative: until tell("open")
	Takes time.Duration // how long an answer takes
	V6    bool          // listens on [::], for IPv6 only
}

// victim is an application that runs in a process of its own.
type victim struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Writer
	ended chan struct{}
}

// startVictim starts a victim and kills it with the test.
func startVictim(t *testing.T, plan victimPlan) *victim {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	v.cmd.Args[0] = "victim of " + t.Name() // two victims of a test are one program started again
	v.cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	v.cmd.Stderr = os.Stderr
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(v.ended)
		_ = v.cmd.Wait()
	}()
	t.Cleanup(v.kill)
	return v
}

// kill ends the process and returns when it is gone.
func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	<-v.ended
}

// tell makes the process open (listen, if its boot has no end of its own), lock (answer nothing
// more), unlock (answer again) or close (stop listening).
func (v *victim) tell(what string) {
	v.t.Helper()
	if _, err := fmt.Fprintln(v.stdin, what); err != nil {
		v.t.Fatal(err)
	}
}

// victimMain is the victim's process.
func victimMain(text string) {
	var plan victimPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	var locked atomic.Bool
	var listeners []net.Listener
	begun, open := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(begun)
		if plan.Boot < 0 {
			<-open
		} else {
			<-time.After(plan.Boot)
		}
		listen := func(port string) net.Listener {
			network, address := "tcp", "127.0.0.1:"
			if plan.V6 {
				network, address = "tcp6", "[::]:"
			}
			l, err := net.Listen(network, address+port)
			if err != nil {
				panic(err)
			}
			listeners = append(listeners, l)
			return l
		}
		answer := func() {
			if <-time.After(plan.Takes); locked.Load() {
				select {}
			}
		}
		site := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answer() })
		for _, port := range plan.Ports {
			go http.Serve(listen(port), site)
		}
		if plan.TLS != "" {
			secure := httptest.NewUnstartedServer(site)
			_ = secure.Listener.Close()
			secure.Listener = listen(plan.TLS)
			secure.StartTLS()
		}
		if plan.GRPC != "" {
			server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				answer()
				return handle(ctx, request)
			}))
			healthpb.RegisterHealthServer(server, health.NewServer())
			go server.Serve(listen(plan.GRPC))
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "open":
			open <- struct{}{}
		case "lock":
			locked.Store(true)
		case "unlock":
			locked.Store(false)
		case "close":
			<-begun
			for _, l := range listeners {
				_ = l.Close()
			}
		}
	}
	select {} // the test kills it
}

// onlooker asks a URL all the time, as a kubelet would.
type onlooker struct {
	cancel context.CancelFunc
	done   chan struct{}
	seen   []sight
}

type sight struct {
	at     time.Time
	status int
}

// watchURL asks a URL every 5 ms until stop.
func watchURL(t *testing.T, url string) *onlooker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := &onlooker{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for {
			asked := time.Now()
			status, _ := testutil.Get(t, url)
			if ctx.Err() != nil {
				return
			}
			if len(o.seen) == 0 || o.seen[len(o.seen)-1].status != status {
				o.seen = append(o.seen, sight{asked, status})
			}
			select {
			case <-poll.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { o.stop() })
	return o
}

// stop returns the sights, one for each change.
func (o *onlooker) stop() []sight {
	o.cancel()
	<-o.done
	return o.seen
}

// statuses returns the statuses of sights.
func statuses(seen []sight) string {
	var s []string
	for _, one := range seen {
		s = append(s, fmt.Sprint(one.status))
	}
	return strings.Join(s, " ")
}
