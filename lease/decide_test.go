// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const hour = int32(3600)

func owner(uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: uid}
}

// of returns a lease of an hour, renewed at that time, owned by the node.
func of(holder string, renewed time.Time) *coordinationv1.Lease {
	stamp := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner("u1")}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(hour), RenewTime: &stamp},
	}
}

func edited(l *coordinationv1.Lease, f func(*coordinationv1.Lease)) *coordinationv1.Lease {
	f(l)
	return l
}

func TestDecide(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		reason string
		lease  *coordinationv1.Lease
		want   action
	}{
		{"absent", nil, create},
		{"ours, fresh", of("us", ago(time.Minute)), keep},
		{"ours, a moment before a third is over", of("us", ago(20*time.Minute-time.Microsecond)), keep},
		{"ours, a third is over", of("us", ago(20*time.Minute)), renew},
		{"ours, run out: nobody took it", of("us", ago(2*time.Hour)), renew},
		{"ours, without a renewTime", edited(of("us", now), func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }), renew},
		{"ours, of another duration", edited(of("us", now), func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](60) }), renew},
		{"ours, of the node that was there before", edited(of("us", now), func(l *coordinationv1.Lease) {
			l.OwnerReferences = []metav1.OwnerReference{owner("u0")}
		}), renew},
		{"ours, with two owners", edited(of("us", now), func(l *coordinationv1.Lease) {
			l.OwnerReferences = append(l.OwnerReferences, owner("u0"))
		}), renew},
		{"ours, without an owner", edited(of("us", now), func(l *coordinationv1.Lease) { l.OwnerReferences = nil }), renew},
		{"another's, valid", of("them", ago(time.Minute)), wait},
		{"another's, in its last moment", of("them", ago(time.Hour-time.Microsecond)), wait},
		{"another's, run out", of("them", ago(time.Hour)), take},
		{"another's clock is ahead", of("them", now.Add(time.Hour)), wait},
		{"another's, without a renewTime", edited(of("them", now), func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }), take},
		{"another's, without a duration", edited(of("them", now), func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }), take},
		{"nobody's", edited(of("", now), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }), take},
		{"a holder without a name", of("", now), take},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			require.Equal(t, tt.want, decide(tt.lease, of("us", time.Time{}), nil, now))
		})
	}
}

// TestDecideWhenOthersSayOtherwise meets a lease of ours that is not as we write it.
func TestDecideWhenOthersSayOtherwise(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	want := of("us", time.Time{})
	other := edited(of("us", now), func(l *coordinationv1.Lease) { l.OwnerReferences = []metav1.OwnerReference{owner("u0")} })
	for _, tt := range []struct {
		reason string
		age    time.Duration         // of its last renewal; it is valid for a minute
		said   *coordinationv1.Lease // an hour long
		want   action
	}{
		{"we have not written it yet", 0, nil, renew},
		{"we wrote it for the node that was there before", 0, other, renew},
		{"we wrote it as we want it", 0, of("us", now), keep},
		{"a moment before a third of what we wrote is over", 0, of("us", now.Add(-20*time.Minute+time.Microsecond)), keep},
		{"a third of what we wrote is over", 0, of("us", now.Add(-20*time.Minute)), renew},
		{"a moment before a third of what it says is over", 20*time.Second - time.Microsecond, of("us", now), keep},
		{"a third of what it says is over", 20 * time.Second, of("us", now), renew},
		{"it has run out", time.Minute, of("us", now), renew},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			l := edited(of("us", now.Add(-tt.age)), func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](60) })
			require.Equal(t, tt.want, decide(l, want, tt.said, now))
		})
	}
}

func TestWritten(t *testing.T) {
	before, now := time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	want := edited(of("us", time.Time{}), func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil })
	old := func(holder string, transitions *int32) *coordinationv1.Lease {
		return edited(of(holder, before), func(l *coordinationv1.Lease) {
			l.ResourceVersion, l.Labels = "7", map[string]string{"keep": "me"}
			l.OwnerReferences = []metav1.OwnerReference{owner("u0"), owner("u1")}
			l.Spec.AcquireTime, l.Spec.LeaseTransitions = l.Spec.RenewTime, transitions
		})
	}
	for _, tt := range []struct {
		reason      string
		lease       *coordinationv1.Lease
		action      action
		acquired    time.Time
		transitions *int32
	}{
		{"a new one begins now", nil, create, now, ptr.To[int32](0)},
		{"a renewal leaves acquireTime and transitions", old("us", ptr.To[int32](4)), renew, before, ptr.To[int32](4)},
		{"one taken over begins now and counts", old("them", ptr.To[int32](4)), take, now, ptr.To[int32](5)},
		{"one without a count counts from 0", old("them", nil), take, now, ptr.To[int32](1)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			before := tt.lease.DeepCopy()
			got := written(tt.lease, want, tt.action, now)
			require.Equal(t, "us", *got.Spec.HolderIdentity)
			require.Equal(t, now, got.Spec.RenewTime.Time)
			require.Equal(t, tt.acquired, got.Spec.AcquireTime.Time)
			require.Equal(t, tt.transitions, got.Spec.LeaseTransitions)
			require.Equal(t, hour, *got.Spec.LeaseDurationSeconds)
			require.Equal(t, []metav1.OwnerReference{owner("u1")}, got.OwnerReferences)
			require.Equal(t, before, tt.lease, "what was read is left alone")
			if tt.lease != nil {
				require.Equal(t, "7", got.ResourceVersion, "under optimistic lock")
				require.Equal(t, "me", got.Labels["keep"])
			}
		})
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "node-worker-1.example.com", Name("Worker-1.Example.com"))
	long := func(n int) string { return string(make([]byte, n)) }
	require.NoError(t, CheckName(long(248)))
	err := CheckName(long(249))
	require.ErrorIs(t, err, ErrNameTooLong)
	require.EqualError(t, err, "node name of 249 characters: lease name would be too long: 254 characters, at most 253 are allowed")
}
