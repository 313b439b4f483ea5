// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodemaint/nodemaint/test/invariant"
)

func TestThePodNamesItsNode(t *testing.T) {
	n := Node{Name: "some-node-3", Pods: 2}
	require.Equal(t, n.Name, nodeOf(Namespace, podOf(n, 1).Name))
	require.NotEqual(t, podOf(n, 0).Name, podOf(n, 1).Name)
	require.Equal(t, n.Name, podOf(n, 0).Spec.NodeName)
}

func TestTouch(t *testing.T) {
	before := invariant.Look{Taints: []string{"z=1:NoSchedule"}, Labels: map[string]string{"l": "v"}}
	once := touch(before.Clone(), "one")
	twice := touch(once.Clone(), "two")
	require.Equal(t, invariant.Look{
		Taints: []string{touched + "=two:NoSchedule", "z=1:NoSchedule"}, Labels: map[string]string{"l": "v", touched: "two"},
	}, twice)
	require.Equal(t, "one", once.Labels[touched])
	require.Len(t, before.Labels, 1)
}

func TestCredentialOf(t *testing.T) {
	// {"jti":"an-id"} between a header and a signature
	got, err := credentialOf("aGVhZA.eyJqdGkiOiJhbi1pZCJ9.c2lnbmVk")
	require.NoError(t, err)
	require.Equal(t, "JTI=an-id", got)
	for _, bad := range []string{"", "a.b", "aGVhZA.%.c2lnbmVk", "aGVhZA.e30.c2lnbmVk"} {
		_, err := credentialOf(bad)
		require.ErrorIs(t, err, errNoToken, bad)
	}
}

func TestTheSameSeedDecidesTheSame(t *testing.T) {
	one, again, other := &Stage{Options: Options{Seed: 1}}, &Stage{Options: Options{Seed: 1}}, &Stage{Options: Options{Seed: 2}}
	first := one.Random("n").Uint64()
	require.Equal(t, first, again.Random("n").Uint64())
	require.NotEqual(t, first, one.Random("m").Uint64())
	require.NotEqual(t, first, other.Random("n").Uint64())
}
