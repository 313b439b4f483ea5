// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane as processes of this
// machine: etcd, kube-apiserver, kube-controller-manager and kube-scheduler,
// with kwok standing in for the kubelets. No container runtime is needed.
//
// What holds while a Cluster lives:
//
//   - Everything listens on 127.0.0.1, on ports picked at start, with TLS and
//     client certificates. Several clusters live side by side.
//   - RBAC, ServiceAccount admission and an audit log are on. Controllers run
//     with the timings that Kubernetes ships with.
//   - No process outlives its owner. Stop ends them in under two seconds; if the
//     owner is killed, the kernel kills them too (Linux). A folder that a killed
//     owner left is removed by the next Start.
//
// What does not hold:
//
//   - Nothing routes Services and no container runs: a pod is Running because
//     kwok says so. A webhook on this machine is reached through a Service of type
//     ExternalName "localhost"; see WebhookService.
//   - etcd does not sync to disk. A cluster is for tests and demonstrations.
//
// Build makes the binaries once, from Go modules, into the user's cache folder;
// Start builds them too if they are missing.
package cluster
