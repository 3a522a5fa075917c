// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package k8s pins the versions of the programs that the tests of the source kubernetes run
// against. The package has a module of its own, so that no other module gets dependencies from
// it.
package k8s

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
