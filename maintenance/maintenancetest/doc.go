// SPDX-License-Identifier: Apache-2.0

// Package maintenancetest is a fake Kubernetes cluster in memory, for unit tests of code
// that drains nodes. It stands on k8s.io/client-go/kubernetes/fake and mends what that
// leaves out. No network, no processes, no sleeping.
//
// # What it guarantees
//
//   - One increasing resourceVersion for everything. Creation sets UID, resourceVersion,
//     creationTimestamp and, for kinds that have it, generation. Objects pass through JSON,
//     so times are cut as the API cuts them.
//   - A write made from an old resourceVersion gets 409 Conflict: an update, a patch whose
//     body carries metadata.resourceVersion, a delete or an eviction with preconditions. An
//     update with a wrong UID gets 409 too; a patch with one gets 422, as on a real server.
//     A write that changes nothing keeps the version and makes no event.
//   - An update leaves the status alone, and an update of the status leaves the spec alone.
//     Objects that a client creates start without status, and pods start Pending: use Add for
//     objects that are to be as they are.
//   - Nothing can be created in a namespace that is missing (404) or terminating (403).
//   - Lists and watches obey label and field selectors, and refuse unknown fields. A watch
//     from a list's version misses nothing; an object that leaves the selection is a
//     DELETED event. A slow reader holds up nobody. Initial events (WatchList) are served.
//   - An eviction behaves as the API server's does: namespace, then pod, then budgets, then
//     preconditions. So a budget is charged even if the UID is wrong. Two budgets on a pod
//     give 500. A Pending, finished or terminating pod is evicted without a budget, and a
//     conflict on such a pod is repeated for about 10 s, unless the eviction carries a
//     resourceVersion.
//   - A deleted pod is first seen with a deletionTimestamp and then goes, at once or after a
//     time (Options.Termination, TerminatesIn). Finalizers hold any object back.
//   - A request ends with its context, for nodes, pods, evictions, namespaces, events,
//     secrets, DaemonSets, leases and PodDisruptionBudgets. The typed clients of all other
//     kinds work too, but without their context: fake clientsets drop it.
//   - All methods are safe for concurrent use. Goroutines end with the watch that they
//     serve, or with Close. In a testing/synctest bubble, call New inside the bubble.
//
// # What it does not guarantee
//
//   - It validates nothing, sets no defaults, knows no RBAC, and runs no controller but the
//     two of type Controller, and CollectGarbage when called.
//   - It knows neither server-side apply, nor dry runs, nor subresources other than status
//     and eviction, nor limit and continue. core/v1 and events.k8s.io/v1 events are apart.
//   - PolicyV1().RESTClient(), and every other RESTClient, of Client is a nil pointer, as always
//     with fake clientsets. Those of a client made from Config are real.
//   - It is not a client-go: nothing is retried, no rate is limited, no Retry-After slept.
//
// # How to use it
//
// Build a cluster from objects (Node, Pod, DaemonSet, Budget …) with New, give Client to
// the code under test, or Config to a real client of any kind, look at what became of the objects with Cluster.Node, Cluster.Pods
// and so on, and play the rest of the world with Cluster.EditNode, Cluster.DeletePod and
// the like. Cluster.Writes and Cluster.Requests say what the code asked for.
//
// Faults are rules: Fail, Lose, Hold, HoldAnswer, Delay and Then meet the requests that a Match
// chooses. PauseWatches, CloseWatches, ExpireHistory and Lag do to watches and to caches what
// servers and networks do. To see that code survives a crash between any two writes:
//
//	for n := 1; ; n++ {
//		c := newCluster()
//		crash := c.CrashBefore(n) // and again with CrashAfter
//		run(c.Client())
//		if crash.Hits() == 0 {
//			break // there is no n-th write
//		}
//		crash.Remove() // the restart
//		run(c.Client())
//		check(c)
//	}
package maintenancetest
