// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/base64"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/credential"
)

// Header is a request header. Its value is Value, or Prefix and the content of ValueFile.
type Header struct {
	Name, Value       string
	ValueFile, Prefix string // both empty for a value of this file
}

func (d *decoder) headers(v value) []Header {
	items := d.list(v)
	if len(items) == 0 {
		return nil
	}
	headers := make([]Header, 0, len(items))
	for _, item := range items {
		o, ok := d.pair(item, "name", "value", "valueFile", "prefix")
		if !ok {
			continue
		}
		var h Header
		v := o.get("name")
		if h.Name, ok = d.str(v); ok {
			switch {
			case h.Name == "":
				d.wrong(v, required)
			case !validHeaderName(h.Name):
				// Without the name, which may be a whole header.
				d.wrong(v, "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')")
			}
		}
		v = o.get("value")
		if h.Value, ok = d.substituted(v); ok && !validHeaderValue(h.Value) {
			d.wrong(v, badHeaderValue)
		}
		d.headerFile(o, &h)
		headers = append(headers, h)
	}
	return headers
}

const badHeaderValue = "must not contain a newline or another control character: such a request cannot be sent"

// headerFile sets the parts of h that say from which file its value comes.
func (d *decoder) headerFile(o object, h *Header) {
	value, file, prefix := o.get("value"), o.get("valueFile"), o.get("prefix")
	if !file.set() {
		if prefix.set() {
			d.wrong(prefix, "must not be set without valueFile: write the prefix into value")
		}
		return
	}
	before := d.mistakes()
	h.ValueFile = d.file(file)
	var ok bool
	if h.Prefix, ok = d.str(prefix); ok && !validHeaderValue(h.Prefix) {
		d.wrong(prefix, badHeaderValue)
	}
	if value.set() {
		d.wrong(file, "must not be set together with value")
	}
	if strings.EqualFold(h.Name, "Host") {
		d.wrong(file, "must not be set for Host, which is not a secret: use value")
	}
	if d.mistakes() == before {
		d.noticeFile(file, func(ctx context.Context) error {
			_, err := credential.NewToken(h.ValueFile).Get(ctx)
			return err
		})
	}
}

// node returns the header as the file would have it, without its secrets.
func (h *Header) node() *yaml.Node {
	if h.ValueFile == "" {
		return secret(h.Name)
	}
	n := mapping()
	add(n, "name", text(h.Name))
	add(n, "valueFile", text(h.ValueFile))
	addText(n, "prefix", h.Prefix)
	return n
}

// Secrets returns the texts that must not be shown of a header with this value: of h.Value, or of
// what its file has had.
func (h *Header) Secrets(value string) []string {
	// On the wire a value has no space around it.
	trimmed := strings.TrimSpace(value)
	secrets := []string{value, trimmed}
	if strings.EqualFold(h.Name, "Authorization") || strings.EqualFold(h.Name, "Proxy-Authorization") {
		_, credentials, _ := strings.Cut(trimmed, " ")
		secrets = append(secrets, credentials)
		if basic, err := base64.StdEncoding.DecodeString(credentials); err == nil {
			_, password, _ := strings.Cut(string(basic), ":")
			secrets = append(secrets, string(basic), password)
		}
	}
	return secrets
}
