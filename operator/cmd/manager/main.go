// SPDX-License-Identifier: Apache-2.0

// Command manager is the node maintenance operator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Exit codes besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run())
}

func run() int {
	f, err := parseFlags(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(os.Stdout)
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %s\n--help lists the flags.\n", err)
		return exitUsage
	}
	if err := work(f); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", err)
		return exitFailed
	}
	return 0
}

// work finds out where to work, and works there until a signal ends it.
func work(f *flags) error {
	ns, err := findNamespaces(os.Getenv, inClusterFile)
	if err != nil {
		return err
	}
	c, err := connect() // before there is a logger: the library would log what is returned
	if err != nil {
		return err
	}
	log := zap.New(zap.UseFlagOptions(&f.zap))
	ctrl.SetLogger(log)
	klog.SetLogger(log) // client-go's own lines, in the same form
	return start(logr.NewContext(ctrl.SetupSignalHandler(), log.WithName("start")), c, f, ns)
}

// connect returns how to reach the cluster.
func connect() (*rest.Config, error) {
	c, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to work in: give --kubeconfig, set KUBECONFIG, or run in a pod: %w", err)
	}
	c.QPS = -1 // a drain makes a request a pod at once; the API server has its own fairness
	c.UserAgent = "node-maintenance-operator"
	c.WarningHandlerWithContext = ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{Deduplicate: true}) // of our finalizer's name, for one, at each object
	return c, nil
}
