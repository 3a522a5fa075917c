// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is the length of the shortest secret that is masked in output: a shorter
// text occurs everywhere and reveals little.
const leastSecret = 4

// Secrets returns the texts that a probe's output must not show, the longest first and
// none twice: the env values, as written and expanded, the header values of the file, and the
// user of an httpGet path, each also in the forms that a server may repeat.
func (t *Target) Secrets() []string {
	var secrets []string
	for _, v := range t.Env {
		secrets = append(secrets, v.Value)
	}
	// Not from expandedEnv: a later value may hold one that has since been replaced.
	values := make(map[string]string, len(t.Env))
	for _, v := range t.Env {
		values[v.Name] = expand(v.Value, values)
		secrets = append(secrets, values[v.Name])
	}
	for _, p := range t.All() {
		if p.HTTPGet != nil {
			secrets = append(secrets, p.HTTPGet.secrets()...)
		}
	}
	return Hidden(secrets)
}

// Hidden returns those of the secrets that are long enough to be masked in output, the longest
// first and none twice. It may change the order of secrets.
func Hidden(secrets []string) []string {
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < leastSecret })
	slices.SortFunc(secrets, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return slices.Compact(secrets)
}

func (h *HTTPGet) secrets() []string {
	var secrets []string
	for i := range h.Headers {
		if header := &h.Headers[i]; header.ValueFile == "" {
			secrets = append(secrets, header.Secrets(header.Value)...)
		}
	}
	if user, ok := userinfo(h.Path); ok {
		name, password, has := strings.Cut(user, ":")
		secrets = append(secrets, user, password, masked(name, has))
		if u, err := url.Parse(h.Path); err == nil && u.User != nil {
			password, has := u.User.Password()
			plain := u.User.Username() + ":" + password
			secrets = append(secrets, masked(u.User.Username(), has))
			secrets = append(secrets, plain, password, base64.StdEncoding.EncodeToString([]byte(plain)))
		}
	}
	return secrets
}

// masked returns the form in which an error of net/http shows a user with a password.
// The name alone is not masked in output: it may be any word.
func masked(name string, hasPassword bool) string {
	if name == "" || !hasPassword {
		return ""
	}
	return name + ":***"
}

// userinfo returns the user and password of a path such as http://u:p@x/y, which
// become basic authentication (rule 9.2), as written.
func userinfo(path string) (string, bool) {
	_, rest, ok := strings.Cut(path, "//")
	if !ok || strings.ContainsAny(path[:len(path)-len(rest)-len("//")], "/?#@") {
		return "", false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	i := strings.LastIndexByte(rest, '@')
	return rest[:max(i, 0)], i >= 0
}
