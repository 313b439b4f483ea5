// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strconv"
)

// serviceIPs is the range of cluster IPs. Nothing routes them.
const serviceIPs = "10.0.0.0/24"

// podIPs is the range that kwok takes pod addresses from.
const podIPs = "10.64.0.1/10"

// nodeIP is the address of every node, from a range kept for documentation.
const nodeIP = "192.0.2.1"

// args returns the command line of a component.
func (l layout) args(c Component, p ports, o Options) []string {
	var out []string
	switch c {
	case Etcd:
		out = l.etcdArgs(p)
	case APIServer:
		out = append(l.apiServerArgs(p), verbosity(o))
	case ControllerManager:
		out = append(l.controllerManagerArgs(p), verbosity(o))
	case Scheduler:
		out = append(l.schedulerArgs(p), verbosity(o))
	case Kwok:
		out = append(l.kwokArgs(p), verbosity(o))
	}
	return append(out, o.ExtraFlags[c]...)
}

func verbosity(o Options) string { return "--v=" + strconv.Itoa(o.Verbosity) }

func (l layout) etcdArgs(p ports) []string {
	client, peer := url(p.etcd), url(p.etcdPeer)
	return []string{
		"--name=default",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + l.pki().ca(),
		"--cert-file=" + l.pki().cert(servingCert), "--key-file=" + l.pki().key(servingCert),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + l.pki().ca(),
		"--peer-cert-file=" + l.pki().cert(servingCert), "--peer-key-file=" + l.pki().key(servingCert),
		"--unsafe-no-fsync", // a test cluster's data is not worth waiting for a disk
		"--log-level=warn",
	}
}

func (l layout) apiServerArgs(p ports) []string {
	pki := l.pki()
	return []string{
		"--bind-address=" + host, "--secure-port=" + strconv.Itoa(p.apiServer),
		// Endpoints of the kubernetes Service may not be loopback addresses, so nobody
		// keeps them; nothing would route to them anyway.
		"--advertise-address=" + host, "--endpoint-reconciler-type=none",
		"--etcd-servers=" + url(p.etcd), "--etcd-cafile=" + pki.ca(),
		"--etcd-certfile=" + pki.cert(etcdCert), "--etcd-keyfile=" + pki.key(etcdCert),
		"--tls-cert-file=" + pki.cert(servingCert), "--tls-private-key-file=" + pki.key(servingCert),
		"--client-ca-file=" + pki.ca(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki.serviceAccountPub(),
		"--service-account-signing-key-file=" + pki.serviceAccountKey(),
		"--service-cluster-ip-range=" + serviceIPs,
		"--allow-privileged=true",
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.auditLog(),
		"--audit-log-maxsize=0", // one file, so that a reader misses nothing
	}
}

func (l layout) controllerManagerArgs(p ports) []string {
	return append(l.controlArgs(ControllerManager, p.controllerManager),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+l.pki().serviceAccountKey(),
		"--root-ca-file="+l.pki().ca(),
		"--flex-volume-plugin-dir="+l.path("flex-volumes"),
	)
}

func (l layout) schedulerArgs(p ports) []string {
	return l.controlArgs(Scheduler, p.scheduler)
}

// controlArgs are the flags that controller manager and scheduler share. There is
// one of each, so electing a leader would only cost time. The limits on their own
// requests are raised: at 20 a second the controller manager needs five seconds for
// the tokens of its controllers alone. No period or delay is changed.
func (l layout) controlArgs(c Component, port int) []string {
	config := l.kubeconfig(string(c))
	return []string{
		"--bind-address=" + host, "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.pki().cert(servingCert), "--tls-private-key-file=" + l.pki().key(servingCert),
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--client-ca-file=" + l.pki().ca(),
		"--leader-elect=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

func (l layout) kwokArgs(p ports) []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(string(Kwok)),
		"--config=" + l.stages(),
		"--manage-nodes-with-annotation-selector=" + NodeAnnotation + "=" + NodeAnnotationValue,
		"--node-lease-duration-seconds=40", // as a kubelet's
		"--cidr=" + podIPs, "--node-ip=" + nodeIP,
		"--node-port=0",
		fmt.Sprintf("--server-address=%s:%d", host, p.kwok),
		"--tls-cert-file=" + l.pki().cert(servingCert), "--tls-private-key-file=" + l.pki().key(servingCert),
	}
}
