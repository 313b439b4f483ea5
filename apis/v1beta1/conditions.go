// SPDX-License-Identifier: Apache-2.0

package v1beta1

// The types of the conditions in NodeMaintenanceStatus. They follow the rules of kstatus, so that tools
// that know nothing of this resource can wait for it.
const (
	// ConditionReady is True only in phase Succeeded.
	ConditionReady = "Ready"
	// ConditionLeaseHeld is True while the lease of the node is ours.
	ConditionLeaseHeld = "LeaseHeld"
	// ConditionDrained is True when every pod that must leave has left. Its message names what does not.
	ConditionDrained = "Drained"
	// ConditionStalled is present, and True, only in phase Failed.
	ConditionStalled = "Stalled"
)

// The reasons of ConditionReady.
const (
	// ReasonSucceeded: the node is held and drained.
	ReasonSucceeded = "Succeeded"
	// ReasonRunning: the maintenance is in progress.
	ReasonRunning = "Running"
	// ReasonRunningAgain: it had succeeded, and late pods, the lease or passes that failed for a minute made it Running again.
	ReasonRunningAgain = "RunningAgain"
	// ReasonFailed: the maintenance was given up.
	ReasonFailed = "Failed"
)

// The reasons of ConditionLeaseHeld.
const (
	// ReasonHeld: the lease is ours.
	ReasonHeld = "Held"
	// ReasonHeldByAnother: the lease is another's and the maintenance has not begun.
	ReasonHeldByAnother = "HeldByAnother"
	// ReasonLost: the lease is another's although it was ours.
	ReasonLost = "Lost"
	// ReasonRefused: the API server does not let the operator read or write the lease, or it has run out and could not be
	// renewed.
	ReasonRefused = "Refused"
)

// The reasons of ConditionDrained.
const (
	// ReasonDrained: every pod that must leave has left.
	ReasonDrained = "Drained"
	// ReasonDraining: pods are leaving and nothing stands in their way.
	ReasonDraining = "Draining"
	// ReasonBlockedByBudget: a PodDisruptionBudget allows no eviction now.
	ReasonBlockedByBudget = "BlockedByBudget"
	// ReasonEvictionRefused: the API server or an admission webhook refuses an eviction.
	ReasonEvictionRefused = "EvictionRefused"
	// ReasonTerminating: what is left was told to leave and takes its time.
	ReasonTerminating = "Terminating"
	// ReasonLatePods: pods keep arriving on the node.
	ReasonLatePods = "LatePods"
	// ReasonNodeNotReady: the node does not answer, so that its pods cannot be seen to end.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonUnseen: every pod had left when a pass last looked, and no pass comes so far now.
	ReasonUnseen = "Unseen"
)

// The reasons of ConditionStalled.
const (
	// ReasonNodeNotFound: there was no such node when the maintenance should have begun.
	ReasonNodeNotFound = "NodeNotFound"
	// ReasonLeaseLost: the lease was lost or refused too often in a row; the node was given back.
	ReasonLeaseLost = "LeaseLost"
	// ReasonInvalidNodeName: no lease can be made for a node of that name.
	ReasonInvalidNodeName = "InvalidNodeName"
)
