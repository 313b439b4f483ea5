// SPDX-License-Identifier: Apache-2.0

package cluster

// Component names one process of a cluster.
type Component string

// The processes of a cluster, in the order in which they are started.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// kubectl is built beside the components, and is not one: it never runs for long.
const kubectl Component = "kubectl"

// Components returns the processes of a cluster in the order in which they are started.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// clients are the components that talk to the API server and need it first.
func clients() []Component {
	return []Component{ControllerManager, Scheduler, Kwok}
}

// packages maps each binary to the Go package it is built from.
func packages() []target {
	return []target{
		{Etcd, "go.etcd.io/etcd/server/v3"},
		{Kwok, "sigs.k8s.io/kwok/cmd/kwok"},
		{kubectl, "k8s.io/kubernetes/cmd/kubectl"},
		{APIServer, "k8s.io/kubernetes/cmd/kube-apiserver"},
		{Scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"},
		{ControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"},
	}
}

// target is one binary to build.
type target struct {
	name Component
	pkg  string
}
