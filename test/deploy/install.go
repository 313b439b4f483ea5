// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// Names in the operator's manifests.
const (
	Namespace      = "node-maintenance-operator-system"
	WebhookService = "node-maintenance-operator-webhook-service"
	WebhookConfig  = "node-maintenance-operator-validating-webhook-configuration"
	ServiceAccount = "node-maintenance-operator-controller-manager"
	// User is who the operator is for the API server.
	User = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Options say what is installed. The zero value is everything.
type Options struct {
	// Edit changes an object before it is applied, or leaves it out by returning false. Nil changes nothing.
	Edit func(*unstructured.Unstructured) bool
}

// Installation is the operator's objects on a cluster.
type Installation struct {
	Cluster *cluster.Cluster
	// WebhookPort is where the API server looks for the webhook on this machine.
	WebhookPort int
}

// Adopt returns the installation of a cluster that began with the operator's objects, the webhook's configuration
// apart: that names a port of another time.
func Adopt(c *cluster.Cluster) (*Installation, error) {
	port, err := FreePort()
	return &Installation{Cluster: c, WebhookPort: port}, err
}

// Install applies the operator's manifests to the cluster and returns when the API server serves its
// resource.
func Install(ctx context.Context, c *cluster.Cluster, o Options) (*Installation, error) {
	i, err := Adopt(c)
	if err != nil {
		return nil, err
	}
	objects, err := i.manifests(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := i.apply(ctx, objects); err != nil {
		return nil, err
	}
	_, err = i.Kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=30s", "crd/nodemaintenances.nodemaintenance.medik8s.io")
	return i, err
}

// Kubectl runs the cluster's kubectl as the administrator and returns what it prints.
func (i *Installation) Kubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, i.Cluster.KubectlPath, args...)
	cmd.Env = []string{"KUBECONFIG=" + i.Cluster.Kubeconfig(), "HOME=" + i.Cluster.Dir()}
	cmd.Stdin = in
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %v: %w: %s", args, err, words.String())
	}
	return out.String(), nil
}

// manifests returns the objects of operator/config/default, adapted to a machine without containers.
func (i *Installation) manifests(ctx context.Context, o Options) ([]*unstructured.Unstructured, error) {
	text, err := i.Kubectl(ctx, nil, "kustomize", filepath.Join(Root(), "operator", "config", "default"))
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the operator's manifests: %w", err)
		}
		u := &unstructured.Unstructured{}
		if err := sigsyaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, fmt.Errorf("reading the operator's manifests: %w", err)
		}
		if err := i.adapt(u); err != nil {
			return nil, err
		}
		if len(u.Object) > 0 && (o.Edit == nil || o.Edit(u)) {
			out = append(out, u)
		}
	}
}

// adapt changes what cannot work as it is without containers.
func (i *Installation) adapt(u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case "Deployment":
		return unstructured.SetNestedField(u.Object, int64(0), "spec", "replicas")
	case "Service":
		if u.GetName() != WebhookService {
			return nil
		}
		text, err := sigsyaml.Marshal(cluster.WebhookService(Namespace, WebhookService))
		if err != nil {
			return err
		}
		kind, version := u.GetKind(), u.GetAPIVersion()
		u.Object = nil
		if err := sigsyaml.Unmarshal(text, &u.Object); err != nil {
			return err
		}
		u.SetKind(kind)
		u.SetAPIVersion(version)
		return nil
	case "ValidatingWebhookConfiguration":
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if err := unstructured.SetNestedField(h.(map[string]any), int64(i.WebhookPort), "clientConfig", "service", "port"); err != nil {
				return err
			}
		}
		return unstructured.SetNestedSlice(u.Object, hooks, "webhooks")
	}
	return nil
}

func (i *Installation) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	var in bytes.Buffer
	for _, u := range objects {
		text, err := sigsyaml.Marshal(u.Object)
		if err != nil {
			return err
		}
		in.WriteString("---\n")
		in.Write(text)
	}
	_, err := i.Kubectl(ctx, &in, "apply", "--server-side", "-f", "-")
	return err
}

// Root returns the folder of the project's root module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// FreePort returns a port of the loopback that is free now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
