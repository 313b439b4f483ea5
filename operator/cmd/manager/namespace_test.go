// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindNamespaces(t *testing.T) {
	pod := filepath.Join(t.TempDir(), "namespace")
	require.NoError(t, os.WriteFile(pod, []byte("in-pod\n"), 0o600))
	none := filepath.Join(t.TempDir(), "namespace")

	for _, tc := range []struct {
		reason  string
		env     map[string]string
		file    string
		want    namespaces
		wantErr string
	}{
		{reason: "nothing is said", file: none, want: namespaces{"medik8s-leases", "node-maintenance-operator-system"}},
		{reason: "in a pod", file: pod, want: namespaces{"medik8s-leases", "in-pod"}},
		{
			reason: "the environment goes before the pod", file: pod,
			env:  map[string]string{"OPERATOR_NAMESPACE": "mine", "LEASE_NAMESPACE": "theirs"},
			want: namespaces{"theirs", "mine"},
		},
		{
			reason: "an empty variable counts as not set", file: pod,
			env:  map[string]string{"OPERATOR_NAMESPACE": "", "LEASE_NAMESPACE": ""},
			want: namespaces{"medik8s-leases", "in-pod"},
		},
		{reason: "no namespace has such a name", file: none, env: map[string]string{"LEASE_NAMESPACE": "A b"}, wantErr: `LEASE_NAMESPACE: "A b" is not the name of a namespace`},
		{reason: "neither has this", file: none, env: map[string]string{"OPERATOR_NAMESPACE": "-"}, wantErr: `OPERATOR_NAMESPACE: "-"`},
		{reason: "the file cannot be read", file: t.TempDir(), wantErr: "reading the operator's namespace"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := findNamespaces(func(k string) string { return tc.env[k] }, tc.file)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
