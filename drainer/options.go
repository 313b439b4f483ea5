// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/clock"
)

// Retry times of a pod that did not leave at once.
const (
	// RetryDelay is the time from a refused eviction to the next one of the same pod, or, behind a budget that allows
	// none, to the next one of all that wait for it.
	RetryDelay = 5 * time.Second
	// TangledDelay is the same for a pod that more than one budget selects: the API server refuses to
	// evict such a pod until one of them goes.
	TangledDelay = time.Minute
	// DefaultTimeout bounds one call to the Eviction API.
	DefaultTimeout = 30 * time.Second
	// DefaultMaxInFlight bounds the calls under way at once, over all nodes.
	DefaultMaxInFlight = 64
	// LastDelay is the time from the report that only Options.Last pods are left to their eviction.
	LastDelay = 2 * time.Second
	// AnswerWait is how long a pass waits for the answers to its calls.
	AnswerWait = time.Second
	// NewsDelay is how long what only changes a report may wait: the numbers of a budget, one of several pods on its way.
	NewsDelay = time.Second
	// WatchedWait is AnswerWait for a node that is watched: a later answer wakes it.
	WatchedWait = 100 * time.Millisecond
)

// Options of a Drainer. The zero value drains everything kubectl can drain with all of its consents
// given, through evictions alone.
type Options struct {
	// KeepUnmanaged blocks pods that no controller would recreate (kubectl drain without --force).
	KeepUnmanaged bool
	// KeepEmptyDir blocks pods with emptyDir volumes (kubectl drain without --delete-emptydir-data).
	KeepEmptyDir bool
	// Filters are asked after kubectl's own; the first that refuses a pod decides.
	Filters []drain.PodFilter

	// Last picks pods that leave after all others, and only in a pass after one that reported them alone to
	// be left: an operator's own, so that it can store how far it is. Nil picks none. Of a pod it can rely on
	// metadata, but for annotations, and on spec.nodeName and status.phase.
	Last func(*corev1.Pod) bool

	// GracePeriod, if positive, replaces the pods' own; whole seconds, at least one. 0 means the pods' own.
	GracePeriod time.Duration
	// Timeout bounds one eviction call; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxInFlight bounds the eviction calls under way at once, of which one node may have half; 0 means
	// DefaultMaxInFlight.
	MaxInFlight int

	// DeleteAfter, if positive, deletes a pod that has not left this long after it was first asked to:
	// that breaks budgets. 0 means never.
	DeleteAfter time.Duration
	// DisableEviction deletes pods from the start, without asking for budgets.
	DisableEviction bool

	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Validate returns an error that names each option that makes no sense.
func (o Options) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"GracePeriod", o.GracePeriod}, {"Timeout", o.Timeout}, {"DeleteAfter", o.DeleteAfter}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("drainer option %s is %s: it must not be negative", d.name, d.value))
		}
	}
	if o.GracePeriod > 0 && o.GracePeriod < time.Second {
		errs = append(errs, fmt.Errorf("drainer option GracePeriod is %s: it must be at least 1s, or 0 for the pods' own", o.GracePeriod))
	}
	if o.MaxInFlight < 0 {
		errs = append(errs, fmt.Errorf("drainer option MaxInFlight is %d: it must not be negative", o.MaxInFlight))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.GracePeriod > 0 {
		o.GracePeriod = max(o.GracePeriod, time.Second)
	}
	if o.Last == nil {
		o.Last = func(*corev1.Pod) bool { return false }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}
