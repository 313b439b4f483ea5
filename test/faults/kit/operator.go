// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodemaint/nodemaint/test/deploy"
)

// Operator is one replica of the operator. It can be ended and started over and over, stays the same for the API
// server, and reaches it only through its proxy.
type Operator struct {
	// Process is the one that runs, or ran last.
	*deploy.Process
	// Proxy stands between it and the API server.
	Proxy *Proxy
	// Credential is what the audit log says of its requests.
	Credential string
	// Log is the file with its output, of all its processes.
	Log string

	stage  *Stage
	config string
	flags  []string
}

// NewOperator makes a replica with further flags, which does not run yet.
func (s *Stage) NewOperator(ctx context.Context, name string, flags ...string) (*Operator, error) {
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making replica %s: %w", name, err)
	}
	o := &Operator{stage: s, flags: flags, Log: filepath.Join(dir, "operator.log"), config: filepath.Join(dir, "kubeconfig")}
	own, err := s.Cluster.ServiceAccountKubeconfig(ctx, deploy.Namespace, deploy.ServiceAccount)
	if err != nil {
		return nil, err
	}
	if err := o.lead(own); err != nil {
		return nil, fmt.Errorf("making replica %s: %w", name, err)
	}
	s.operators = append(s.operators, o)
	return o, nil
}

// lead writes a kubeconfig that leads through a proxy, and notes the credential in it.
func (o *Operator) lead(kubeconfig string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	here := config.Contexts[config.CurrentContext]
	server, err := url.Parse(config.Clusters[here.Cluster].Server)
	if err != nil {
		return err
	}
	if o.Credential, err = credentialOf(config.AuthInfos[here.AuthInfo].Token); err != nil {
		return err
	}
	if o.Proxy, err = Listen(server.Host); err != nil {
		return err
	}
	config.Clusters[here.Cluster].Server = "https://" + o.Proxy.Addr()
	return clientcmd.WriteToFile(*config, o.config)
}

// credentialOf returns how the audit log names a token: by the id in it.
func credentialOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errNoToken
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoToken, err)
	}
	var claims struct{ JTI string }
	if err := json.Unmarshal(text, &claims); err != nil || claims.JTI == "" {
		return "", errNoToken
	}
	return "JTI=" + claims.JTI, nil
}

var errNoToken = errors.New("this is not the token of a service account")

// Start starts a process. It returns at once.
func (o *Operator) Start(ctx context.Context) error {
	p, err := o.stage.Run(ctx, deploy.RunOptions{Program: o.stage.Program, Log: o.Log, Kubeconfig: o.config, Flags: o.flags})
	if err != nil {
		return err
	}
	o.Process = p
	return nil
}

// Run starts a process and waits until it is ready.
func (o *Operator) Run(ctx context.Context) error {
	if err := o.Start(ctx); err != nil {
		return err
	}
	return o.Ready(ctx)
}

// Restart ends the process as a rollout would, and runs another.
func (o *Operator) Restart(ctx context.Context) error {
	if err := o.Stop(10 * time.Second); err != nil {
		return err
	}
	return o.Run(ctx)
}

// Running says whether there is a process.
func (o *Operator) Running() bool {
	if o.Process == nil {
		return false
	}
	select {
	case <-o.Ended():
		return false
	default:
		return true
	}
}

// Says tells whether its log contains the words.
func (o *Operator) Says(words string) (bool, error) {
	text, err := os.ReadFile(o.Log)
	if err != nil {
		return false, fmt.Errorf("reading the operator's log: %w", err)
	}
	return strings.Contains(string(text), words), nil
}

// close ends the process, frozen or not, and its proxy.
func (o *Operator) close() {
	if o.Process != nil {
		o.Kill()
	}
	o.Proxy.Close()
}
