// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"
)

// joinable is how long after its beginning a look-up accepts further attempts. Turns begin in
// slots of 50 ms, so joinable covers attempts that ask at the same time. It is short, so that a
// lost packet costs each target only one attempt: the next attempt asks anew.
const joinable = 100 * time.Millisecond

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// names holds the look-ups under way. Attempts that ask for the same name at the same time share
// one look-up; nothing is cached beyond that, so each attempt sees the current answer of DNS.
//
// Package net does not do this: it never ends an abandoned look-up that was shared, and leaves
// the sockets of any other open for 5 s. While DNS is silent these sockets would use up the
// limit of open files.
type names struct {
	mu    sync.Mutex
	young map[string]*lookup // the last look-up of each name, until no attempt wants it
	// reach connects to a name server; nil means with a net.Dialer.
	reach dialFunc
}

// resolving holds the look-ups of this process.
var resolving names

// lookup asks for the addresses of a name on behalf of the attempts that have joined it.
// It has at most two sockets at a time, one for each address family.
type lookup struct {
	of       *names
	host     string
	began    time.Time
	resolver net.Resolver
	reach    dialFunc
	ctx      context.Context // done when no attempt wants it
	cancel   context.CancelFunc

	wanted int // the number of attempts that want it; guarded by names.mu

	mu      sync.Mutex
	over    bool
	sockets []net.Conn // all sockets ever opened: few, and a second close does no harm
}

// dialHost is d.DialContext with a shared look-up of the name, whose sockets do not outlive the
// attempts that share it.
func dialHost(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isName(host) {
		return d.DialContext(ctx, network, address)
	}
	l := resolving.join(host)
	defer l.leave()
	named := *d
	named.Resolver = &l.resolver
	return named.DialContext(ctx, network, address)
}

// join returns a look-up of a host. The attempt must leave the look-up.
func (n *names) join(host string) *lookup {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.young[host]; l != nil && now.Sub(l.began) < joinable {
		l.wanted++
		return l
	}
	l := &lookup{of: n, host: host, began: now, wanted: 1, reach: n.reach}
	if l.reach == nil {
		l.reach = new(net.Dialer).DialContext
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.resolver = net.Resolver{
		// The shipped binary, for Linux, has only Go's resolver. On other systems, which are
		// for development, the system's resolver knows more.
		PreferGo: runtime.GOOS == "linux",
		Dial:     l.dial,
	}
	if n.young == nil {
		n.young = map[string]*lookup{}
	}
	n.young[host] = l
	return l
}

// leave ends the look-up if no other attempt wants it.
func (l *lookup) leave() {
	n := l.of
	n.mu.Lock()
	l.wanted--
	last := l.wanted == 0
	if last && n.young[l.host] == l {
		delete(n.young, l.host)
	}
	n.mu.Unlock()
	if last {
		l.end()
	}
}

// dial connects to a name server, for the resolver, until the look-up is over.
func (l *lookup) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	socket, err := l.reach(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		_ = socket.Close()
		return nil, net.ErrClosed
	}
	l.sockets = append(l.sockets, socket)
	return socket, nil
}

// end closes the sockets and lets no others be opened.
func (l *lookup) end() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, socket := range l.sockets {
		_ = socket.Close()
	}
}
