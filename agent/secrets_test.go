// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// echo answers each request with the X-Key header of the request, in the form that the path
// names. It returns its port.
func echo(t *testing.T) string {
	t.Helper()
	return hostile(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		key := r.Header.Get("X-Key")
		const head = "HTTP/1.1 500 No\r\n\r\n"
		switch r.URL.Path {
		case "/mime":
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nno header %s\r\n\r\n", key)
		case "/status":
			fmt.Fprintf(conn, "%s\r\n\r\n", key)
		case "/location":
			fmt.Fprintf(conn, "HTTP/1.1 302 Go\r\nLocation: http://[%s\r\n\r\n", key)
		case "/json":
			body, _ := json.Marshal(map[string]string{"refused": key})
			fmt.Fprint(conn, head, string(body))
		case "/html":
			fmt.Fprint(conn, head, html.EscapeString(key))
		case "/query":
			fmt.Fprint(conn, head, url.QueryEscape(key))
		case "/base64":
			fmt.Fprint(conn, head, base64.StdEncoding.EncodeToString([]byte("user:"+key)))
		}
	})
}

// A secret with a quote in it is never visible, whether net/http quotes the secret from a
// broken answer or a body repeats the secret, and whether the secret comes from the configuration
// or from a file.
func TestSecretsRepeated(t *testing.T) {
	const secret = `hunter2"tr0ub4dor\xyzzy<&>plugh`
	t.Setenv("KEY", secret)
	port := echo(t)
	token := filepath.Join(t.TempDir(), "token")
	testutil.Rewrite(t, token, secret+"\n")
	var ways []string
	var file strings.Builder
	file.WriteString("targets:\n")
	for from, value := range map[string]string{"": `value: "${KEY}"`, "-file": "valueFile: " + token} {
		for _, way := range []string{"mime", "status", "location", "json", "html", "query", "base64"} {
			ways = append(ways, way+from)
			fmt.Fprintf(&file, `  - name: %s
    readinessProbe:
      httpGet: {port: %s, path: /%s, httpHeaders: [{name: X-Key, %s}]}
      periodSeconds: 0.1
`, way+from, port, way, value)
		}
	}
	a := start(t, testutil.Write(t, file.String()), verbose)
	seen := map[string]string{}
	for _, way := range ways {
		at := "/api/v1/targets/" + way
		a.Eventually("a failure of "+way, func() error {
			var body string
			if _, body = testutil.Get(t, a.Web+at); !strings.Contains(body, `"outcome":"failed"`) {
				return fmt.Errorf("no failure yet: %s", body)
			}
			seen[at] = body
			return nil
		})
		_, seen["/targets/"+way] = testutil.Get(t, a.Web+"/targets/"+way)
	}
	for _, path := range []string{"/", "/metrics", "/api/v1/targets", "/ready?verbose", "/config"} {
		_, seen[path] = testutil.Get(t, a.Web+path)
	}
	seen["the log"] = a.Log.String()
	for where, what := range seen {
		for _, part := range []string{"hunter2", "tr0ub4dor", "xyzzy", "plugh", "aHVudGVyM", "dHIwdWI0"} {
			if strings.Contains(what, part) {
				t.Errorf("%s shows %q: %s", where, part, what)
			}
		}
		if (where == "the log" || strings.HasPrefix(where, "/api")) && !strings.Contains(what, "redacted") {
			t.Errorf("%s lacks the output: %s", where, what)
		}
	}
}
