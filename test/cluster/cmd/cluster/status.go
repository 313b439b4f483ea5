// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodemaint/nodemaint/test/cluster"
)

func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the running clusters and how their parts are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := cluster.Running()
			if err != nil {
				return err
			}
			if len(all) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No cluster is running.")
			}
			for _, s := range all {
				if err := describe(cmd.Context(), cmd.OutOrStdout(), s, time.Now()); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func describe(ctx context.Context, out io.Writer, s cluster.State, now time.Time) error {
	health, err := s.Health(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: up for %s, owned by process %d\n", s.Name, now.Sub(s.Started).Round(time.Second), s.Owner)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  kubeconfig\t%s\n  kubectl\t%s\n  logs\t%s\n", s.Kubeconfig, s.Kubectl, logsOf(s))
	for _, p := range s.Parts {
		word := "ok"
		if err := health[p.Component]; err != nil {
			word = err.Error()
		}
		fmt.Fprintf(w, "  %s\t%s\n", p.Component, word)
	}
	return w.Flush()
}
