// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// ownerVariable makes the test binary start a cluster and wait for its end, so that
// a test can see what is left when an owner dies.
const ownerVariable = "NODEMAINT_TEST_CLUSTER_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		ownUntilKilled()
	}
	code := m.Run()
	if sharedStarted {
		if c, err := shared(); err == nil {
			if err := c.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// sharedStarted says whether any test has asked for the shared cluster.
var sharedStarted bool

// shared is the cluster that most tests look at, each in a namespace of its own.
var shared = sync.OnceValues(func() (*Cluster, error) {
	sharedStarted = true
	start := time.Now()
	c, err := Start(context.Background(), Options{Out: os.Stderr})
	if err != nil {
		return nil, err
	}
	_, err = c.AddNodes(context.Background(), 3, NodeOptions{})
	fmt.Fprintf(os.Stderr, "start with 3 nodes: %s\n", time.Since(start).Round(time.Millisecond))
	return c, err
})

// ownUntilKilled prints what runs and then does nothing: nothing here catches a signal.
func ownUntilKilled() {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.State()); err != nil {
		os.Exit(1)
	}
	select {}
}
