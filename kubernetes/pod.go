// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "time"

// Pod is the part of a pod that the agent reads. Nobody modifies a Pod that a Follower has
// returned.
type Pod struct {
	Metadata struct {
		Name              string     `json:"name"`
		UID               string     `json:"uid"`
		ResourceVersion   string     `json:"resourceVersion"`
		DeletionTimestamp *time.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string      `json:"nodeName"`
		RestartPolicy  string      `json:"restartPolicy"`
		Containers     []Container `json:"containers"`
		InitContainers []Container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase                 string            `json:"phase"`
		Conditions            []PodCondition    `json:"conditions"`
		ContainerStatuses     []ContainerStatus `json:"containerStatuses"`
		InitContainerStatuses []ContainerStatus `json:"initContainerStatuses"`
	} `json:"status"`

	// Gone says that the pod has been deleted: no pod with this UID comes again.
	Gone bool `json:"-"`
}

// PodCondition is a condition of a pod. The zero time stands for none.
type PodCondition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False or Unknown
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Container is a container of a pod's spec. An init container with a restart policy of its
// own is a sidecar.
type Container struct {
	Name               string `json:"name"`
	RestartPolicy      string `json:"restartPolicy"`
	RestartPolicyRules []struct {
		Action    string `json:"action"`
		ExitCodes *struct {
			Operator string `json:"operator"`
			Values   []int  `json:"values"`
		} `json:"exitCodes"`
	} `json:"restartPolicyRules"`
}

// ContainerStatus is the status of a container.
type ContainerStatus struct {
	Name        string         `json:"name"`
	ContainerID string         `json:"containerID"`
	State       ContainerState `json:"state"`
	LastState   ContainerState `json:"lastState"`
}

// ContainerState is one of three states; none of them means waiting.
type ContainerState struct {
	Waiting *struct {
		Reason string `json:"reason"`
	} `json:"waiting"`
	Running *struct {
		StartedAt time.Time `json:"startedAt"`
	} `json:"running"`
	Terminated *Terminated `json:"terminated"`
}

// Terminated says how a container ended.
type Terminated struct {
	ContainerID string    `json:"containerID"`
	ExitCode    int       `json:"exitCode"`
	Reason      string    `json:"reason"`
	StartedAt   time.Time `json:"startedAt"`
}
