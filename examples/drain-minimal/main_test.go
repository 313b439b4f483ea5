// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestDrainPrintsEachStateUntilTheNodeIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{Termination: time.Second}, mt.Node("n1"),
			mt.Pod("shop", "web-0", "n1", mt.OfStatefulSet("web")), mt.Pod("shop", "web-1", "n1", mt.OfStatefulSet("web")))
		defer c.Close()
		defer synctest.Wait() // until the watches have ended
		var out bytes.Buffer

		require.NoError(t, drain(t.Context(), engine(c.Client()), "n1", &out))

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Contains(t, lines[0], "Running 0% pods left: 2")
		require.Contains(t, lines[len(lines)-1], "Succeeded 100% pods left: 0")
		require.Empty(t, c.PodsOn("n1"))
		require.True(t, c.Node("n1").Spec.Unschedulable)

		_, err := engine(c.Client()).Stop(t.Context(), "n1")
		require.NoError(t, err)
		require.False(t, c.Node("n1").Spec.Unschedulable, "another process gives it back")
	})
}

func TestDrainOfANodeThatDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mt.New(mt.Options{})
		defer c.Close()
		defer synctest.Wait() // until the watches have ended
		var out bytes.Buffer

		require.Error(t, drain(t.Context(), engine(c.Client()), "nowhere", &out))
		require.Contains(t, out.String(), `nodes "nowhere" not found`)
	})
}
