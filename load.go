// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/collector"
	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
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

	mu   sync.Mutex // one load at a time
	seen string     // what the file was at the last load: its digest, or why it could not be read
}

// load validates the whole file and applies it. On any error everything stays as it
// was; the error is logged and returned.
func (l *loader) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, seen, err := l.read()
	return l.apply(data, seen, err)
}

// loadIfChanged does so if the file is not what it was at the last load, good or bad.
func (l *loader) loadIfChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, seen, err := l.read()
	if seen != l.seen {
		_ = l.apply(data, seen, err) // it has been logged
	}
}

func (l *loader) read() (data []byte, seen string, err error) {
	data, err = config.Read(l.file)
	if err != nil {
		return nil, err.Error(), err
	}
	sum := sha256.Sum256(data)
	return data, string(sum[:]), nil
}

func (l *loader) apply(data []byte, seen string, err error) error {
	var cfg *config.Config
	var notices []config.Notice
	if err == nil {
		cfg, notices, err = config.Load(l.file, data, lookupEnv)
	}
	for _, n := range notices {
		l.log.Log(context.Background(), noticeLevel(n), "notice about the configuration", "notice", n.String())
	}
	if err == nil {
		err = l.manager.Apply(cfg)
	}
	l.seen = seen
	l.result.SetResult(err == nil, time.Now())
	if err != nil {
		l.refuse(err)
		return err
	}
	l.running.Store(cfg)
	l.log.Info("configuration loaded", "file", l.file, "targets", len(cfg.Targets))
	return nil
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

// refuse logs why a configuration is not loaded, a line for each mistake.
func (l *loader) refuse(err error) {
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		l.log.Error("configuration not loaded", "err", err)
		return
	}
	for _, mistake := range mistakes {
		l.log.Error("configuration not loaded", "err", mistake)
	}
}

// configCheck loads the configuration and the web configuration, tells all that is
// wrong with them, and returns the exit code.
func configCheck(o *options, w io.Writer) int {
	cfg, notices, err := config.LoadFile(o.configFile)
	for _, n := range notices {
		_, _ = fmt.Fprintln(w, n)
	}
	webErr := toolkit.Validate(*o.web.WebConfigFile)
	if webErr != nil {
		webErr = fmt.Errorf("web configuration %s: %w", *o.web.WebConfigFile, webErr)
	}
	if err := errors.Join(err, webErr); err != nil {
		_, _ = fmt.Fprintln(w, err)
		return exitError
	}
	_, _ = fmt.Fprintf(w, "%s: ok, %d targets\n", o.configFile, len(cfg.Targets))
	return exitOK
}
