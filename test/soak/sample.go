// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodemaint/nodemaint/test/faults/kit"
)

// when says at which moment a sample was taken.
type when string

const (
	busy  when = "busy"
	quiet when = "quiet" // no NodeMaintenance is there
)

// sample is what the operator used at one moment.
type sample struct {
	when    when
	at      time.Duration // since the beginning
	process int           // the how manieth, from 1
	ended   int64         // maintenances so far

	memory     float64 // bytes resident, as the kernel counts them for the process
	goroutines float64 // as the operator's metrics say
	watches    float64 // open at the API server, of all its clients
}

// String says all of it in one line.
func (s sample) String() string {
	return fmt.Sprintf("%s: process %d, %d maintenances ended, %.1f MiB, %.0f goroutines, %.0f watches",
		s.when, s.process, s.ended, s.memory/(1<<20), s.goroutines, s.watches)
}

// gauge takes samples.
type gauge struct {
	apiServer rest.Interface
	url       string // of the operator's metrics
	token     string
}

// reader is the service account that reads the operator's metrics.
const reader = "metrics-reader"

// newGauge gives somebody the right to read the metrics, which are served at that port.
func newGauge(ctx context.Context, s *kit.Stage, port int) (*gauge, error) {
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kit.Namespace, Name: reader}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "soak-" + reader},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "node-maintenance-operator-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: kit.Namespace, Name: reader}},
		},
	} {
		if err := s.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("allowing to read the operator's metrics: %w", err)
		}
	}
	path, err := s.Cluster.ServiceAccountKubeconfig(ctx, kit.Namespace, reader)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &gauge{s.Cluster.Client().CoreV1().RESTClient(), fmt.Sprintf("https://127.0.0.1:%d/metrics", port), config.BearerToken}, nil
}

// read takes a sample of that process.
func (g *gauge) read(ctx context.Context, pid int) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var s sample
	var err error
	if s.memory, err = resident(pid); err != nil {
		return s, err
	}
	text, err := g.ofOperator(ctx)
	if err != nil {
		return s, err
	}
	if s.goroutines, err = sum(text, "go_goroutines", nil); err != nil {
		return s, err
	}
	if text, err = g.apiServer.Get().AbsPath("/metrics").DoRaw(ctx); err != nil {
		return s, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	s.watches, err = sum(text, "apiserver_longrunning_requests", map[string]string{"verb": "WATCH"})
	return s, err
}

func resident(pid int) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, err
	}
	return float64(status.VmRSS), nil
}

func (g *gauge) ofOperator(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	// A connection that is kept would be among what is counted.
	once := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it serves a certificate of its own
	}}
	res, err := once.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the operator: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s", errMetrics, res.Status)
	}
	return text, err
}

var (
	errMetrics  = errors.New("the operator does not show its metrics")
	errNoMetric = errors.New("there is no such metric")
)

// sum returns the sum of a gauge over all its labels, of those with the given ones.
func sum(text []byte, name string, labels map[string]string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("reading metric %s: %w", name, err)
	}
	out, seen := 0.0, false
	for _, m := range families[name].GetMetric() {
		matches := 0
		for _, l := range m.GetLabel() {
			if v, ok := labels[l.GetName()]; ok && v == l.GetValue() {
				matches++
			}
		}
		if matches == len(labels) {
			out += m.GetGauge().GetValue()
			seen = true
		}
	}
	if !seen {
		return 0, fmt.Errorf("%w: %s", errNoMetric, name)
	}
	return out, nil
}
