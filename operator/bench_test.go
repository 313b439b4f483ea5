// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/maintenance"
)

// drainingMany is a drain of 500 pods, some of them blocked.
func drainingMany() maintenance.State {
	s := draining()
	s.Report = maintenance.Report{}
	for i := range 500 {
		p := maintenance.Pod{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Reason: "evicted"}
		if i%5 > 0 {
			s.Report.Leaving = append(s.Report.Leaving, p)
			continue
		}
		p.Reason, p.Budgets = "", []maintenance.Budget{{Name: "web", Healthy: 3, Desired: 3}}
		s.Report.Blocked = append(s.Report.Blocked, p)
	}
	s.Progress = maintenance.Progress{Recorded: true, Total: 500, Eviction: 500, Pending: 500}
	return s
}

func BenchmarkStatusOf500Pods(b *testing.B) {
	s, nm := drainingMany(), &v1beta1.NodeMaintenance{}
	nm.Status = statusOf(nm, s)
	b.ReportAllocs()
	for b.Loop() {
		if st := statusOf(nm, s); len(st.PendingPods) != 500 {
			b.Fatal("wrong")
		}
	}
}

func BenchmarkStateOf500Pods(b *testing.B) {
	nm := &v1beta1.NodeMaintenance{}
	nm.Status = stamped(statusOf(nm, drainingMany()), time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if s := stateOf(nm); len(s.Report.Deferred) != 500 {
			b.Fatal("wrong")
		}
	}
}

// BenchmarkEqualStatus500Pods is what decides that a status need not be written.
func BenchmarkEqualStatus500Pods(b *testing.B) {
	st := statusOf(&v1beta1.NodeMaintenance{}, drainingMany())
	stored := stamped(*st.DeepCopy(), time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if !equalStatus(stored, st) {
			b.Fatal("wrong")
		}
	}
}
