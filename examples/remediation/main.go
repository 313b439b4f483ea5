// SPDX-License-Identifier: Apache-2.0

// Command remediation is another operator on the same packages: it repairs nodes that carry an annotation,
// under a lease holder of its own, without the NodeMaintenance resource.
package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "remediation:", err)
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to, set KUBECONFIG: %w", err)
	}
	config.QPS = -1 // the API server protects itself better than a client can
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := (&Repairer{Client: mgr.GetClient(), Maintenance: engine(kube)}).SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// engine maintains nodes for our holder.
func engine(kube kubernetes.Interface) *maintenance.Engine {
	return maintenance.New(kube, maintenance.Options{Lease: lease.NewManager(kube, holder, lease.Options{})})
}
