// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The files of a verified liveness probe go missing: its attempts are unknown, and the target stays
// live and ready. When the files name another authority, the server does not verify, and the target
// is not live. All pages, the API and the metrics say until when the certificate is valid, and none
// shows the token.
func TestVerifiedProbe(t *testing.T) {
	authority := testutil.NewAuthority(t, "shop")
	pair := authority.IssuePair(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(73 * time.Hour) })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "you are ", r.Header.Get("Authorization"))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	files := map[string]string{"ca.crt": authority.PEM(), "token": "hunter2\n"}
	secret := testutil.NewSecret(t).Put(t, files)
	probe := fmt.Sprintf(`
      httpGet:
        port: %s
        scheme: HTTPS
        tlsConfig: {caFile: %s}
        httpHeaders: [{name: Authorization, valueFile: %s, prefix: "Bearer "}]
      periodSeconds: 0.1
      failureThreshold: 1
      timeoutSeconds: 10
`, port, secret.Path("ca.crt"), secret.Path("token"))
	a := start(t, testutil.Write(t, "targets:\n  - name: shop\n    readinessProbe:"+probe+"    livenessProbe:"+probe), verbose)
	a.Says(a.Health+"/ready/shop", 200, "")
	a.Logs("once the certificate of the server has expired, this liveness probe fails")
	const expiry = `prober_probe_tls_earliest_cert_expiry_seconds{probe_type="Liveness",target="shop"}`
	a.Eventually("the metric of the certificate", func() error {
		value, err := strconv.ParseFloat(a.Metric(expiry), 64)
		if err != nil || int64(value) != pair.Leaf.NotAfter.Unix() {
			return fmt.Errorf("is %v, error %w; want %d", value, err, pair.Leaf.NotAfter.Unix())
		}
		return nil
	})
	for path, want := range map[string]string{
		"/targets/shop":        "certificate valid until",
		"/api/v1/targets/shop": `"tls_earliest_cert_expiry":"` + pair.Leaf.NotAfter.UTC().Format(time.RFC3339) + `"`,
		"/config":              "valueFile: " + secret.Path("token"),
	} {
		if _, body := testutil.Get(t, a.Web+path); !strings.Contains(body, want) || strings.Contains(body, "hunter2") {
			t.Errorf("%s lacks %q, or shows the token: %s", path, want, body)
		}
	}

	counted := func(reason string) float64 {
		n, _ := strconv.ParseFloat(a.Metric(fmt.Sprintf(`prober_probe_failures_total{probe_type="Liveness",reason=%q,target="shop"}`, reason)), 64)
		return n
	}
	delete(files, "ca.crt")
	secret.Put(t, files)
	testutil.Until(t, "attempts are unknown", func() bool { return counted("local_file") > 3 })
	a.Is(a.Health+"/live/shop", 200, "")
	a.Is(a.Health+"/ready/shop", 200, "")
	if failed := a.Metric(`prober_probe_total{probe_type="Liveness",result="failed",target="shop"}`); failed != "0" {
		t.Errorf("%s attempts failed", failed)
	}

	files["ca.crt"] = testutil.NewAuthority(t, "another").PEM()
	secret.Put(t, files)
	a.Says(a.Health+"/live/shop", 503, "tls_verify")
	if log := a.Log.String(); strings.Contains(log, "hunter2") || !strings.Contains(log, "unknown authority") {
		t.Errorf("the log shows the token, or lacks what is wrong: %s", log)
	}
}
