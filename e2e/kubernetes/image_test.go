// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// image is the image that a Dockerfile builds from a folder, without a base image.
type image struct {
	config object // in the format of the OCI specification
	args   map[string]string
	files  *tar.Writer
	layer  bytes.Buffer
}

// buildImage builds the image of a Dockerfile that has only the few instructions of this project's
// Dockerfiles. Any other instruction is an error.
func buildImage(dockerfile, folder string) (*image, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return nil, err
	}
	i := &image{config: object{}, args: map[string]string{}}
	i.files = tar.NewWriter(&i.layer)
	lines := strings.ReplaceAll(string(text), "\\\n", " ")
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := i.follow(line, folder); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", dockerfile, line, err)
		}
	}
	return i, i.files.Close()
}

func (i *image) follow(line, folder string) error {
	instruction, rest, _ := strings.Cut(line, " ")
	rest = os.Expand(rest, func(name string) string { return i.args[name] })
	words := strings.Fields(rest)
	switch instruction {
	case "FROM", "LABEL", "EXPOSE": // the base is scratch; the others do not affect what runs
		return nil
	case "ARG":
		name, value, _ := strings.Cut(rest, "=")
		i.args[name] = value
		return nil
	case "USER":
		i.config["User"] = rest
		return nil
	case "ENTRYPOINT", "CMD":
		var command []string
		if err := json.Unmarshal([]byte(rest), &command); err != nil {
			return err
		}
		i.config[map[string]string{"ENTRYPOINT": "Entrypoint", "CMD": "Cmd"}[instruction]] = command
		return nil
	case "COPY":
		if len(words) != 2 {
			return fmt.Errorf("%d words after it, want 2", len(words))
		}
		return i.copy(filepath.Join(folder, words[0]), strings.TrimPrefix(words[1], "/"))
	}
	return fmt.Errorf("an instruction that is not known here")
}

// copy adds a program and its folder to the layer.
func (i *image) copy(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if dir := path.Dir(to); dir != "." {
		if err := i.files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	if err := i.files.WriteHeader(&tar.Header{Name: to, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = i.files.Write(content)
	return err
}

// archive writes the image, under each of the names, to a file that containerd can import.
func (i *image) archive(names ...string) ([]byte, error) {
	var out bytes.Buffer
	files := tar.NewWriter(&out)
	var failed error
	blob := func(content []byte) string {
		digest := sha256.Sum256(content)
		name := hex.EncodeToString(digest[:])
		failed = either(failed, entry(files, "blobs/sha256/"+name, content))
		return "sha256:" + name
	}
	encode := func(v any) []byte {
		content, err := json.Marshal(v)
		failed = either(failed, err)
		return content
	}
	descriptor := func(mediaType string, content []byte) object {
		return object{"mediaType": "application/vnd.oci.image." + mediaType, "digest": blob(content), "size": len(content)}
	}
	platform := object{"architecture": runtime.GOARCH, "os": "linux"}
	layer := descriptor("layer.v1.tar", i.layer.Bytes())
	config := descriptor("config.v1+json", encode(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": i.config,
		"rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}},
	}))
	manifest := encode(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{layer}})
	blob(manifest)
	var manifests []any
	for _, name := range names {
		digest := sha256.Sum256(manifest)
		manifests = append(manifests, object{
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + hex.EncodeToString(digest[:]), "size": len(manifest),
			"platform": platform, "annotations": object{"io.containerd.image.name": name},
		})
	}
	failed = either(failed, entry(files, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)))
	failed = either(failed, entry(files, "index.json", encode(object{"schemaVersion": 2, "manifests": manifests})))
	return out.Bytes(), either(failed, files.Close())
}

// either returns the first error that is not nil.
func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func entry(w *tar.Writer, name string, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
