// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job on a real control plane: a full node is taken out of service under the
// eyes of budgets, one of which blocks at first, and given back as it was.
//
// With KEEP=1, or anything else, in the environment the cluster and the operator stay up until Ctrl-C.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/program"
)

func main() {
	program.Main("demo", func(ctx context.Context, _ []string) error { return run(ctx, os.Getenv("KEEP") != "") })
}

func run(ctx context.Context, keep bool) error {
	dir, err := os.MkdirTemp("", "nodemaint-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	title("A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler; kwok plays the kubelets")
	c, err := cluster.Start(ctx, cluster.Options{Out: os.Stdout})
	if err != nil {
		return err
	}
	defer c.Stop() // its processes end with this one in any case
	if _, err := c.AddNodes(ctx, 6, cluster.NodeOptions{}); err != nil {
		return err
	}

	title("The operator: CRD, rights and webhook from operator/config/default; its process under its own service account")
	operator, installed, err := startOperator(ctx, c, dir)
	if err != nil {
		return err
	}
	defer operator.Kill()

	s := &story{Installation: installed, out: os.Stdout}
	if err := s.tell(ctx); err != nil {
		return fmt.Errorf("%w (log of the operator: %s)", err, keepLog(operator.Log))
	}
	if keep {
		waitForEnd(ctx, c, operator.Log)
	}
	return nil
}

func startOperator(ctx context.Context, c *cluster.Cluster, dir string) (*deploy.Process, *deploy.Installation, error) {
	program, err := deploy.Build(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	installed, err := deploy.Install(ctx, c, deploy.Options{})
	if err != nil {
		return nil, nil, err
	}
	p, err := installed.Run(ctx, deploy.RunOptions{Program: program, Log: filepath.Join(dir, "operator.log")})
	if err != nil {
		return nil, nil, err
	}
	return p, installed, p.Ready(ctx)
}

func waitForEnd(ctx context.Context, c *cluster.Cluster, log string) {
	title("The cluster and the operator stay up until Ctrl-C. In another terminal:")
	fmt.Printf("  export KUBECONFIG=%s\n  alias kubectl=%s\n", c.Kubeconfig(), c.KubectlPath)
	fmt.Print("  kubectl get nodes\n  kubectl create -f - <<'END'\n", object("node-2"), "END\n  kubectl get nm -o wide --watch\n")
	fmt.Printf("The operator runs as a process of this machine; its log is %s\n", log)
	<-ctx.Done()
	fmt.Println("Ending the operator and the cluster.")
}

// keepLog copies the operator's log to where it outlives the demo, and says where.
func keepLog(path string) string {
	kept := filepath.Join(os.TempDir(), "nodemaint-demo-operator.log")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(kept, text, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	return kept
}

func title(text string) { fmt.Printf("\n== %s\n", text) }
