// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/cluster"
	"github.com/nodemaint/nodemaint/test/deploy"
)

// Namespace holds the pods that are to leave.
const Namespace = "trouble"

// Patience is how long anything may take that nothing stands in the way of. An eviction that broke off in the middle
// has charged its budget all the same, and Kubernetes takes that back after two minutes only.
const Patience = 3 * time.Minute

// Options say what stage is set up.
type Options struct {
	Binaries cluster.Binaries
	// Program is the operator's, as deploy.Build made it.
	Program string
	// Dir is a folder for logs and data, which does not exist yet and stays.
	Dir string
	// Flags are added to those of the operator that runs from the beginning.
	Flags []string
	// Seed decides what happens at random.
	Seed uint64
	// Say tells people what is being done. Required.
	Say func(format string, args ...any)
}

// Stage is a cluster with the operator installed, and one replica of it running.
type Stage struct {
	*deploy.Installation
	client.Client // the administrator's
	Options

	// Operator is the replica that runs from the beginning.
	Operator *Operator
	// Finished counts the maintenances that administrators have ended.
	Finished atomic.Int64

	looks     *looks
	operators []*Operator
	audit     func() ([]cluster.AuditEvent, error) // all of the log
}

// SetUp brings a cluster up and runs the operator on it.
func SetUp(ctx context.Context, o Options) (*Stage, error) {
	o.Say("bringing a cluster up")
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("setting a stage up: %w", err)
	}
	c, err := cluster.Start(ctx, cluster.Options{Binaries: o.Binaries, Dir: filepath.Join(o.Dir, "cluster")})
	if err != nil {
		return nil, err
	}
	s := &Stage{Options: o, looks: newLooks()}
	if err := s.furnish(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close(), c.Stop())
	}
	return s, nil
}

func (s *Stage) furnish(ctx context.Context, c *cluster.Cluster) error {
	var err error
	if s.Installation, err = deploy.Install(ctx, c, deploy.Options{}); err != nil {
		return err
	}
	s.audit = func() ([]cluster.AuditEvent, error) { return c.ReadAudit(cluster.AuditFilter{}) }
	if s.Client, err = client.New(c.RESTConfig(), client.Options{Scheme: deploy.Scheme()}); err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	if err := s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return fmt.Errorf("making namespace %s: %w", Namespace, err)
	}
	err = s.Until(ctx, "the service account of namespace "+Namespace, func(ctx context.Context) error {
		return s.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	if err != nil {
		return err
	}
	if s.Operator, err = s.NewOperator(ctx, "operator", s.Flags...); err != nil {
		return err
	}
	return s.Operator.Run(ctx)
}

// Close ends the operator and the cluster. What is in Dir stays.
func (s *Stage) Close() error {
	for _, o := range s.operators {
		o.close()
	}
	if s.Installation == nil {
		return nil
	}
	return s.Cluster.Stop()
}

// Until tries again until f returns no error, Patience at most. Errors: the last one of f, or that of ctx.
func (s *Stage) Until(ctx context.Context, what string, f func(context.Context) error) error {
	return until(ctx, 100*time.Millisecond, what, f)
}

func until(ctx context.Context, every time.Duration, what string, f func(context.Context) error) error {
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := once(ctx, f)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return fmt.Errorf("waited %s for %s: %w", Patience, what, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// once bounds one try: a connection may be dead without anybody having noticed.
func once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return f(ctx)
}
