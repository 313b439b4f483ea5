// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
)

// host is the only address that a cluster listens on.
const host = "127.0.0.1"

// ports are the TCP ports of a cluster.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler, kwok int
}

// freePorts asks the kernel for n free ports. All are held until the last is
// found, so that they differ; another process may still take one before its
// component does, which Start notices and repeats.
func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

func newPorts(pick func(int) ([]int, error)) (ports, error) {
	p, err := pick(6)
	if err != nil {
		return ports{}, err
	}
	return ports{etcd: p[0], etcdPeer: p[1], apiServer: p[2], controllerManager: p[3], scheduler: p[4], kwok: p[5]}, nil
}

func (p ports) of(c Component) int {
	return map[Component]int{Etcd: p.etcd, APIServer: p.apiServer, ControllerManager: p.controllerManager,
		Scheduler: p.scheduler, Kwok: p.kwok}[c]
}

func url(port int) string { return fmt.Sprintf("https://%s:%d", host, port) }

// healthURL is where a component says whether it is well.
func (p ports) healthURL(c Component) string {
	path := map[Component]string{Etcd: "/health", APIServer: "/readyz", ControllerManager: "/healthz",
		Scheduler: "/readyz", Kwok: "/readyz"}[c]
	return url(p.of(c)) + path
}
