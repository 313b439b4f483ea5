// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

func TestFreshest(t *testing.T) {
	at := func(uid, version string) *v1beta1.NodeMaintenance {
		return &v1beta1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid), ResourceVersion: version}}
	}
	type write struct{ before, after string }
	for _, row := range []struct {
		reason string
		writes []write
		cached *v1beta1.NodeMaintenance
		want   string
	}{
		{"nothing was written", nil, at("u", "1"), "1"},
		{"the cache lags behind one write", []write{{"1", "2"}}, at("u", "1"), "2"},
		{"the cache lags behind two", []write{{"1", "2"}, {"2", "3"}}, at("u", "1"), "3"},
		{"the cache shows the first of two", []write{{"1", "2"}, {"2", "3"}}, at("u", "2"), "3"},
		{"the cache has caught up", []write{{"1", "2"}}, at("u", "2"), "2"},
		{"somebody else wrote since", []write{{"1", "2"}}, at("u", "9"), "9"},
		{"another object of that name", []write{{"1", "2"}}, at("other", "1"), "1"},
		{"a write that changed nothing", []write{{"1", "1"}}, at("u", "1"), "1"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			w := newWritten()
			for _, x := range row.writes {
				w.put(x.before, at("u", x.after))
			}
			require.Equal(t, row.want, w.freshest(row.cached).ResourceVersion)
		})
	}
}
