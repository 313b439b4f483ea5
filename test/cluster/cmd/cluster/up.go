// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// defaultName is the cluster that up, down and status mean if none is named.
const defaultName = "dev"

// upOptions are the flags of up.
type upOptions struct {
	name    string
	nodes   int
	detach  bool
	keep    bool
	readyFD int
}

func upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster; it runs until Ctrl-C, or with --detach until down",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.nodes < 0 {
				return fmt.Errorf("--nodes %d: must not be negative", o.nodes)
			}
			if o.detach {
				return detach(cmd.Context(), cmd.OutOrStdout(), o)
			}
			return foreground(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", defaultName, "name of the cluster")
	f.IntVar(&o.nodes, "nodes", 3, "how many nodes to add")
	f.BoolVar(&o.detach, "detach", false, "leave the cluster running in the background")
	f.BoolVar(&o.keep, "keep", false, "leave data and logs when the cluster ends")
	f.IntVar(&o.readyFD, "ready-fd", 0, "write to this file descriptor when up")
	_ = f.MarkHidden("ready-fd")
	return cmd
}

// foreground runs a cluster until ctx ends.
func foreground(ctx context.Context, out io.Writer, o upOptions) (err error) {
	keepFromChildren(o.readyFD)
	c, err := cluster.Start(ctx, cluster.Options{Name: o.name, Keep: o.keep, Out: os.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := c.Stop(); err == nil {
			err = stopErr
		}
	}()
	if _, err := c.AddNodes(ctx, o.nodes, cluster.NodeOptions{}); err != nil {
		return err
	}
	if o.readyFD > 0 {
		if err := sayReady(o.readyFD); err != nil {
			return err
		}
	} else {
		usage(out, c.State())
		fmt.Fprintln(os.Stderr, "Press Ctrl-C to end it.")
	}
	<-ctx.Done()
	fmt.Fprintf(os.Stderr, "Ending cluster %s.\n", c.Name())
	return nil
}

// usage prints what a shell needs to use the cluster: eval takes it as it is.
func usage(out io.Writer, s cluster.State) {
	fmt.Fprintf(out, "export KUBECONFIG=%q\n# kubectl: %s\n", s.Kubeconfig, s.Kubectl)
}
