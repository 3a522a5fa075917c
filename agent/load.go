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
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/web"
)

// errNoConfig is what /config answers while there is none.
var errNoConfig = errors.New("no configuration is loaded")

// loader is the one path by which a configuration becomes the running one.
type loader struct {
	file    string
	log     *slog.Logger
	manager *prober.Manager
	result  collector.Reload
	running atomic.Pointer[config.Config]
	ended   atomic.Pointer[web.Load] // how the last load did; nil: there was none

	maxInFlight int // as the flag has it; 0: from the limit of open files

	mu          sync.Mutex // one load at a time
	seen        string     // what the file was at the last load: its digest, or why it could not be read
	filesWarned int        // for how many open files the limit has been called too low
	notes       []func()   // what is to be logged once mu is not held
}

// candidate is a configuration that has been read and not applied yet.
type candidate struct {
	seen    string
	cfg     *config.Config
	notices []config.Notice
	err     error
}

// load validates the whole file and applies it. On any error everything stays as it
// was; the error is logged and returned.
func (l *loader) load() error {
	l.mu.Lock()
	defer l.unlock()
	return l.apply(l.read(nil))
}

// first makes the candidate of a start the configuration.
func (l *loader) first(c candidate) {
	l.mu.Lock()
	defer l.unlock()
	_ = l.apply(c) // it has been logged
}

// unlock ends a load, and logs what there is to say of it.
func (l *loader) unlock() {
	notes := l.notes
	l.notes = nil
	l.mu.Unlock()
	for _, write := range notes {
		write()
	}
}

func (l *loader) note(write func()) { l.notes = append(l.notes, write) }

// loadIfChanged does so if the file is not what it was at the last load, good or bad.
func (l *loader) loadIfChanged() {
	l.mu.Lock()
	defer l.unlock()
	if c := l.read(&l.seen); c.seen != l.seen {
		_ = l.apply(c) // it has been logged
	}
}

// read reads and validates the file, unless it is still what it was when it was seen
// last. Called with mu held, as apply, or before anything else runs.
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

// collectNoGarbage keeps the garbage collector from running until undo is called. It is
// for the first load: what a file becomes on the way lives almost to the end, so that the
// collector would find little, and with ten thousand targets look seven times. A memory
// limit is kept all the same, and so is what is set meanwhile.
func collectNoGarbage() (undo func()) {
	const off = -1
	percent := debug.SetGCPercent(off)
	return sync.OnceFunc(func() {
		if percent == off {
			return // it is somebody else's to undo
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
		err = l.manager.Apply(c.cfg)
	}
	if errors.Is(err, prober.ErrStopping) {
		return err // which says nothing of the file
	}
	l.seen = c.seen
	l.tell(err, time.Now())
	if err != nil {
		l.note(func() { l.refuse(err) })
		return err
	}
	l.running.Store(c.cfg)
	l.note(func() { l.log.Info("configuration loaded", "file", l.file, "targets", len(c.cfg.Targets)) })
	l.warnOfFiles(c.cfg)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gogcFor(c.cfg))
	}
	return nil
}

// tell says how a load ended, to those who ask and to the metrics. With mu held.
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

// watch looks for a change every interval until ctx is done. Without always it does
// so only until a configuration is loaded.
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

// refuse logs why a configuration is not loaded, a line for each mistake. It is a
// warning as long as another one runs.
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

// naming adds to the error of a file that is not there which flag names the file.
func naming(flag string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: --%s names the file", err, flag)
	}
	return err
}

// CheckConfig loads the configuration and the web configuration. w is told all that is
// wrong with them.
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
