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

// joinable is how long after its beginning a look-up takes in further attempts. Turns lie
// on slots of 50 ms, so that this is for those that ask at the same time. It is short, as a
// packet that is lost is one attempt of each target that waits for it, and never two: the
// next attempts ask anew.
const joinable = 100 * time.Millisecond

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// names are the look-ups that attempts have under way. Attempts that ask for the same name
// at the same time share one, and nothing is remembered beyond that: each attempt sees what
// DNS says now.
//
// They exist because of how package net ends a look-up that nobody waits for any more: not
// at all if it was shared, and else without its sockets, which wait for the server for
// another 5 s. While DNS is silent these would add up to all files that an agent may open.
type names struct {
	mu    sync.Mutex
	young map[string]*lookup // the last of each name, until nobody wants it
	// reach connects to a server of names; nil is a net.Dialer's.
	reach dialFunc
}

// resolving are the look-ups of this process, whose files they share.
var resolving names

// lookup asks for the addresses of a name on behalf of the attempts that have joined it.
// It has two sockets at a time at most, one for each kind of address.
type lookup struct {
	of       *names
	host     string
	began    time.Time
	resolver net.Resolver
	reach    dialFunc
	ctx      context.Context // done when no attempt wants it
	cancel   context.CancelFunc

	wanted int // by how many attempts; guarded by names.mu

	mu      sync.Mutex
	over    bool
	sockets []net.Conn // all that it ever had: few, and a second close does no harm
}

// dialHost is d.DialContext. A name is looked up together with others who ask for it, and
// no socket of the look-up outlives those.
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

// join returns a look-up of a host, for an attempt that has to leave it.
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
		// As the shipped binary, which has no other. Elsewhere it would not know what the
		// system's own knows, and elsewhere is for development.
		PreferGo: runtime.GOOS == "linux",
		Dial:     l.dial,
	}
	if n.young == nil {
		n.young = map[string]*lookup{}
	}
	n.young[host] = l
	return l
}

// leave ends the look-up if this was the last attempt that wanted it.
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

// dial connects to a server of names, for the resolver, until the look-up is over.
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

// end closes the sockets; there will be no others.
func (l *lookup) end() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, socket := range l.sockets {
		_ = socket.Close()
	}
}
