// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// nobody is the user that runs the servers if the tests run as root.
const nobody = 65534

// cluster is an etcd and an API server without nodes.
type cluster struct {
	etcd, api *exec.Cmd
	etcdURL   string
	addr      string // the API server's address
	ca        []byte
	admin     string // a token that may do everything
	client    *http.Client
}

func newCluster() (c *cluster, err error) {
	c = &cluster{admin: rand.Text()}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	c.etcdURL, c.addr = "http://"+ports[0], ports[2]
	if err := c.credentials(); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	c.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
	c.etcd, err = start("etcd", "--data-dir="+filepath.Join(scratch, "etcd.data"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+c.etcdURL, "--advertise-client-urls="+c.etcdURL, "--name=e2e",
		"--listen-peer-urls=http://"+ports[1], "--initial-advertise-peer-urls=http://"+ports[1], "--initial-cluster=e2e=http://"+ports[1])
	if err != nil {
		return nil, err
	}
	return c, c.startAPI()
}

// startAPI starts the API server and waits until it is ready.
func (c *cluster) startAPI() (err error) {
	_, port, err := net.SplitHostPort(c.addr)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(scratch, name) }
	c.api, err = start("kube-apiserver", "--etcd-servers="+c.etcdURL, "--etcd-compaction-interval=0",
		"--bind-address=127.0.0.1", "--secure-port="+port, "--endpoint-reconciler-type=none", "--service-cluster-ip-range=203.0.113.0/24",
		"--cert-dir="+at("certs"), "--tls-cert-file="+at("tls.crt"), "--tls-private-key-file="+at("tls.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+at("tls.key"), "--service-account-signing-key-file="+at("tls.key"),
		"--authorization-mode=RBAC", "--token-auth-file="+at("tokens.csv"))
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); ; <-tick.C {
		code, _, err := c.call(c.admin, http.MethodGet, "/readyz", "")
		if err == nil && code == 200 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server is not ready after 90 s (%d, %w):\n%s", code, err, tail("kube-apiserver"))
		}
	}
}

func (c *cluster) stopAPI() { end(c.api); c.api = nil }

func (c *cluster) stop() {
	end(c.api)
	end(c.etcd)
}

// compact makes etcd forget everything but the present state.
func (c *cluster) compact() error {
	body, err := c.etcdCall("/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	revision := between(body, `"revision":"`, `"`)
	_, err = c.etcdCall("/v3/kv/compaction", `{"revision":"`+revision+`","physical":true}`)
	return err
}

func (c *cluster) etcdCall(path, body string) (string, error) {
	resp, err := c.client.Post(c.etcdURL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("etcd answers %s to %s: %s", resp.Status, path, b)
	}
	return string(b), err
}

// call makes a request to the API server as the owner of a token.
func (c *cluster) call(token, method, path, body string) (int, string, error) {
	req, err := http.NewRequest(method, "https://"+c.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/yaml") // JSON is a part of YAML
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// credentials writes a certificate for loopback and the administrator's token. The
// certificate's key also signs the tokens.
func (c *cluster) credentials() error {
	certificate, key, err := testutil.Certificate(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	c.ca = certificate
	for name, content := range map[string][]byte{
		"tls.crt":    c.ca,
		"tls.key":    key,
		"tokens.csv": []byte(c.admin + `,admin,admin,"system:masters"` + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(scratch, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// start starts a program with a log in the scratch folder, as nobody if possible.
func start(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(scratch, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	path, err := filepath.Abs(filepath.Join(bin, name))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = scratch, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getenv(inside+"_ROOT") != "" {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		err = cmd.Start()
		if !errors.Is(err, syscall.EACCES) {
			return cmd, err
		}
		return nil, fmt.Errorf("start %s as user %d, who must be able to read it: %w", path, nobody, err)
	}
	return cmd, cmd.Start()
}

func end(cmd *exec.Cmd) {
	if cmd != nil && cmd.Process != nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// tail returns the end of a program's log.
func tail(name string) []byte {
	b, err := os.ReadFile(filepath.Join(scratch, name+".log"))
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(b, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-20):], []byte("\n"))
}

// freePorts returns addresses on loopback where nobody listens.
func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
