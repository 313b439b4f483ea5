// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// FuzzDecide meets any lease that an API server can have stored: a valid one of another's is never touched, and
// what is written is a lease that the API server takes and that needs no further write.
func FuzzDecide(f *testing.F) {
	const all = 0xff
	for _, holder := range []string{"us", "them", ""} {
		for _, age := range []int64{0, 1, 1200, 3599, 3600, 7200, -3600, math.MaxInt32, math.MinInt32} {
			f.Add(holder, int32(3600), age, int32(0), "u1", byte(all))
		}
		f.Add(holder, int32(math.MaxInt32), int64(math.MaxInt64), int32(math.MaxInt32), "u0", byte(all))
		f.Add(holder, int32(1), int64(math.MinInt64), int32(math.MaxInt32), "", byte(all))
		for has := range byte(16) {
			f.Add(holder, int32(60), int64(30), int32(7), "u1", has)
		}
	}
	f.Fuzz(func(t *testing.T, holder string, seconds int32, age int64, transitions int32, uid string, has byte) {
		if seconds < 1 || transitions < 0 {
			t.Skip("the API server stores no such lease")
		}
		now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: "node-n1", UID: "lease", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{owner(types.UID(uid))},
		}}
		if has&1 != 0 {
			l.Spec.HolderIdentity = &holder
		}
		if has&2 != 0 {
			l.Spec.LeaseDurationSeconds = &seconds
		}
		if has&4 != 0 { // RFC 3339 knows the years 0 to 9999
			l.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(now.Unix()-age%(150*366*24*3600), 0)}
		}
		if has&8 != 0 {
			l.Spec.LeaseTransitions = &transitions
		}
		want := of("us", now)
		want.Spec.RenewTime = nil
		before := l.DeepCopy()

		todo := decide(l, want, nil, now)

		again := decide(l, want, of("us", now), now)
		require.True(t, again == todo || again == keep && todo == renew && now.Before(renewAt(l)), "only what is fresh is left as others say")
		foreign := holderOf(l) != "us" && holderOf(l) != ""
		valid := l.Spec.RenewTime != nil && l.Spec.LeaseDurationSeconds != nil &&
			now.Before(l.Spec.RenewTime.Add(time.Duration(seconds)*time.Second))
		require.Equal(t, foreign && valid, todo == wait, "exactly another's valid lease is waited for")
		require.NotEqual(t, create, todo)
		if todo == keep || todo == wait {
			return
		}
		out := written(l, want, todo, now)
		require.Equal(t, before, l, "the lease that was read is left alone")
		require.Equal(t, before.ResourceVersion, out.ResourceVersion, "a write is under lock")
		require.Equal(t, before.Labels, out.Labels, "what is not ours to write is kept")
		require.Equal(t, keep, decide(out, want, nil, now), "one write is enough")
		require.GreaterOrEqual(t, ptr.Deref(out.Spec.LeaseTransitions, 0), int32(0), "the API server refuses such a lease")
		require.Equal(t, todo == take, ptr.Deref(out.Spec.AcquireTime, metav1.MicroTime{}).Time.Equal(now))
	})
}
