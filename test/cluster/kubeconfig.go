// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs makes a kubeconfig for each component and for the administrator.
func (l layout) writeKubeconfigs(p ports) error {
	for _, id := range identities() {
		if id.file == etcdCert {
			continue
		}
		auth := &api.AuthInfo{ClientCertificate: l.pki().cert(id.file), ClientKey: l.pki().key(id.file)}
		if err := l.writeKubeconfig(id.file, id.user, p, auth); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig makes a kubeconfig that needs no other file, so that it can be
// copied away.
func (l layout) writeKubeconfig(name, user string, p ports, auth *api.AuthInfo) error {
	c := api.NewConfig()
	c.Clusters["cluster"] = &api.Cluster{Server: url(p.apiServer), CertificateAuthority: l.pki().ca()}
	c.AuthInfos[user] = auth
	c.Contexts["cluster"] = &api.Context{Cluster: "cluster", AuthInfo: user}
	c.CurrentContext = "cluster"
	if err := api.FlattenConfig(c); err != nil {
		return fmt.Errorf("writing kubeconfig of %s: %w", user, err)
	}
	path := l.kubeconfig(name)
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("writing kubeconfig of %s: %w", user, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("writing kubeconfig of %s: %w", user, err)
	}
	return nil
}
