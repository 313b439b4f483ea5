// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nodemaint/nodemaint/drainer"
)

// Pod is where one pod of the node stands; see drainer.Pod.
type Pod = drainer.Pod

// Budget is a PodDisruptionBudget that blocks a pod; see drainer.Budget.
type Budget = drainer.Budget

// Report is what a pass found of the node's pods; see drainer.Report.
type Report = drainer.Report

// Phase is how far the maintenance of a node is; empty before the first pass.
type Phase string

// The phases.
const (
	// Running: in progress.
	Running Phase = "Running"
	// Succeeded: the node is held and every pod that must leave has left. It is Running again once
	// passes have failed for LeaseLook.
	Succeeded Phase = "Succeeded"
	// Failed: given up, for good.
	Failed Phase = "Failed"
)

// Failure says why a maintenance is Failed.
type Failure string

// The failures.
const (
	// NodeNotFound: there was no such node when the maintenance should have begun.
	NodeNotFound Failure = "NodeNotFound"
	// LeaseLost: the lease was lost, or refused, too often in a row; the node was given back.
	LeaseLost Failure = "LeaseLost"
	// InvalidNodeName: no node, or no lease of a node, can have that name.
	InvalidNodeName Failure = "InvalidNodeName"
)

// LeaseStatus is how the lease of the node stands; empty before it was asked for.
type LeaseStatus string

// The lease's states.
const (
	// LeaseHeld: it is ours.
	LeaseHeld LeaseStatus = "Held"
	// LeaseHeldByAnother: somebody else has it and the maintenance has not begun.
	LeaseHeldByAnother LeaseStatus = "HeldByAnother"
	// LeaseTaken: somebody else has it although we had it.
	LeaseTaken LeaseStatus = "Lost"
	// LeaseRefused: the API server does not let us read or write it, or it has run out and no pass could renew it.
	LeaseRefused LeaseStatus = "Refused"
)

// State is what a pass found and what the next one must know. It is a value: keep it, and pass it to
// the next Start. The zero value is the state before the first.
type State struct {
	Phase Phase `json:"phase,omitempty"`
	// Failure is set only when Phase is Failed.
	Failure Failure `json:"failure,omitempty"`
	// Error says what stands in the way now: what is wrong with the lease, the record or the marks, and a line for each
	// blocked or failed pod, of either kind five at most, then how many more; or why a pass could not be made. It is empty
	// while pods only take their time, and when nothing is left to do.
	Error string `json:"error,omitempty"`

	// EverSucceeded says that the phase was Succeeded before: late pods, the lease or passes that failed made it Running
	// again, and that it succeeds once more is no news.
	EverSucceeded bool `json:"everSucceeded,omitempty"`

	Progress Progress `json:"progress"`
	// Report is what the last pass that Looked found. The news in it, Evicted and NewlyBlocked, are those of this
	// pass and of those before it that failed.
	Report Report `json:"report"`

	Lease LeaseStatus `json:"lease,omitempty"`
	// LeaseError says what is wrong with the lease; empty if nothing is.
	LeaseError string `json:"leaseError,omitempty"`
	// LeaseErrors counts the lease failures in a row, at least LeaseRetry apart.
	LeaseErrors int `json:"leaseErrors,omitempty"`

	// Updated is when a pass last changed the state.
	Updated time.Time `json:"updated,omitzero"`
	// NodeUID is the node that is maintained; another of the same name is left alone.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// NotReadySince is since when the node is not ready; zero while it is.
	NotReadySince time.Time `json:"notReadySince,omitzero"`
	// Record is the record on the node as last seen, so that it can be written again if it is lost. A caller
	// that cannot keep it leaves it nil.
	Record *Record `json:"record,omitempty"`

	// Gone says that the node whose maintenance had begun does not exist any more, or that another one has its
	// name: this pass touched nothing, and the rest is what was before.
	Gone bool `json:"-"`
	// Looked says that this pass got as far as the pods: Report is its own, not that of the pass before.
	Looked bool `json:"-"`
	// Reheld are the marks that were put back because somebody had taken them off, as far as they are news: at
	// most one in RetellHold for each mark. This pass put them back, or one before it that failed.
	Reheld []Mark `json:"-"`
	// RetryAfter is when the next pass is due at the latest; 0 means only when something changes.
	RetryAfter time.Duration `json:"-"`
}

// Failing returns s after a Start or a Stop that returned err: Error says err, unless lease failures are being counted.
// An empty Phase becomes Running; Looked and RetryAfter are cleared.
func (s State) Failing(err error) State {
	s.Phase = cmp.Or(s.Phase, Running)
	s.Looked, s.RetryAfter = false, 0
	if s.LeaseErrors == 0 {
		s.Error = brief(err.Error())
	}
	return s
}

// Done says that no further pass is needed, now or later: the state is Failed.
func (s State) Done() bool { return s.Phase == Failed }
