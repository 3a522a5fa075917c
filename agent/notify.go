// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/web"
)

const (
	notifySocket = "NOTIFY_SOCKET"
	// notifyTime bounds how long a message to systemd may take: systemd may be busy.
	notifyTime = time.Second
	// statusGap is the shortest time between two messages of what the page says.
	statusGap = time.Second
)

// notifier tells systemd about the agent, in the protocol of sd_notify. A nil notifier is for an
// agent that nobody listens to.
type notifier struct {
	log      *slog.Logger
	conn     *net.UnixConn // open from the start: a message must not need a free file
	watchdog time.Duration // how long systemd waits for a sign of life; 0: for ever
	stopped  atomic.Bool
	failed   atomic.Bool // the log has told of a message that could not be sent
}

// newNotifier returns a notifier for the socket that the environment names, nil if there is none.
// It takes the names out of the environment: exec probes must not speak for the agent.
func newNotifier(log *slog.Logger) *notifier {
	address := os.Getenv(notifySocket)
	_ = os.Unsetenv(notifySocket)
	watchdog, err := daemon.SdWatchdogEnabled(true)
	if address == "" {
		return nil
	}
	if err != nil {
		log.Warn("systemd's watchdog gets no sign of life", "err", err)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: address})
	if err != nil {
		log.Warn("systemd is told nothing about the agent", "err", err)
		return nil
	}
	return &notifier{log: log, conn: conn, watchdog: watchdog}
}

// reloading says that a reload begins. The caller calls the result at the end of the reload, good
// or bad.
func (n *notifier) reloading() (end func()) {
	if n == nil {
		return func() {}
	}
	// Without the time systemd does not take this for its own reload.
	n.send(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
	return func() { n.send(daemon.SdNotifyReady) }
}

// stopping says that the agent stops. It is the last message.
func (n *notifier) stopping() {
	if n != nil && !n.stopped.Swap(true) {
		n.write(daemon.SdNotifyStopping)
	}
}

// close ends the connection.
func (n *notifier) close() {
	if n != nil {
		_ = n.conn.Close()
	}
}

// run says that the agent serves, tells what the page says whenever that changes, and gives the
// watchdog a sign of life twice in its time as long as the agent is healthy. It returns when ctx
// is done.
func (n *notifier) run(ctx context.Context, m *prober.Manager, healthy func() bool) {
	changes := m.Subscribe()
	defer changes.Close()
	var signs <-chan time.Time
	if n.watchdog > 0 {
		ticker := time.NewTicker(n.watchdog / 2)
		defer ticker.Stop()
		signs = ticker.C
	}
	gap := time.NewTimer(statusGap)
	defer gap.Stop()
	told := status(m)
	n.send(daemon.SdNotifyReady + "\n" + told)
	var changed <-chan struct{} // nil within statusGap
	for {
		select {
		case <-ctx.Done():
			return
		case <-signs:
			if healthy() {
				n.send(daemon.SdNotifyWatchdog)
			}
		case <-gap.C:
			changed = changes.C
		case <-changed:
			if now := status(m); now != told {
				n.send(now)
				told, changed = now, nil
				gap.Reset(statusGap)
			}
		}
	}
}

// status is the message of what the page says.
func status(m *prober.Manager) string { return "STATUS=" + web.Headline(m.Summary()) }

// send sends a message, unless the agent stops.
func (n *notifier) send(message string) {
	if !n.stopped.Load() {
		n.write(message)
	}
}

// write sends a message, and logs the first that cannot be sent.
func (n *notifier) write(message string) {
	_ = n.conn.SetWriteDeadline(time.Now().Add(notifyTime))
	if _, err := n.conn.Write([]byte(message)); err != nil && !n.failed.Swap(true) {
		n.log.Warn("cannot tell systemd about the agent", "err", err)
	}
}
