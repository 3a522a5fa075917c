// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs the process: it loads and reloads the configuration, serves the
// listeners, handles signals and limits, and shuts down in order.
package agent

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/common/version"

	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/podstatus"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
	"github.com/prober-exporter/prober_exporter/restart"
)

// stopTime bounds the shutdown after the delay.
const stopTime = 10 * time.Second

// Run runs the agent until ctx is done or a signal ends it. It returns an error if the agent
// cannot start or a listener breaks.
func Run(ctx context.Context, o *Options, lines *Log) error {
	log := lines.Logger
	log.Info("starting prober_exporter", "version", version.Info(), "build_context", version.BuildContext())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	systemd := newNotifier(log)
	defer systemd.close()

	limitMemory(log, memlimit.FromCgroup)
	p := newProcess(o, log)
	l := &loader{file: o.ConfigFile, log: log, manager: p.manager, restarter: p.restarter, pod: p.pod, maxInFlight: o.MaxInFlight}
	p.systemd, l.systemd = systemd, systemd
	collectAgain := collectNoGarbage()
	defer collectAgain()
	first := l.read(nil)
	// Only now: a read that hangs must not keep the process from ending.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if first.err != nil && !o.FailOpen {
		l.refuse(first.err)
		return errTold
	}
	handlers, err := newHandlers(o, l, lines.lines.Dropped)
	if err != nil {
		return err
	}
	if p.servers, err = newServers(o, log, handlers); err != nil {
		return err
	}
	var background context.Context
	background, p.stop = context.WithCancel(context.Background())
	if os.Getpid() == 1 {
		p.workers.Go(func() { exec.ReapOrphans(background) })
	}
	// Probing begins here, after everything that can go wrong.
	l.first(first)
	if first.err != nil {
		log.Warn("running without a configuration: nothing is probed, every /live answers 200, and no target is ready", "file", o.ConfigFile)
	}
	collectAgain()
	if o.AutoReload || o.FailOpen {
		p.workers.Go(func() { l.watch(background, o.AutoReloadInterval, o.AutoReload) })
	}
	// A file system that hangs must not delay signals.
	hangups := make(chan struct{}, 1)
	p.workers.Go(func() {
		for {
			select {
			case <-background.Done():
				return
			case <-hangups:
				_ = l.load() // it has been logged
			}
		}
	})
	broken := p.servers.start()
	if systemd != nil {
		p.workers.Go(func() { systemd.run(background, p.manager, handlers.healthy) })
	}

	for {
		select {
		case <-ctx.Done():
			p.shutDown(signals)
			return nil
		case err := <-broken:
			p.quiet()
			p.endWithin(stopTime, signals, func(context.Context) { p.close() })
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("stopping", "signal", s.String(), "delay", o.ShutdownDelay)
				p.shutDown(signals)
				return nil
			}
			select {
			case hangups <- struct{}{}:
			default: // a reload is pending already
			}
		}
	}
}

// process has everything that runs.
type process struct {
	o         *Options
	log       *slog.Logger
	systemd   *notifier
	manager   *prober.Manager
	restarter *restart.Restarter
	pod       *podstatus.Writer
	servers   *servers
	workers   sync.WaitGroup // goroutines other than the manager's, the restarter's, the writer's and the servers'
	stop      context.CancelFunc
}

// newProcess returns a process in which nothing runs yet.
func newProcess(o *Options, log *slog.Logger) *process {
	pod := kubernetes.NewFollower(kubernetes.InPod(), kubernetes.DefaultPace(), log)
	manager := prober.New(prober.Options{Logger: log, MaxInFlight: o.MaxInFlight, Pod: pod})
	writer := podstatus.New(podstatus.Options{Prober: manager, Pod: pod, Logger: log})
	restarter := restart.New(restart.Options{Prober: manager, Logger: log, Told: func(target string, a restart.Act) { tellPod(writer, target, a) }})
	return &process{o: o, log: log, manager: manager, restarter: restarter, pod: writer}
}

// tellPod makes an event of an act that begins, whose result is empty, or that has failed.
func tellPod(w *podstatus.Writer, target string, a restart.Act) {
	act := podstatus.Act{Target: target, Kind: a.Kind, Probe: a.Probe, Handler: a.Handler}
	if a.Result == restart.Failed {
		act.Failure = a.Message
	}
	if a.Result == "" || a.Result == restart.Failed {
		w.Acted(act)
	}
}

// quiet begins the end, however it comes: at once an agent that goes restarts nobody. Only then
// systemd is told, which may take its time.
func (p *process) quiet() {
	p.restarter.Stop()
	p.systemd.stopping()
}

// close ends everything at once and waits for the end.
func (p *process) close() {
	p.restarter.Stop()
	p.servers.close()
	p.restarter.Close()
	p.pod.Close() // before the manager stops, which calls for a last word
	p.manager.Close()
	p.stop() // last: it ends the reaper of the processes that probes leave behind
	p.workers.Wait()
}

// shutDown keeps answering during the delay, then closes the listeners and ends the probes.
func (p *process) shutDown(signals <-chan os.Signal) {
	p.quiet()
	p.endWithin(p.o.ShutdownDelay+stopTime, signals, func(ctx context.Context) {
		// Stop waits for attempts, which may never end, so it runs beside the delay.
		var stopping sync.WaitGroup
		stopping.Go(p.manager.Stop)
		delay := time.NewTimer(p.o.ShutdownDelay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-ctx.Done():
		}
		ctx, drained := context.WithTimeout(ctx, drainTime)
		defer drained()
		var finishing sync.WaitGroup
		finishing.Go(func() { p.pod.Finish(ctx) })
		p.servers.shutdown(ctx)
		finishing.Wait()
		stopping.Wait()
		p.close()
	})
}

// endWithin waits until end has ended everything, at most for limit. A signal ends ctx and
// shortens the wait. endWithin returns even if a child cannot be killed or a read hangs.
func (p *process) endWithin(limit time.Duration, signals <-chan os.Signal, end func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		end(ctx)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	patience := timer.C
	hurried := false
	for {
		select {
		case <-done:
			p.log.Info("stopped")
			return
		case <-patience:
			p.log.Error("stopped although some work does not end")
			return
		case s := <-signals:
			if s != syscall.SIGHUP && !hurried {
				hurried = true
				p.log.Info("stopping at once", "signal", s.String())
				cancel()
				grace := time.NewTimer(drainTime)
				defer grace.Stop()
				patience = grace.C
			}
		}
	}
}
