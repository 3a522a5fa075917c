// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package dockerd is a Docker Engine whose containers and faults a test sets.
package dockerd

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/docker"
)

// Daemon is a daemon on a real socket. A test sets its containers, and its faults by path.
type Daemon struct {
	Socket string // the path of the socket

	t      *testing.T
	server *http.Server
	listen net.Listener
	serves sync.WaitGroup // the goroutine that accepts connections

	mu         sync.Mutex
	containers map[string]*docker.Container // by name
	labels     map[string]string            // the label of a container
	faults     map[string]http.HandlerFunc  // by the beginning of the path behind the version
	streams    map[chan string]bool         // of events
	past       []docker.Event
	asked      []string
}

// ID returns the ID of container n.
func ID(n int) string { return fmt.Sprintf("%02d%s", n, strings.Repeat("ab", 31)) }

// New starts a daemon without containers, which runs until the test ends.
func New(t *testing.T) *Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "docker") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	f := &Daemon{
		t:          t,
		Socket:     filepath.Join(dir, "s"),
		containers: make(map[string]*docker.Container),
		labels:     make(map[string]string),
		faults:     make(map[string]http.HandlerFunc),
		streams:    make(map[chan string]bool),
	}
	t.Cleanup(func() {
		f.Stop()
		os.RemoveAll(dir)
	})
	f.Start()
	return f
}

// Start makes a stopped daemon listen again.
func (f *Daemon) Start() {
	l, err := net.Listen("unix", f.Socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server, f.listen = &http.Server{Handler: f}, l
	server := f.server
	f.serves.Go(func() { server.Serve(l) })
}

// Stop ends the daemon and all its connections.
func (f *Daemon) Stop() {
	f.listen.Close() // the server may not have begun
	f.server.Close()
	f.serves.Wait()
}

// Fault makes h answer each request whose path, behind the version, begins with path. A
// nil h ends the fault.
func (f *Daemon) Fault(path string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[path] = h
}

// Says answers with a status and a text.
func Says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

// Hangs does not answer before its client goes away.
func Hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// ServeHTTP plays the API.
func (f *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	case path == "/events" && r.URL.Query().Has("until"):
		f.servePast(w, r)
	case path == "/events":
		f.serveEvents(w, r)
	case path == "/containers/json":
		var by map[string][]string
		json.Unmarshal([]byte(r.URL.Query().Get("filters")), &by)
		listed := []docker.Listed{}
		for name, c := range f.containers {
			if r.URL.Query().Get("all") == "1" && len(by["label"]) == 1 && f.labels[name] == by["label"][0] {
				listed = append(listed, docker.Listed{ID: c.ID, State: c.State.Status})
			}
		}
		json.NewEncoder(w).Encode(listed)
	case strings.HasPrefix(path, "/containers/"):
		asked := strings.Split(path, "/")[2]
		for name, c := range f.containers {
			if name != asked && !strings.HasPrefix(c.ID, asked) {
				continue
			}
			if strings.HasSuffix(path, "/restart") {
				f.restart(name, c)
				w.WriteHeader(http.StatusNoContent)
				return
			}
			json.NewEncoder(w).Encode(c)
			return
		}
		Says(404, `{"message":"No such container: `+asked+`"}`)(w, r)
	default:
		Says(404, `{"message":"page not found"}`)(w, r)
	}
}

// restart makes a container run anew, a second later than before, and tells what an Engine tells.
// It is called with mu held.
func (f *Daemon) restart(name string, c *docker.Container) {
	next := *c
	began, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	if err != nil {
		f.t.Error(err)
	}
	next.State.Status, next.State.StartedAt = "running", began.Add(time.Second).Format(time.RFC3339Nano)
	f.containers[name] = &next
	for _, action := range []string{"kill", "die", "stop", "start", "restart"} {
		ev := docker.Event{Type: "container", Action: action, TimeNano: time.Now().UnixNano()}
		ev.Actor.ID = c.ID
		ev.Actor.Attributes = map[string]string{"name": name, "signal": "15", "exitCode": "143"}
		f.past = append(f.past, ev)
		for events := range f.streams {
			events <- f.line(ev)
		}
	}
}

// line returns an event as the daemon tells it.
func (f *Daemon) line(ev docker.Event) string {
	line, err := json.Marshal(ev)
	if err != nil {
		f.t.Error(err)
	}
	return string(line)
}

// servePast is called with mu held.
func (f *Daemon) servePast(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var by map[string][]string
	json.Unmarshal([]byte(query.Get("filters")), &by)
	for _, ev := range f.past {
		at := fmt.Sprintf("%d.%09d", ev.TimeNano/1e9, ev.TimeNano%1e9)
		if at >= query.Get("since") && at <= query.Get("until") && // both have ten digits
			slices.Contains(by["container"], ev.Actor.ID) && slices.Contains(by["event"], ev.Action) {
			fmt.Fprintln(w, f.line(ev))
		}
	}
}

// serveEvents is called with mu held, and gives it away while it waits.
func (f *Daemon) serveEvents(w http.ResponseWriter, r *http.Request) {
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

// Tell sends a line to every client that hears events.
func (f *Daemon) Tell(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.streams {
		events <- line
	}
}

// Cut ends all streams of events.
func (f *Daemon) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.streams {
		close(events)
		delete(f.streams, events)
	}
}

// Event tells of an action of container n, with attributes given as name and value in turn.
func (f *Daemon) Event(action string, n int, attributes ...string) {
	f.Tell(f.line(f.Past(time.Now(), action, n, attributes...)))
}

// Past makes the daemon remember an event, of which it has told nobody.
func (f *Daemon) Past(at time.Time, action string, n int, attributes ...string) docker.Event {
	ev := docker.Event{Type: "container", Action: action, TimeNano: at.UnixNano()}
	ev.Actor.ID, ev.Actor.Attributes = ID(n), make(map[string]string)
	for i := 0; i+1 < len(attributes); i += 2 {
		ev.Actor.Attributes[attributes[i]] = attributes[i+1]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.past = append(f.past, ev)
	return ev
}

// Set gives container n a name and a state. The container started at that second.
func (f *Daemon) Set(name string, n int, status string, second int, more ...func(*docker.Container)) {
	c := &docker.Container{ID: ID(n), Name: "/" + name}
	c.State.Status = status
	c.State.StartedAt = StartedAt(second).Format(time.RFC3339Nano)
	for _, m := range more {
		m(c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers[name] = c
}

// Label gives a container a label, as name=value.
func (f *Daemon) Label(name, label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels[name] = label
}

// Remove makes a container vanish.
func (f *Daemon) Remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.containers, name)
}

// Count returns how often a request was made, given as method and path.
func (f *Daemon) Count(request string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, asked := range f.asked {
		if asked == request {
			n++
		}
	}
	return n
}

// StartedAt returns a second of the containers' day. Second 0 stands for a container that has
// never started.
func StartedAt(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Date(2026, 1, 1, 0, 0, second, 500, time.UTC)
}
