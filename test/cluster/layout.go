// SPDX-License-Identifier: Apache-2.0

package cluster

import "path/filepath"

// layout knows where things lie in a cluster's folder.
type layout struct{ dir string }

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

func (l layout) pki() pki                      { return pki{l.path("pki")} }
func (l layout) etcdData() string              { return l.path("etcd") }
func (l layout) auditPolicy() string           { return l.path("audit-policy.yaml") }
func (l layout) auditLog() string              { return l.path("audit.log") }
func (l layout) stages() string                { return l.path("stages.yaml") }
func (l layout) log(c Component) string        { return l.path("logs", string(c)+".log") }
func (l layout) kubeconfig(name string) string { return l.path("kubeconfigs", name+".yaml") }
func (l layout) lock() string                  { return l.path("owner.lock") }
func (l layout) state() string                 { return l.path("state.json") }
func (l layout) failed() string                { return l.path("failed") }
