// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubectl/pkg/drain"
)

// fate is what kubectl's filters say of a pod.
type fate int

const (
	leaves  fate = iota // must leave
	stays               // is left alone
	kept                // would leave, but the options keep it
	unknown             // the filters could not tell
)

// judged is a pod with its fate and, where it does not leave, why.
type judged struct {
	pod  *corev1.Pod
	fate fate
	why  string
}

// daemonSets reads a DaemonSet by namespace and name, as kubectl's filters do for each of its pods.
type daemonSets func(ctx context.Context, namespace, name string) (*appsv1.DaemonSet, error)

// verdicts are what kubectl's filters said of pods, by UID, as far as it holds until the pod or its DaemonSet changes.
type verdicts map[types.UID]verdict

type verdict struct {
	version string // of the pod
	judged
	daemonSet string // that exists, which was all that the filters asked of it; empty if they did not
}

// holds says whether the verdict is that of the pod as it is now, with its DaemonSet.
func (v verdict) holds(ctx context.Context, p *corev1.Pod, read daemonSets) bool {
	if v.version != p.ResourceVersion || v.daemonSet == "" {
		return v.version == p.ResourceVersion
	}
	_, err := read(ctx, p.Namespace, v.daemonSet)
	return err == nil
}

// judge asks kubectl's filters about each pod by itself: their answer about a list tells neither
// which pod an error is about nor which pods it left out for it. What was said before of a pod that has not
// changed since is taken from known, and what will hold is kept there; other pods are forgotten.
func judge(ctx context.Context, pods []*corev1.Pod, known verdicts, read daemonSets, o Options) []judged {
	read = once(read)
	out := make([]judged, 0, len(pods))
	here := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		here[p.UID] = true
		if v, ok := known[p.UID]; ok && v.holds(ctx, p, read) {
			v.pod = p
			out = append(out, v.judged)
			continue
		}
		v := verdict{version: p.ResourceVersion}
		depends := len(o.Filters) > 0 // on what only they know
		v.judged = judgeOne(ctx, p, func(ctx context.Context, ns, name string) (*appsv1.DaemonSet, error) {
			ds, err := read(ctx, ns, name)
			v.daemonSet = name
			depends = depends || err != nil // on whether there is one by then
			return ds, err
		}, o)
		out = append(out, v.judged)
		if delete(known, p.UID); !depends {
			known[p.UID] = v
		}
	}
	maps.DeleteFunc(known, func(uid types.UID, _ verdict) bool { return !here[uid] })
	return out
}

func judgeOne(ctx context.Context, pod *corev1.Pod, read daemonSets, o Options) judged {
	unread := false
	view := &onePod{ctx: ctx, pod: pod, daemonSets: func(ctx context.Context, ns, name string) (*appsv1.DaemonSet, error) {
		ds, err := read(ctx, ns, name)
		unread = unread || (err != nil && !apierrors.IsNotFound(err))
		return ds, err
	}}
	helper := &drain.Helper{
		Ctx: ctx, Client: view,
		Force: !o.KeepUnmanaged, DeleteEmptyDirData: !o.KeepEmptyDir, IgnoreAllDaemonSets: true, GracePeriodSeconds: -1,
		AdditionalFilters: append([]drain.PodFilter{view.finishedOfDaemonSet}, o.Filters...),
	}
	list, errs := helper.GetPodsForDeletion(pod.Spec.NodeName)
	switch {
	case len(errs) > 0 && unread:
		return judged{pod, unknown, errors.Join(errs...).Error()}
	case len(errs) > 0:
		return judged{pod, kept, errors.Join(errs...).Error()}
	case len(list.Pods()) > 0:
		return judged{pod: pod, fate: leaves}
	default:
		return judged{pod, stays, list.Warnings()}
	}
}

// once remembers the answers of read, so that a node's pods cost one read for each DaemonSet.
func once(read daemonSets) daemonSets {
	type answer struct {
		ds  *appsv1.DaemonSet
		err error
	}
	known := map[string]answer{}
	return func(ctx context.Context, ns, name string) (*appsv1.DaemonSet, error) {
		key := ns + "/" + name
		a, ok := known[key]
		if !ok {
			a.ds, a.err = read(ctx, ns, name)
			known[key] = a
		}
		return a.ds, a.err
	}
}

// onePod is the client given to kubectl's filters: it answers the two reads they make, the node's
// pods and a DaemonSet. Any other call would be on a nil interface: the filters make none.
type onePod struct {
	kubernetes.Interface
	ctx        context.Context // of the one call that made this view
	pod        *corev1.Pod
	daemonSets daemonSets
}

func (v *onePod) CoreV1() coreclient.CoreV1Interface { return onePodCore{v: v} }
func (v *onePod) AppsV1() appsclient.AppsV1Interface { return onePodApps{v: v} }

type onePodCore struct {
	coreclient.CoreV1Interface
	v *onePod
}

func (c onePodCore) Pods(string) coreclient.PodInterface { return onePodList{v: c.v} }

type onePodList struct {
	coreclient.PodInterface
	v *onePod
}

func (l onePodList) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{Items: []corev1.Pod{*l.v.pod}}, nil
}

type onePodApps struct {
	appsclient.AppsV1Interface
	v *onePod
}

func (a onePodApps) DaemonSets(namespace string) appsclient.DaemonSetInterface {
	return onePodDaemonSets{v: a.v, namespace: namespace}
}

type onePodDaemonSets struct {
	appsclient.DaemonSetInterface
	v         *onePod
	namespace string
}

func (d onePodDaemonSets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	return d.v.daemonSets(ctx, d.namespace, name)
}

// finishedOfDaemonSet keeps a finished pod whose DaemonSet exists: its controller removes it and
// would put a new one in its place. kubectl's own filters let it go.
func (v *onePod) finishedOfDaemonSet(pod corev1.Pod) drain.PodDeleteStatus {
	owner := metav1.GetControllerOf(&pod)
	if !finished(&pod) || owner == nil || owner.Kind != "DaemonSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return drain.MakePodDeleteStatusOkay()
	}
	_, err := v.daemonSets(v.ctx, pod.Namespace, owner.Name)
	switch {
	case err == nil:
		return drain.MakePodDeleteStatusSkip()
	case apierrors.IsNotFound(err):
		return drain.MakePodDeleteStatusOkay()
	default:
		return drain.MakePodDeleteStatusWithError(fmt.Sprintf("getting DaemonSet %s/%s: %v", pod.Namespace, owner.Name, err))
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
