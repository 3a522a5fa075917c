// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/distribution/reference"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// All addresses are reserved for documentation, and exist only in the test's own network.
const (
	nodeName   = "node"
	nodeIP     = "192.0.2.10"
	serviceIP  = "203.0.113.1" // of the API server, as the pods know it
	podNetwork = "198.51.100.0/24"
	containerd = "/run/containerd/containerd.sock"
)

// cluster is an etcd, an API server, and one node. There is no scheduler and no controller. The tests
// bind the pods, and create the objects that each namespace needs.
type cluster struct {
	ca     []byte
	admin  string // the token of an administrator
	node   string // the kubelet's
	client *http.Client
}

// newCluster starts the cluster with images of the programs in a folder, and returns when the node is
// ready. The cluster ends with this process.
func newCluster(programs, groups string) (*cluster, error) {
	c := &cluster{admin: rand.Text(), node: rand.Text()}
	if err := c.credentials(); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, step := range []func() error{
		c.startAPI,
		func() error { return c.startContainerd(programs) },
		func() error { return c.startKubelet("/" + groups) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *cluster) startAPI() error {
	if err := start("etcd", "--data-dir="+at("etcd.data"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380"); err != nil {
		return err
	}
	if err := start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", "--advertise-address="+nodeIP, "--secure-port=443", "--service-cluster-ip-range=203.0.113.0/24",
		"--tls-cert-file="+at("tls.crt"), "--tls-private-key-file="+at("tls.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+at("tls.key"), "--service-account-signing-key-file="+at("tls.key"),
		"--authorization-mode=Node,RBAC", "--token-auth-file="+at("tokens.csv")); err != nil {
		return err
	}
	return ready("kube-apiserver", func() bool {
		code, _, err := c.call(http.MethodGet, "/readyz", "")
		return err == nil && code == http.StatusOK
	})
}

func (c *cluster) startContainerd(programs string) error {
	for file, content := range map[string]string{
		"containerd.toml": `version = 2
root = "` + at("containerd") + `"
state = "/run/containerd/state"
[grpc]
  address = "` + containerd + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "example.test/pause:e2e"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + pluginDir() + `"
    conf_dir = "` + at("cni") + `"
`,
		"cni/10-e2e.conflist": `{"cniVersion": "0.4.0", "name": "e2e", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local",
   "ranges": [[{"subnet": "` + podNetwork + `"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "` + at("ipam") + `"}}]}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(at(file)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at(file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := start("containerd", "--config="+at("containerd.toml")); err != nil {
		return err
	}
	if err := ready("containerd", func() bool { return ctr("version") == nil }); err != nil {
		return err
	}
	for _, i := range []struct {
		dockerfile string
		names      []string
	}{
		{"testdata/pause/Dockerfile", []string{"example.test/pause:e2e"}},
		{"testdata/app/Dockerfile", []string{canonical("shop:1.0")}},
		{"testdata/fault/Dockerfile", []string{canonical("fault:1.0")}},
		{"../../Dockerfile", []string{canonical("prober-exporter:0.1.0"), canonical(passing)}},
	} {
		built, err := buildImage(i.dockerfile, programs)
		if err != nil {
			return err
		}
		archive, err := built.archive(i.names...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(at("image.tar"), archive, 0o644); err != nil {
			return err
		}
		if err := ctr("images", "import", at("image.tar")); err != nil {
			return err
		}
	}
	return os.Remove(at("image.tar"))
}

// passing is a name of the agent's image that a test removes.
const passing = "prober-exporter:passing"

// canonical returns the name in containerd of an image that the kubelet asks for.
func canonical(name string) string {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		panic(err)
	}
	return named.String()
}

// ctr runs a command of containerd's client.
func ctr(args ...string) error {
	out, err := exec.Command("ctr", append([]string{"--address=" + containerd, "--namespace=k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %q: %w: %s", args, err, out)
	}
	return nil
}

// pluginDir is the directory of CNI plugins, which Debian has in a place of its own.
func pluginDir() string {
	if _, err := os.Stat("/usr/lib/cni/bridge"); err == nil {
		return "/usr/lib/cni"
	}
	return "/opt/cni/bin"
}

func (c *cluster) startKubelet(group string) error {
	sync := "5s" // a changed configuration reaches a pod at the pod's next sync
	if os.Getenv(podsOfACell) != "" {
		sync = "1m" // the kubelet's default: a pod that has just been synced waits for its next sync
	}
	for file, content := range map[string]string{
		"kubeconfig": `{"apiVersion": "v1", "kind": "Config", "current-context": "e2e",
			"clusters": [{"name": "e2e", "cluster": {"server": "https://` + serviceIP + `", "certificate-authority-data": "` + base64.StdEncoding.EncodeToString(c.ca) + `"}}],
			"users": [{"name": "node", "user": {"token": "` + c.node + `"}}],
			"contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "node"}}]}`,
		// All other settings are the kubelet's defaults.
		"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: ` + group + `
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://` + containerd + `
address: ` + nodeIP + `
readOnlyPort: 10255
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
evictionHard: {memory.available: 10Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
syncFrequency: ` + sync + `
maxPods: 250
`,
	} {
		if err := os.WriteFile(at(file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := start("kubelet", "--config="+at("kubelet.yaml"), "--kubeconfig="+at("kubeconfig"),
		"--hostname-override="+nodeName, "--node-ip="+nodeIP, "--v=2"); err != nil {
		return err
	}
	return ready("kubelet", func() bool {
		_, answer, err := c.call(http.MethodGet, "/api/v1/nodes/"+nodeName, "")
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err != nil || json.Unmarshal([]byte(answer), &node) != nil {
			return false
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return true
			}
		}
		return false
	})
}

// call sends a request to the API server as the administrator.
func (c *cluster) call(method, path, body string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

func (c *cluster) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+serviceIP+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.admin)
	req.Header.Set("Content-Type", "application/yaml") // which includes JSON
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return c.client.Do(req)
}

// credentials writes a certificate for the API server, and the tokens of the administrator and the
// node. The certificate's key also signs the tokens.
func (c *cluster) credentials() error {
	certificate, key, err := testutil.Certificate(net.ParseIP(serviceIP), net.ParseIP(nodeIP), net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	c.ca = certificate
	for name, content := range map[string][]byte{
		"tls.crt":    c.ca,
		"tls.key":    key,
		"tokens.csv": []byte(c.admin + `,admin,admin,"system:masters"` + "\n" + c.node + `,system:node:` + nodeName + `,node,"system:nodes"` + "\n"),
	} {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func at(name string) string { return filepath.Join(scratch, name) }

// start starts a program of the test, or of the system, with a log in the scratch folder.
func start(name string, args ...string) error {
	log, err := os.OpenFile(at(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	path, err := filepath.Abs(filepath.Join(bin, name))
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		path = name
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = scratch, log, log
	return cmd.Start()
}

// ready waits until a program is ready.
func ready(name string, ok func() bool) error {
	for deadline := time.Now().Add(2 * time.Minute); !ok(); tick() {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(at(name + ".log"))
			lines := bytes.Split(log, []byte("\n"))
			return fmt.Errorf("%s is not ready after 2 min:\n%s", name, bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
		}
	}
	return nil
}
