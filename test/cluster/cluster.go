// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a running control plane. Its methods are safe for concurrent use.
type Cluster struct {
	// KubectlPath is a kubectl of the cluster's version.
	KubectlPath string

	layout   layout
	options  Options
	ports    ports
	config   *rest.Config
	client   kubernetes.Interface
	health   *healthClient
	owner    *lockFile
	launcher *launcher
	started  time.Time

	mu      sync.Mutex
	running map[Component]*process
	stopped bool
}

// attempts is how many sets of ports Start tries.
const attempts = 5

// Start brings a cluster up and returns when all of its parts answer and the
// service account default/default exists. ctx bounds the start only. An error
// names the part that failed and its log file, whose folder then stays a day.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if o.Binaries == (Binaries{}) {
		if o.Binaries, err = Build(ctx, BuildOptions{Out: o.Out}); err != nil {
			return nil, err
		}
	}
	l, owner, err := claimFolder(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{KubectlPath: o.Binaries.Kubectl, layout: l, options: o, owner: owner,
		launcher: newLauncher(), started: time.Now(), running: map[Component]*process{}}
	if c.options.Name == "" {
		c.options.Name = filepath.Base(l.dir)
	}
	if err := c.start(ctx); err != nil {
		return nil, c.giveUp(err)
	}
	return c, nil
}

// start makes what does not depend on ports, then tries ports until nobody else
// takes one in between.
func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.StartTimeout,
		fmt.Errorf("gave up after %s", c.options.StartTimeout))
	defer cancel()
	if err := c.prepare(); err != nil {
		return err
	}
	var err error
	for range attempts {
		if err = c.attempt(ctx); !portTaken(err) {
			break
		}
		fmt.Fprintln(c.options.Out, "A port was taken by another process; trying others.")
		c.stopParts()
		if err := os.RemoveAll(c.layout.etcdData()); err != nil {
			return fmt.Errorf("removing etcd's data before another try: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("starting cluster %s: %w", c.options.Name, err)
	}
	fmt.Fprintf(c.options.Out, "Cluster %s is up after %s.\n", c.options.Name,
		time.Since(c.started).Round(100*time.Millisecond))
	return c.writeState()
}

// prepare writes the files of a cluster that do not name a port.
func (c *Cluster) prepare() error {
	for _, dir := range []string{"logs", "kubeconfigs", "flex-volumes"} {
		if err := os.MkdirAll(c.layout.path(dir), 0o700); err != nil {
			return fmt.Errorf("making a folder of the cluster: %w", err)
		}
	}
	p, err := newPKI(c.layout.pki().dir, time.Now())
	if err != nil {
		return err
	}
	if c.health, err = newHealthClient(p); err != nil {
		return err
	}
	files := map[string]string{c.layout.stages(): kwokOptions + Stages(), c.layout.auditPolicy(): auditPolicy(c.options.AuditLevel)}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing a file of the cluster: %w", err)
		}
	}
	return nil
}

// attempt starts all parts on new ports and waits until they answer.
func (c *Cluster) attempt(ctx context.Context) error {
	var err error
	if c.ports, err = newPorts(c.options.pickPorts); err != nil {
		return err
	}
	if err := c.layout.writeKubeconfigs(c.ports); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.copyData(); err != nil {
		return err
	}
	if err := c.launch(Etcd, APIServer); err != nil {
		return err
	}
	if err := c.awaitPart(ctx, Etcd); err != nil {
		return err
	}
	if err := c.awaitPart(ctx, APIServer); err != nil {
		return err
	}
	if err := c.dropLeases(ctx); err != nil {
		return err
	}
	if err := c.launch(clients()...); err != nil {
		return err
	}
	for _, part := range clients() {
		if err := c.awaitPart(ctx, part); err != nil {
			return err
		}
	}
	return await(ctx, c.part(ControllerManager), c.defaultAccount)
}

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1 // tests wait for the cluster, not for their own client
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	c.config, c.client = config, client
	return nil
}

// launch starts parts without waiting for them.
func (c *Cluster) launch(parts ...Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	for _, part := range parts {
		if p := c.running[part]; p != nil && !p.exited() {
			return fmt.Errorf("starting %s: it runs already", part)
		}
		p, err := c.launcher.start(spec{component: part, program: c.options.Binaries.path(part),
			args: c.layout.args(part, c.ports, c.options), dir: c.layout.dir, log: c.layout.log(part)})
		if err != nil {
			return err
		}
		c.running[part] = p
	}
	return nil
}

var errStopped = errors.New("the cluster is stopped")

func (c *Cluster) part(part Component) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[part]
}

func (c *Cluster) awaitPart(ctx context.Context, part Component) error {
	return await(ctx, c.part(part), func(ctx context.Context) error {
		return c.health.check(ctx, c.ports.healthURL(part))
	})
}

// giveUp ends a start that failed and leaves the logs.
func (c *Cluster) giveUp(cause error) error {
	if err := os.WriteFile(c.layout.failed(), []byte(cause.Error()+"\n"), 0o600); err != nil {
		cause = errors.Join(cause, err)
	}
	c.options.Keep = true
	return errors.Join(cause, c.Stop())
}

// Stop ends all parts and removes the folder unless it was to be kept. It may be
// called more than once, and from several goroutines.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	err := c.stopAll()
	c.launcher.close()
	if !c.options.Keep {
		err = errors.Join(err, c.layout.remove())
	}
	c.owner.unlock()
	if err != nil {
		return fmt.Errorf("stopping cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func (c *Cluster) stopParts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stopAll()
}

// stopAll ends the API server's clients first, then it, then etcd, so that none
// writes into its log that another is gone. Nobody needs their goodbyes: patience
// is short.
func (c *Cluster) stopAll() error {
	var errs []error
	for _, group := range [][]Component{clients(), {APIServer}, {Etcd}} {
		var wg sync.WaitGroup
		failed := make([]error, len(group))
		for i, part := range group {
			p := c.running[part]
			if p == nil {
				continue
			}
			wg.Go(func() { failed[i] = p.stop(300 * time.Millisecond) })
			delete(c.running, part)
		}
		wg.Wait()
		errs = append(errs, failed...)
	}
	return errors.Join(errs...)
}
