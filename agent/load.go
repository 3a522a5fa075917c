// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/collector"
	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/podstatus"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
	"github.com/prober-exporter/prober_exporter/web"
)

// errNoConfig is the error of /config while no configuration is loaded.
var errNoConfig = errors.New("no configuration is loaded")

// loader reads, validates and applies configurations. There is no other way to apply one.
type loader struct {
	file    string
	log     *slog.Logger
	manager *prober.Manager
	pod     *podstatus.Writer
	result  collector.Reload
	running atomic.Pointer[config.Config]
	ended   atomic.Pointer[web.Load] // how the last load ended; nil if there was none

	restarter *restart.Restarter

	maxInFlight int // the flag's value; 0: from the limit of open files
	systemd     *notifier

	mu          sync.Mutex // one load at a time
	seen        string     // the file at the last load: its digest, or why it could not be read
	filesWarned int        // the number of open files for which the log has called the limit too low
	notes       []func()   // lines to log once mu is released
}

// candidate is a configuration that has been read but not applied.
type candidate struct {
	seen    string
	cfg     *config.Config
	notices []config.Notice
	err     error
}

// load validates the whole file and applies it. On an error load changes nothing, and logs and
// returns the error.
func (l *loader) load() error {
	l.mu.Lock()
	defer l.unlock()
	defer l.systemd.reloading()()
	return l.apply(l.read(nil))
}

// first applies the candidate of the start.
func (l *loader) first(c candidate) {
	l.mu.Lock()
	defer l.unlock()
	_ = l.apply(c) // it has been logged
}

// unlock ends a load and writes its log lines.
func (l *loader) unlock() {
	notes := l.notes
	l.notes = nil
	l.mu.Unlock()
	for _, write := range notes {
		write()
	}
}

func (l *loader) note(write func()) { l.notes = append(l.notes, write) }

// loadIfChanged loads the file if it has changed since the last load, good or bad.
func (l *loader) loadIfChanged() {
	l.mu.Lock()
	defer l.unlock()
	if c := l.read(&l.seen); c.seen != l.seen {
		defer l.systemd.reloading()()
		_ = l.apply(c) // it has been logged
	}
}

// read reads and validates the file, unless it equals last. The caller of read and of apply
// holds mu, or nothing else runs yet.
func (l *loader) read(last *string) (c candidate) {
	data, err := config.Read(l.file)
	if err = naming("config.file", err); err != nil {
		return candidate{seen: err.Error(), err: err}
	}
	sum := sha256.Sum256(data)
	if c.seen = string(sum[:]); last == nil || c.seen != *last {
		c.cfg, c.notices, c.err = config.Load(l.file, data, os.LookupEnv)
	}
	return c
}

// collectNoGarbage keeps the garbage collector from running until undo is called. It is for
// the first load, whose memory lives almost to its end: with ten thousand targets the collector
// would run seven times and find little. The memory limit still holds, and undo keeps a value
// that somebody sets meanwhile.
func collectNoGarbage() (undo func()) {
	const off = -1
	percent := debug.SetGCPercent(off)
	return sync.OnceFunc(func() {
		if percent == off {
			return // somebody else has set another value
		}
		if since := debug.SetGCPercent(percent); since != off {
			debug.SetGCPercent(since)
		}
	})
}

func (l *loader) apply(c candidate) error {
	for _, n := range c.notices {
		l.note(func() {
			l.log.Log(context.Background(), noticeLevel(n), "notice about the configuration", "notice", n.String())
		})
	}
	err := c.err
	if err == nil {
		l.restarter.Suspend()
		if err = l.manager.Apply(c.cfg); err != nil {
			l.restarter.Resume()
		}
	}
	if errors.Is(err, prober.ErrStopping) {
		return err // the error is not about the file
	}
	l.seen = c.seen
	l.tell(err, time.Now())
	if err != nil {
		l.note(func() { l.refuse(err) })
		return err
	}
	l.restarter.Apply(c.cfg)
	l.running.Store(c.cfg)
	l.pod.Apply(c.cfg)
	l.note(func() { l.log.Info("configuration loaded", "file", l.file, "targets", len(c.cfg.Targets)) })
	l.warnOfFiles(c.cfg)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gogcFor(c.cfg))
	}
	return nil
}

// tell publishes how a load ended, for lastLoad and the metrics. The caller holds mu.
func (l *loader) tell(err error, at time.Time) {
	l.result.SetResult(err == nil, at)
	told := l.lastLoad()
	told.At, told.Err = at, err
	if err == nil {
		told.Applied = at
	}
	l.ended.Store(&told)
}

// lastLoad returns how the last load ended.
func (l *loader) lastLoad() web.Load {
	if told := l.ended.Load(); told != nil {
		return *told
	}
	return web.Load{File: l.file}
}

// targetYAML returns a target of the running configuration without its secrets.
func (l *loader) targetYAML(name string) ([]byte, error) {
	cfg := l.running.Load()
	if cfg == nil {
		return nil, errNoConfig
	}
	for i := range cfg.Targets {
		if cfg.Targets[i].Name == name {
			return cfg.Targets[i].YAML()
		}
	}
	return nil, fmt.Errorf("the running configuration has no target %q", name)
}

// yaml returns the running configuration without its secrets.
func (l *loader) yaml() ([]byte, error) {
	cfg := l.running.Load()
	if cfg == nil {
		return nil, errNoConfig
	}
	return cfg.YAML()
}

// watch calls loadIfChanged every interval until ctx is done or, without always, until a
// configuration is loaded.
func (l *loader) watch(ctx context.Context, interval time.Duration, always bool) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for always || l.running.Load() == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.loadIfChanged()
		}
	}
}

func noticeLevel(n config.Notice) slog.Level {
	if n.Level == config.Warn {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// refuse logs why a configuration is not loaded, one line for each mistake: as warnings while
// another configuration runs, else as errors.
func (l *loader) refuse(err error) {
	level := slog.LevelError
	if l.running.Load() != nil {
		level = slog.LevelWarn
	}
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		l.log.Log(context.Background(), level, "configuration not loaded", "err", err)
		return
	}
	for _, mistake := range mistakes {
		l.log.Log(context.Background(), level, "configuration not loaded", "err", mistake)
	}
}

// naming adds the name of the file's flag to the error of a missing file.
func naming(flag string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: --%s names the file", err, flag)
	}
	return err
}

// CheckConfig loads the configuration and the web configuration, and prints all their mistakes
// to w.
func CheckConfig(o *Options, w io.Writer) error {
	cfg, notices, err := config.LoadFile(o.ConfigFile)
	err = naming("config.file", err)
	for _, n := range notices {
		_, _ = fmt.Fprintf(w, "%v: %v\n", n.Level, n)
	}
	webErr := toolkit.Validate(*o.Web.WebConfigFile)
	if webErr != nil {
		webErr = fmt.Errorf("web configuration %s: %w", *o.Web.WebConfigFile, webErr)
	}
	if err := errors.Join(err, webErr); err != nil {
		_, _ = fmt.Fprintln(w, err)
		return err
	}
	_, _ = fmt.Fprintf(w, "%s: ok, %d targets\n", o.ConfigFile, len(cfg.Targets))
	return nil
}
