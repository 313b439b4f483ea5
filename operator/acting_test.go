// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func TestActs(t *testing.T) {
	object := func(name string, second int, edit ...func(*v1beta1.NodeMaintenance)) v1beta1.NodeMaintenance {
		nm := v1beta1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(second), 0))},
			Spec:       v1beta1.NodeMaintenanceSpec{NodeName: "n1"},
		}
		for _, f := range edit {
			f(&nm)
		}
		return nm
	}
	going := func(nm *v1beta1.NodeMaintenance) { nm.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }
	failed := func(nm *v1beta1.NodeMaintenance) { nm.Status.Phase = v1beta1.MaintenanceFailed }
	elsewhere := func(nm *v1beta1.NodeMaintenance) { nm.Spec.NodeName = "n2" }
	for _, row := range []struct {
		reason string
		all    []v1beta1.NodeMaintenance
		want   string
	}{
		{"none", nil, ""},
		{"one", []v1beta1.NodeMaintenance{object("a", 1)}, "a"},
		{"the earliest acts", []v1beta1.NodeMaintenance{object("a", 2), object("b", 1)}, "b"},
		{"of one second, the smaller name", []v1beta1.NodeMaintenance{object("b", 1), object("a", 1)}, "a"},
		{"one that is going does not act", []v1beta1.NodeMaintenance{object("a", 1, going), object("b", 2)}, "b"},
		{"one that failed does not act", []v1beta1.NodeMaintenance{object("a", 1, failed), object("b", 2)}, "b"},
		{"another node's does not count", []v1beta1.NodeMaintenance{object("a", 1, elsewhere), object("b", 2)}, "b"},
		{"nobody is left", []v1beta1.NodeMaintenance{object("a", 1, failed), object("b", 2, going)}, ""},
	} {
		t.Run(row.reason, func(t *testing.T) { require.Equal(t, row.want, acts(row.all, "n1")) })
	}
}

func TestChangesWhoActs(t *testing.T) {
	unseen := &v1beta1.NodeMaintenance{}
	known := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1beta1.Finalizer}}}
	going, failed := known.DeepCopy(), known.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	failed.Status.Phase = v1beta1.MaintenanceFailed
	p := changesWhoActs()
	require.True(t, p.Create(event.CreateEvent{Object: unseen}), "it may be the one to act")
	require.False(t, p.Create(event.CreateEvent{Object: known}), "a start of the operator is no news")
	require.True(t, p.Update(event.UpdateEvent{ObjectOld: known, ObjectNew: going}))
	require.True(t, p.Update(event.UpdateEvent{ObjectOld: known, ObjectNew: failed}))
	require.False(t, p.Update(event.UpdateEvent{ObjectOld: known, ObjectNew: known}))
	require.True(t, p.Delete(event.DeleteEvent{Object: known}))
}

func TestNotOnlyStatus(t *testing.T) {
	object := func(edit func(*v1beta1.NodeMaintenance)) *v1beta1.NodeMaintenance {
		nm := &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Generation: 1, Finalizers: []string{v1beta1.Finalizer}}}
		edit(nm)
		return nm
	}
	for _, row := range []struct {
		reason string
		edit   func(*v1beta1.NodeMaintenance)
		want   bool
	}{
		{"our own status", func(nm *v1beta1.NodeMaintenance) { nm.Status.Phase = v1beta1.MaintenanceRunning }, false},
		{"the spec", func(nm *v1beta1.NodeMaintenance) { nm.Generation = 2 }, true},
		{"it is going", func(nm *v1beta1.NodeMaintenance) { nm.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }, true},
		{"our finalizer was taken off", func(nm *v1beta1.NodeMaintenance) { nm.Finalizers = []string{"a/b"} }, true},
		{"another's finalizer came", func(nm *v1beta1.NodeMaintenance) { nm.Finalizers = append(nm.Finalizers, "a/b") }, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			was := object(func(*v1beta1.NodeMaintenance) {})
			require.Equal(t, row.want, notOnlyStatus().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: object(row.edit)}))
		})
	}
}
