// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"sync"
	"time"
)

// files are the templates and the files that pages load.
//
//go:embed static
var files embed.FS

// assets are the files that a browser may ask for, and their types.
var assets = map[string]string{
	"page.css": "text/css; charset=utf-8",
	"page.js":  "text/javascript; charset=utf-8",
	"icon.svg": "image/svg+xml",
}

// build returns a digest of all files: a page of one build never uses a cached file of
// another.
var build = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(path)
		sum.Write(body)
		return err
	})
	if err != nil {
		return "" // but they are in the binary
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})

// serveAsset serves a file of the pages. A request with the digest of this build may be
// cached for ever.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	mediaType, ok := assets[name]
	body, err := files.ReadFile("static/" + name)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Security-Policy", pagePolicy) // an image may be a page of its own
	h.Set("ETag", `"`+build()+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == build() {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
