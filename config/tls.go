// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/credential"
	"github.com/prober-exporter/prober_exporter/gate"
)

// TLS says how a probe verifies its server, and by what the server knows the probe. The names are
// those of Prometheus, in the spelling of Kubernetes. Without a TLS a probe verifies nothing, as
// in a kubelet.
type TLS struct {
	CAFile             string // empty: the authorities of the system
	CertFile, KeyFile  string // both or neither
	ServerName         string // empty: the host
	InsecureSkipVerify bool
	MinVersion         string // TLS12 or TLS13
}

// tlsVersions are the versions that minVersion may name. No probe speaks older ones.
var tlsVersions = map[string]uint16{"TLS12": tls.VersionTLS12, "TLS13": tls.VersionTLS13}

// Version returns the oldest version of TLS that the probe speaks.
func (t *TLS) Version() uint16 { return tlsVersions[t.MinVersion] }

// maxFileWait bounds how long a load waits for the files that probes read, all together.
const maxFileWait = 2 * time.Second

// tls returns the tlsConfig of an action; nil if there is none. encrypted says whether the action
// uses TLS, and otherwise what it lacks.
func (d *decoder) tls(v value, encrypted bool, lacks string) *TLS {
	if !v.set() {
		return nil
	}
	o, ok := d.object(v, "caFile", "certFile", "keyFile", "serverName", "insecureSkipVerify", "minVersion")
	if !ok {
		return nil
	}
	if !encrypted {
		d.wrong(v, "must not be set without %s", lacks)
	}
	before := d.mistakes()
	ca, cert, key := o.get("caFile"), o.get("certFile"), o.get("keyFile")
	t := &TLS{
		CAFile:             d.file(ca),
		CertFile:           d.file(cert),
		KeyFile:            d.file(key),
		ServerName:         d.serverName(o.get("serverName")),
		InsecureSkipVerify: d.boolean(o.get("insecureSkipVerify")),
		MinVersion:         cmp.Or(d.enum(o.get("minVersion"), "TLS12", "TLS13"), "TLS12"),
	}
	switch {
	case cert.set() && !key.set():
		d.wrong(key, "must be set together with certFile")
	case key.set() && !cert.set():
		d.wrong(cert, "must be set together with keyFile")
	}
	if t.InsecureSkipVerify && ca.set() {
		d.wrong(ca, "must not be set together with insecureSkipVerify, which verifies nothing")
	}
	if d.mistakes() > before {
		return nil
	}
	if t.CertFile != "" {
		d.noticeFile(cert, func(ctx context.Context) error {
			_, _, err := credential.NewPair(t.CertFile, t.KeyFile).Get(ctx)
			return err
		})
	}
	if !t.InsecureSkipVerify {
		place := ca
		if !ca.set() {
			place = v
		}
		d.noticeFile(place, func(ctx context.Context) error {
			_, err := credential.NewCA(t.CAFile).Get(ctx)
			return err
		})
	}
	return one(d.shared.tls, *t, t)
}

// file returns the path of a file, which may appear later; empty if it is not set.
func (d *decoder) file(v value) string {
	s, ok := d.str(v)
	if ok && v.set() && (!filepath.IsAbs(s) || strings.ContainsRune(s, 0)) {
		d.wrong(v, "must be an absolute path, is %s", quote(s))
	}
	return s
}

// serverName returns the name that a certificate must have; empty if it is not set.
func (d *decoder) serverName(v value) string {
	s, ok := d.str(v)
	if ok && v.set() && !validHost(s) {
		d.wrong(v, "must be a host name or an IP address, without scheme, port and brackets")
	}
	return s
}

// noticeFile warns of a file that cannot be used now. The file may appear later, so this is no
// error. get reads the file, which the first attempts then need not do.
func (d *decoder) noticeFile(v value, get func(context.Context) error) {
	left := maxFileWait - d.waited
	if left <= 0 {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	err := get(ctx)
	d.waited += time.Since(began)
	if err != nil {
		d.noticef(Warn, v.line, v.path(), "cannot be used now: %v: each attempt is unknown until this changes", err)
	}
}

// noticeVerified warns of a liveness probe that a certificate can fail.
func (d *decoder) noticeVerified(o object, kind gate.Kind, p *Probe) {
	var t *TLS
	key := ""
	switch {
	case p.HTTPGet != nil:
		t, key = p.HTTPGet.TLS, "httpGet"
	case p.GRPC != nil:
		t, key = p.GRPC.TLS, "grpc"
	}
	if kind != gate.Liveness || t == nil || t.InsecureSkipVerify || d.failed() {
		return
	}
	v := d.newObject(o.get(key)).get("tlsConfig")
	d.noticef(Warn, v.line, v.path(), "once the certificate of the server has expired, this liveness probe fails in all replicas at once: "+
		"verify in the readiness probe instead, or alert on prober_probe_tls_earliest_cert_expiry_seconds")
}

func (t *TLS) node() *yaml.Node {
	n := mapping()
	addText(n, "caFile", t.CAFile)
	addText(n, "certFile", t.CertFile)
	addText(n, "keyFile", t.KeyFile)
	addText(n, "serverName", t.ServerName)
	add(n, "insecureSkipVerify", scalar(strconv.FormatBool(t.InsecureSkipVerify)))
	add(n, "minVersion", text(t.MinVersion))
	return n
}

// addTLS adds a tlsConfig, unless there is none.
func addTLS(n *yaml.Node, t *TLS) {
	if t != nil {
		add(n, "tlsConfig", t.node())
	}
}
