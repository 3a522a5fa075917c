// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The libraries command is an exporter of fifty lines with the agent's libraries and nothing
// else of the agent. The bench measures the memory of the libraries with it.
package main

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
	sloggokit "github.com/tjhop/slog-gokit"
	"gopkg.in/yaml.v3"
)

func main() {
	app := kingpin.New("libraries", "An exporter that exports itself.")
	file := app.Flag("config.file", "Configuration file.").Required().String()
	listen := kingpinflag.AddFlags(app, ":9709")
	kingpin.MustParse(app.Parse(os.Args[1:]))
	logger := slog.New(sloggokit.NewGoKitHandler(log.NewLogfmtLogger(log.NewSyncWriter(os.Stderr)), slog.LevelInfo))
	if err := serve(*file, listen, logger); err != nil {
		logger.Error("libraries ends", "err", err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

func serve(file string, listen *web.FlagConfig, logger *slog.Logger) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var configuration yaml.Node
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return err
	}
	logger.Info("configuration loaded", "line", configuration.Line)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), version.NewCollector("libraries"),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return web.ListenAndServe(&http.Server{Handler: mux}, listen, logger)
}
