// SPDX-License-Identifier: Apache-2.0

// Command drain-minimal takes a node out of service with the library alone, prints each state, and gives the
// node back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodemaint/nodemaint/lease"
	"github.com/nodemaint/nodemaint/maintenance"
)

const usage = `usage: drain-minimal NODE        takes the node out of service
       drain-minimal stop NODE   gives it back
The cluster is that of $KUBECONFIG, else of ~/.kube/config.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "drain-minimal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) > 2 || (len(args) == 2 && args[0] != "stop") {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("name a node")
	}
	client, err := connect()
	if err != nil {
		return err
	}
	if len(args) == 2 {
		_, err := engine(client).Stop(ctx, args[1])
		return err
	}
	err = drain(ctx, engine(client), args[0], os.Stdout)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; what was done so far stays: drain-minimal stop %s gives the node back", args[0])
	}
	return err
}

// engine maintains nodes under a lease holder of its own, so that it keeps out of the operator's way.
func engine(client kubernetes.Interface) *maintenance.Engine {
	return maintenance.New(client, maintenance.Options{Lease: lease.NewManager(client, "drain-minimal", lease.Options{})})
}

// drain is all there is to it.
func drain(ctx context.Context, engine *maintenance.Engine, node string, out io.Writer) error {
	for state, err := range engine.Run(ctx, node) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %d%% pods left: %d %s\n", state.Phase, state.Progress.Percent(), state.Progress.Pending, state.Error)
		if state.Phase == maintenance.Succeeded {
			return nil
		}
	}
	return errors.New("given up")
}

func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to talk to, set KUBECONFIG: %w", err)
	}
	config.QPS = -1 // the default of 5 requests a second makes 300 evictions take a minute
	return kubernetes.NewForConfig(config)
}
