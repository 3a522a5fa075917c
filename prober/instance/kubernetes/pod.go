// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"slices"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// pod is a pod as a kubelet's worker reads it.
type pod kubernetes.Pod

// container is a container as a kubelet restarts it.
type container kubernetes.Container

// restartAll is the action of a restart rule that restarts every container of the pod.
const restartAll = "RestartAllContainers"

// container returns a container of the spec, and whether it is one that a kubelet
// probes: a regular one or a sidecar.
func (p *pod) container(name string) (c container, found, probed bool) {
	named := func(c kubernetes.Container) bool { return c.Name == name }
	if i := slices.IndexFunc(p.Spec.Containers, named); i >= 0 {
		return container(p.Spec.Containers[i]), true, true
	}
	if i := slices.IndexFunc(p.Spec.InitContainers, named); i >= 0 {
		c := container(p.Spec.InitContainers[i])
		return c, true, c.RestartPolicy == "Always"
	}
	return container{}, false, false
}

// status returns the status of a container: the regular one if that has an ID, else that of an
// init container (kubelet rule 4.5), else nil.
func (p *pod) status(name string) *kubernetes.ContainerStatus {
	for _, list := range [...][]kubernetes.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		i := slices.IndexFunc(list, func(s kubernetes.ContainerStatus) bool { return s.Name == name })
		if i >= 0 && list[i].ContainerID != "" {
			return &list[i]
		}
	}
	return nil
}

// misnamed returns in one line why the pod's spec has no such container to probe; "" if it
// has one.
func (p *pod) misnamed(name string) string {
	switch _, found, probed := p.container(name); {
	case p.Gone || probed:
		return ""
	case found:
		return fmt.Sprintf("container %q is an init container that ends: the agent does not probe it", name)
	default:
		return fmt.Sprintf("the pod has no container named %q", name)
	}
}

// instance returns what a kubelet's worker sees of a container (rules 4.4 to 4.9).
func (p *pod) instance(name string) gate.Instance {
	if p.Gone {
		return gate.Instance{Final: true, Deleting: true}
	}
	if p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded" {
		return gate.Instance{Final: true, Deleting: p.Metadata.DeletionTimestamp != nil}
	}
	s := p.status(name)
	if s == nil {
		return gate.Instance{}
	}
	inst := gate.Instance{ID: s.ContainerID, Phase: gate.Waiting, Deleting: p.Metadata.DeletionTimestamp != nil}
	switch last := s.LastState.Terminated; {
	case s.State.Running != nil:
		inst.Phase, inst.StartedAt = gate.Running, s.State.Running.StartedAt
	case s.State.Terminated != nil:
		inst.Phase, inst.StartedAt = gate.Terminated, s.State.Terminated.StartedAt
		inst.Final = !p.restarts(name, s.State.Terminated.ExitCode)
	case last != nil && last.ContainerID == s.ContainerID:
		inst.StartedAt = last.StartedAt
	}
	inst.StartedAt = inst.StartedAt.UTC() // one moment, one value
	return inst
}

// details returns what else the pod says of a container.
func (p *pod) details(name string) instance.Details {
	d := instance.Details{Message: p.misnamed(name)}
	s := p.anyStatus(name)
	if s == nil {
		return d
	}
	if w := s.State.Waiting; w != nil && d.Message == "" {
		d.Message = w.Reason
	}
	end := s.State.Terminated
	if end == nil {
		end = s.LastState.Terminated
	}
	if end != nil {
		code := end.ExitCode
		d.ExitCode, d.OOMKilled = &code, end.Reason == "OOMKilled"
	}
	return d
}

// anyStatus is status for the reader of a page. It includes a container that has never run,
// which has no ID but may have a reason.
func (p *pod) anyStatus(name string) *kubernetes.ContainerStatus {
	if s := p.status(name); s != nil {
		return s
	}
	for _, list := range [...][]kubernetes.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		if i := slices.IndexFunc(list, func(s kubernetes.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// restarts reports whether a container that ended with code will be restarted (rule 4.8): by
// its restart rules, by its own or the pod's policy, or because the end of some container
// restarts all of them.
func (p *pod) restarts(name string, code int) bool {
	c, _, _ := p.container(name)
	return c.restarts(code, p.Spec.RestartPolicy) || p.restartsAll()
}

// restartsAll reports whether all containers of the pod are about to be restarted.
func (p *pod) restartsAll() bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == "AllContainersRestarting" && cond.Status == "True" {
			return true
		}
	}
	for _, list := range [...][]kubernetes.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for _, s := range list {
			if s.State.Terminated == nil {
				continue
			}
			if c, _, _ := p.container(s.Name); c.rule(s.State.Terminated.ExitCode) == restartAll {
				return true
			}
		}
	}
	return false
}

func (c container) restarts(code int, podPolicy string) bool {
	if action := c.rule(code); c.RestartPolicy != "" && (action == "Restart" || action == restartAll) {
		return true
	}
	for _, policy := range [...]string{c.RestartPolicy, podPolicy} {
		switch policy {
		case "Always":
			return true
		case "OnFailure":
			return code != 0
		case "Never":
			return false
		}
	}
	return true
}

// rule returns the action of the first restart rule that matches an exit code.
func (c container) rule(code int) string {
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		switch has := slices.Contains(r.ExitCodes.Values, code); r.ExitCodes.Operator {
		case "In":
			if has {
				return r.Action
			}
		case "NotIn":
			if !has {
				return r.Action
			}
		}
	}
	return ""
}
