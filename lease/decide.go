// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// action is what is owed to a lease before its node may be worked on.
type action int

const (
	create action = iota // there is none
	keep                 // ours, and fresh
	renew                // ours, and a third of its duration is over, or it is not as we write it and we have not said so twice
	take                 // nobody's: run out, or without what a valid lease has
	wait                 // somebody else's, and valid
)

// decide says what to do about l, nil if there is none, for want, the lease as we would write it. Said is what we
// wrote twice, nil if we did not: whoever says otherwise since, another manager of our holder or a webhook, is not
// argued with before either is due, for he would answer at once.
func decide(l, want, said *coordinationv1.Lease, now time.Time) action {
	switch {
	case l == nil:
		return create
	case holderOf(l) == holderOf(want):
		if fresh(l, want, now) || fresh(said, want, now) && now.Before(renewAt(l)) {
			return keep
		}
		return renew
	case holderOf(l) == "" || !now.Before(expiry(l)):
		return take
	default:
		return wait
	}
}

// fresh says whether l is as want, and a third of its duration not over.
func fresh(l, want *coordinationv1.Lease, now time.Time) bool {
	return l != nil && now.Before(renewAt(l)) && as(l, want)
}

// as says whether l has the duration and the owner of want.
func as(l, want *coordinationv1.Lease) bool {
	return ptr.Equal(l.Spec.LeaseDurationSeconds, want.Spec.LeaseDurationSeconds) &&
		equality.Semantic.DeepEqual(l.OwnerReferences, want.OwnerReferences)
}

// written returns l as it is after a, an action that writes: a copy of l, or want if there is none.
func written(l, want *coordinationv1.Lease, a action, now time.Time) *coordinationv1.Lease {
	stamp := metav1.NewMicroTime(now)
	if a == create {
		out := want.DeepCopy()
		out.Spec.AcquireTime, out.Spec.RenewTime, out.Spec.LeaseTransitions = &stamp, &stamp, ptr.To[int32](0)
		return out
	}
	out := l.DeepCopy()
	out.OwnerReferences = want.OwnerReferences
	out.Spec.HolderIdentity = want.Spec.HolderIdentity
	out.Spec.LeaseDurationSeconds = want.Spec.LeaseDurationSeconds
	out.Spec.RenewTime = &stamp
	if a == take {
		out.Spec.AcquireTime = &stamp
		if n := ptr.Deref(l.Spec.LeaseTransitions, 0); n < math.MaxInt32 { // one more would be a lease that no API server takes
			out.Spec.LeaseTransitions = ptr.To(n + 1)
		}
	}
	return out
}

func holderOf(l *coordinationv1.Lease) string { return ptr.Deref(l.Spec.HolderIdentity, "") }

// expiry returns when l runs out; the zero time, long past, if it lacks what says so.
func expiry(l *coordinationv1.Lease) time.Time { return after(l, 1) }

// renewAt returns when a third of the duration of l is over.
func renewAt(l *coordinationv1.Lease) time.Time { return after(l, 3) }

// after returns the renewTime of l plus its duration divided by part.
func after(l *coordinationv1.Lease, part time.Duration) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second / part)
}
