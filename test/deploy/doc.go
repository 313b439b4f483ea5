// SPDX-License-Identifier: Apache-2.0

// Package deploy installs the operator on a test cluster from its own manifests and runs it there as a
// process of this machine, under its own service account: with the rights it has in production and no
// other. Tests, benchmarks and the demo use it.
//
// Three things differ from an installation on a cluster that runs containers: the Deployment has no
// replicas, the webhook's Service leads to this machine, and the webhook configuration names a free port.
package deploy
