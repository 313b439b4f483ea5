// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// shared is the cluster that most tests use.
var shared *env

// program is the operator, built once.
var program string

// env is a cluster with the operator installed.
type env struct {
	*deploy.Installation
	client.Client // the administrator's
	operator      *deploy.Process
	dir           string
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the clients of the tests have nothing to say
	os.Exit(withShared(m.Run))
}

func withShared(run func() int) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "nodemaint-e2e-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	if program, err = deploy.Build(ctx, dir); err != nil {
		return fail(err)
	}
	e, err := bringUp(ctx, cluster.Options{Out: os.Stderr}, deploy.Options{}, dir)
	if err != nil {
		return fail(err)
	}
	defer e.Cluster.Stop()
	if err := e.run(ctx, deploy.RunOptions{}); err != nil {
		return fail(err)
	}
	defer e.operator.Kill()
	shared = e
	code := run()
	if code != 0 {
		keepLog(e.operator.Log)
		return code
	}
	if err := leastPrivilege(ctx, e); err != nil {
		fmt.Fprintf(os.Stderr, "the operator's rights are not those that it uses:\n%v\n", err)
		return 1
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "end-to-end tests cannot begin:", err)
	return 1
}

// keepLog shows where the operator's log went, in a file that outlives the test.
func keepLog(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	kept := filepath.Join(os.TempDir(), "nodemaint-e2e-operator.log")
	if os.WriteFile(kept, text, 0o600) == nil {
		fmt.Fprintln(os.Stderr, "log of the operator:", kept)
	}
}

// bringUp starts a cluster with the operator installed and not yet running.
func bringUp(ctx context.Context, o cluster.Options, d deploy.Options, dir string) (*env, error) {
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	i, err := deploy.Install(ctx, c, d)
	if err != nil {
		_ = c.Stop()
		return nil, err
	}
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: deploy.Scheme()})
	if err != nil {
		_ = c.Stop()
		return nil, err
	}
	return &env{Installation: i, Client: admin, dir: dir}, nil
}

// run starts the operator and waits until it is ready.
func (e *env) run(ctx context.Context, o deploy.RunOptions) error {
	o.Program, o.Log = program, filepath.Join(e.dir, "operator.log")
	p, err := e.Run(ctx, o)
	if err != nil {
		return err
	}
	e.operator = p
	return p.Ready(ctx)
}
