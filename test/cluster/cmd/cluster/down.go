// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func downCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End a cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := find(name)
			if err != nil {
				return err
			}
			if err := syscall.Kill(s.Owner, syscall.SIGTERM); err != nil {
				return fmt.Errorf("ending cluster %s: signalling process %d: %w", s.Name, s.Owner, err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 15*time.Second)
			defer cancel()
			if err := s.Ended(ctx); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Cluster %s has ended.\n", s.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", defaultName, "name of the cluster")
	return cmd
}
