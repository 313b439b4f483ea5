// SPDX-License-Identifier: Apache-2.0

// Command drain-minimal takes a node out of service with the library alone and prints each state.
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

	"github.com/nodemaint/nodemaint/maintenance"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drain-minimal NODE   (the cluster is that of $KUBECONFIG)")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := connect()
	if err == nil {
		err = drain(ctx, client, os.Args[1], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drain-minimal:", err)
		os.Exit(1)
	}
}

// drain is all there is to it.
func drain(ctx context.Context, client kubernetes.Interface, node string, out io.Writer) error {
	for state, err := range maintenance.New(client, maintenance.Options{}).Run(ctx, node) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %d%% %d pods left %s\n", state.Phase, state.Progress.Percent(), state.Progress.Pending, state.Error)
		if state.Phase == maintenance.Succeeded {
			return nil
		}
	}
	return errors.New("given up, or interrupted; what was done to the node stays recorded on it")
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
