// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// collisions is how often a call tries with a pod that changes under it.
const collisions = 3

// evict makes one call for the pod: it evicts it, or deletes it if the options say so by now, as often as tries while
// the pod changes under it. If look is set the pod is read first, because an earlier call may have taken effect.
func (d *Drainer) evict(ctx context.Context, pod *corev1.Pod, asked time.Time, tries int, look bool) answer {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	var got answer
	for range tries {
		if look {
			var seen answer
			if pod, seen = d.look(ctx, pod); seen.kind != unasked {
				return seen
			}
		}
		if d.deletes(asked) {
			got = classify(d.postDelete(ctx, pod))
		} else {
			got = classify(d.postEviction(ctx, pod))
		}
		if got.kind != stale && got.kind != gone {
			return got
		}
		look = true // that the pod is gone, the pod itself says: a webhook may answer 404 too
	}
	if got.kind == gone {
		got.kind = refused
	}
	return got
}

// look reads the pod and tells whether it is gone or going already; if it is neither, the answer is
// unasked and the pod the fresh one.
func (d *Drainer) look(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, answer) {
	fresh, err := d.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return pod, answer{kind: gone}
	case err != nil:
		return pod, answer{kind: unanswered, words: fmt.Sprintf("getting the pod: %v", err)}
	case fresh.UID != pod.UID || fresh.Spec.NodeName != pod.Spec.NodeName:
		return pod, answer{kind: gone}
	case fresh.DeletionTimestamp != nil:
		return pod, answer{kind: accepted}
	default:
		return fresh, answer{}
	}
}

// deletes says whether a pod first asked for at asked is deleted rather than evicted.
func (d *Drainer) deletes(asked time.Time) bool {
	return d.opts.DisableEviction || (d.opts.DeleteAfter > 0 && d.opts.Clock.Since(asked) >= d.opts.DeleteAfter)
}

func (d *Drainer) postEviction(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions(pod)},
	}
	if d.opts.GracePeriod > 0 {
		eviction.DeleteOptions.GracePeriodSeconds = ptr.To(int64(d.opts.GracePeriod / time.Second))
	}
	// The typed call sleeps inside the client on every answer with Retry-After, in a place that others could use;
	// the plain one does not when told so. A fake clientset has only the typed one.
	c, ok := d.client.PolicyV1().RESTClient().(*rest.RESTClient)
	if !ok || c == nil {
		return d.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
	}
	return c.Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(eviction).MaxRetries(0).Do(ctx).Error()
}

func (d *Drainer) postDelete(ctx context.Context, pod *corev1.Pod) error {
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if d.opts.GracePeriod > 0 {
		grace = int64(d.opts.GracePeriod / time.Second)
	}
	o := metav1.DeleteOptions{
		Preconditions: preconditions(pod),
		// Never 0: that removes the pod from the API server while its containers still run.
		GracePeriodSeconds: ptr.To(max(grace, 1)),
	}
	c, ok := d.client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || c == nil {
		return d.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, o)
	}
	return c.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).Body(&o).MaxRetries(0).Do(ctx).Error()
}

// preconditions name the very pod. For one that does not run, the API server would repeat an eviction
// whose UID does not match for ten seconds, unless the resourceVersion is named too.
func preconditions(pod *corev1.Pod) *metav1.Preconditions {
	p := &metav1.Preconditions{UID: &pod.UID}
	if pod.Status.Phase != corev1.PodRunning {
		p.ResourceVersion = &pod.ResourceVersion
	}
	return p
}
