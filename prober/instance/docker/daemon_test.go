// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// dockerDaemon is a daemon on a real socket, with containers that a test sets. What it
// does wrong is said per path.
type dockerDaemon struct {
	t      *testing.T
	socket string
	server *http.Server
	listen net.Listener

	mu         sync.Mutex
	containers map[string]*dockerContainer // by name
	labels     map[string]string           // the label of a container
	faults     map[string]http.HandlerFunc // by the beginning of the path behind the version
	streams    map[chan string]bool        // of events
	asked      []string
}

// dockerID is the ID of the n-th container.
func dockerID(n int) string { return fmt.Sprintf("%02d%s", n, strings.Repeat("ab", 31)) }

// newDockerDaemon starts one with no containers.
func newDockerDaemon(t *testing.T) *dockerDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "docker") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	f := &dockerDaemon{
		t:          t,
		socket:     filepath.Join(dir, "s"),
		containers: make(map[string]*dockerContainer),
		labels:     make(map[string]string),
		faults:     make(map[string]http.HandlerFunc),
		streams:    make(map[chan string]bool),
	}
	t.Cleanup(func() {
		f.stop()
		os.RemoveAll(dir)
	})
	f.start()
	return f
}

func (f *dockerDaemon) start() {
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server, f.listen = &http.Server{Handler: f}, l
	go f.server.Serve(l)
}

func (f *dockerDaemon) stop() {
	f.listen.Close() // the server may not have begun
	f.server.Close()
}

// fault makes answers to what begins with path those of h; nil mends it.
func (f *dockerDaemon) fault(path string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[path] = h
}

// says answers with a status and a text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

// hangs does not answer before its client goes away.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func (f *dockerDaemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1.41")
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	var longest string
	for begin, h := range f.faults {
		if h != nil && strings.HasPrefix(path, begin) && len(begin) > len(longest) {
			longest = begin
		}
	}
	if h := f.faults[longest]; h != nil {
		f.mu.Unlock()
		h(w, r)
		return
	}
	defer f.mu.Unlock()
	switch {
	case path == "/_ping":
		fmt.Fprint(w, "OK")
	case path == "/version":
		fmt.Fprint(w, `{"ApiVersion":"1.41","MinAPIVersion":"1.12"}`)
	case path == "/events":
		f.serveEvents(w, r)
	case path == "/containers/json":
		var by map[string][]string
		json.Unmarshal([]byte(r.URL.Query().Get("filters")), &by)
		listed := []dockerListed{}
		for name, c := range f.containers {
			if r.URL.Query().Get("all") == "1" && len(by["label"]) == 1 && f.labels[name] == by["label"][0] {
				listed = append(listed, dockerListed{ID: c.ID, State: c.State.Status})
			}
		}
		json.NewEncoder(w).Encode(listed)
	case strings.HasPrefix(path, "/containers/"):
		asked := strings.Split(path, "/")[2]
		for name, c := range f.containers {
			if name == asked || strings.HasPrefix(c.ID, asked) {
				json.NewEncoder(w).Encode(c)
				return
			}
		}
		says(404, `{"message":"No such container: `+asked+`"}`)(w, r)
	default:
		says(404, `{"message":"page not found"}`)(w, r)
	}
}

// serveEvents is called with mu held, and gives it away while it waits.
func (f *dockerDaemon) serveEvents(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 16)
	f.streams[events] = true
	f.mu.Unlock()
	w.(http.Flusher).Flush()
	for open := true; open; {
		select {
		case line, ok := <-events:
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
			open = ok
		case <-r.Context().Done():
			open = false
		}
	}
	f.mu.Lock()
	delete(f.streams, events)
}

// tell sends a line to all who hear events, cut ends their streams.
func (f *dockerDaemon) tell(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.streams {
		events <- line
	}
}

func (f *dockerDaemon) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.streams {
		close(events)
		delete(f.streams, events)
	}
}

// event tells of an action of the n-th container, with attributes name, value...
func (f *dockerDaemon) event(action string, n int, attributes ...string) {
	ev := dockerEvent{Type: "container", Action: action}
	ev.Actor.ID, ev.Actor.Attributes = dockerID(n), make(map[string]string)
	for i := 0; i+1 < len(attributes); i += 2 {
		ev.Actor.Attributes[attributes[i]] = attributes[i+1]
	}
	line, err := json.Marshal(ev)
	if err != nil {
		f.t.Error(err)
	}
	f.tell(string(line))
}

// set makes the n-th container one of that name and state; it started at that second.
func (f *dockerDaemon) set(name string, n int, status string, second int, more ...func(*dockerContainer)) {
	c := &dockerContainer{ID: dockerID(n), Name: "/" + name}
	c.State.Status = status
	c.State.StartedAt = dockerStart(second).Format(time.RFC3339Nano)
	for _, m := range more {
		m(c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers[name] = c
}

// remove makes it vanish.
func (f *dockerDaemon) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.containers, name)
}

// count returns how often something was asked.
func (f *dockerDaemon) count(request string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, asked := range f.asked {
		if asked == request {
			n++
		}
	}
	return n
}

// dockerStart is a second of the containers' day; second 0 is that of one never started.
func dockerStart(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Date(2026, 1, 1, 0, 0, second, 500, time.UTC)
}

// dockerLife is the instance of the n-th container that started at that second.
func dockerLife(n, second int, phase gate.Phase) gate.Instance {
	return gate.Instance{
		ID:        dockerID(n)[:12] + "@" + dockerStart(second).Format(time.RFC3339Nano),
		Phase:     phase,
		StartedAt: dockerStart(second),
	}
}
