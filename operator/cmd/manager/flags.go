// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/nodemaint/nodemaint/operator"
	"github.com/nodemaint/nodemaint/operator/certs"
)

// flags are what the command line says.
type flags struct {
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	http2          bool

	webhooks       bool
	webhookPort    int
	webhookCertDir string

	maxConcurrentReconciles int

	zap zap.Options
}

// newFlagSet returns the flags with their defaults.
func newFlagSet(f *flags) *flag.FlagSet {
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and usage are printed by main
	fs.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443",
		"The `address` at which metrics are served, by HTTPS, to clients that authenticate and may read them. 0 serves none.")
	fs.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081",
		"The `address` of /healthz and /readyz. 0 serves neither.")
	fs.BoolVar(&f.leaderElect, "leader-elect", false,
		"Work only while elected among the replicas.")
	fs.BoolVar(&f.http2, "enable-http2", false,
		"Offer HTTP/2 for metrics and webhook.")
	fs.BoolVar(&f.webhooks, "enable-webhooks", true,
		"Serve the validating webhook.")
	fs.IntVar(&f.webhookPort, "webhook-port", 9443,
		"The `port` at which the webhook is served.")
	fs.StringVar(&f.webhookCertDir, "webhook-cert-dir", "",
		"The `folder` with tls.crt and tls.key for the webhook; if not given, k8s-webhook-server/serving-certs below that for temporary files if it holds a tls.crt. Without one the certificate is made, renewed and made known by the operator.")
	fs.IntVar(&f.maxConcurrentReconciles, "max-concurrent-reconciles", operator.DefaultMaxConcurrentReconciles,
		"How many NodeMaintenances are worked on at once.")
	f.zap.BindFlags(fs)
	config.RegisterFlags(fs)
	return fs
}

// parseFlags reads the command line. The error is flag.ErrHelp if it asks for help, and otherwise names
// each flag that makes no sense.
func parseFlags(args []string) (*flags, error) {
	f := &flags{}
	fs := newFlagSet(f)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag, and there are no other arguments", fs.Arg(0))
	}
	return f, errors.Join(f.validate(), f.discreet(fs))
}

// discreet bounds how much is logged. One level further, client-go would log whole requests and answers, and
// in them the private key of the webhook's certificate.
func (f *flags) discreet(fs *flag.FlagSet) error {
	if f.zap.Level == nil || !f.zap.Level.Enabled(-8) {
		return nil
	}
	return fs.Set("zap-log-level", "7")
}

func (f *flags) validate() error {
	errs := []error{
		checkAddress("metrics-bind-address", f.metricsAddress),
		checkAddress("health-probe-bind-address", f.probeAddress),
	}
	if f.webhookPort < 1 || f.webhookPort > 65535 {
		errs = append(errs, fmt.Errorf("--webhook-port is %d: it must be from 1 to 65535", f.webhookPort))
	}
	if f.maxConcurrentReconciles < 1 {
		errs = append(errs, fmt.Errorf("--max-concurrent-reconciles is %d: it must be at least 1", f.maxConcurrentReconciles))
	}
	if f.webhookCertDir != "" {
		if _, err := certs.Folder(f.webhookCertDir, os.TempDir()); err != nil {
			errs = append(errs, fmt.Errorf("--webhook-cert-dir is %q: %w", f.webhookCertDir, err))
		}
	}
	return errors.Join(errs...)
}

// off is the address that switches a server off.
const off = "0"

func checkAddress(name, address string) error {
	if address == off {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--%s is %q: it must be host:port, :port, or 0 for none", name, address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("--%s is %q: the port must be from 0 to 65535", name, address)
	}
	return nil
}

// usage prints the flags with two dashes, as people type them.
func usage(w io.Writer) {
	fmt.Fprint(w, "The node maintenance operator takes nodes out of service, and gives them back, as NodeMaintenance objects ask for.\n\n",
		"Environment: LEASE_NAMESPACE, the namespace of the leases of nodes; OPERATOR_NAMESPACE, the operator's own; "+
			"POD_NAME, its pod, which leaves a node that it drains last.\n\nFlags:\n")
	newFlagSet(&flags{}).VisitAll(func(fl *flag.Flag) {
		kind, text := flag.UnquoteUsage(fl)
		fmt.Fprintf(w, "  --%s %s\n        %s", fl.Name, kind, text)
		if fl.DefValue != "" {
			fmt.Fprintf(w, " (default %s)", fl.DefValue)
		}
		fmt.Fprintln(w)
	})
}
