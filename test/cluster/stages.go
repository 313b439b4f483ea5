// SPDX-License-Identifier: Apache-2.0

package cluster

import _ "embed" // for the stages

// Annotations on a pod that say what becomes of it. They may be set at once or later.
const (
	// PodPhaseAnnotation keeps a pod Pending ("Pending"), or lets it end as soon as
	// it runs ("Succeeded" or "Failed").
	PodPhaseAnnotation = "nodemaint.test/phase"
	// ReadyAnnotation, with the value "false", makes a running pod, or a node, not ready.
	ReadyAnnotation = "nodemaint.test/ready"
	// GoneAfterAnnotation is how long a deleted pod takes to go: a Go duration such as
	// "300ms", or "never". Without it, or with nonsense, it takes its whole grace period.
	GoneAfterAnnotation = "nodemaint.test/gone-after"
)

//go:embed stages.yaml
var stages string

// Stages returns the kwok configuration that says how nodes and pods behave.
func Stages() string { return stages }

// kwokOptions let kwok, which stands for all kubelets, do as much at once as these would. With its own four workers
// the pods of a large drain take far longer to go than their stages say.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 64
  nodePlayStageParallelism: 16
  nodeLeaseParallelism: 16
---
`
