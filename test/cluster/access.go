// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.options.Name }

// Dir returns the folder with the cluster's data and logs.
func (c *Cluster) Dir() string { return c.layout.dir }

// DataDir is the folder of etcd's data. See Options.Data.
func (c *Cluster) DataDir() string { return c.layout.etcdData() }

// RESTConfig returns the administrator's configuration, without a rate limit.
// The caller may change it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns a client of the administrator's, without a rate limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig(adminCert) }

// LogFile returns the path of a component's log.
func (c *Cluster) LogFile(part Component) string { return c.layout.log(part) }

// State returns what other processes can read of the cluster.
func (c *Cluster) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Name: c.options.Name, Dir: c.layout.dir, Owner: os.Getpid(), Started: c.started,
		Keep: c.options.Keep, Kubeconfig: c.Kubeconfig(), Kubectl: c.KubectlPath}
	for _, part := range Components() {
		if p := c.running[part]; p != nil {
			s.Parts = append(s.Parts, Part{Component: part, PID: p.cmd.Process.Pid,
				HealthURL: c.ports.healthURL(part), Log: p.log})
		}
	}
	return s
}

func (c *Cluster) writeState() error { return c.State().write() }

// defaultAccount returns nil once the controllers have made the account that every
// pod needs.
func (c *Cluster) defaultAccount(ctx context.Context) error {
	_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}
