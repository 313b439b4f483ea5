// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// Snapshot is what a cluster held at one moment.
type Snapshot struct {
	// Version is the resourceVersion of that moment.
	Version      string
	Nodes        []corev1.Node
	Pods         []corev1.Pod
	Leases       []coordinationv1.Lease
	Maintenances []v1beta1.NodeMaintenance
	// Events are those of the namespace default. Read leaves them out.
	Events []corev1.Event
}

// Breach is one thing that is not as it must be.
type Breach struct {
	// Rule names what must be so.
	Rule string
	// Object is of what it is not so.
	Object string
	// Words say what is there instead.
	Words string

	node  string    // of an object whose end was not told
	begun time.Time // when that told its beginning
}

// String says all of it in one line.
func (b Breach) String() string { return fmt.Sprintf("%s: %s: %s", b.Rule, b.Object, b.Words) }

// rule collects the breaches of one rule.
type rule struct {
	name string
	out  []Breach
}

func (r *rule) broken(object, format string, args ...any) {
	r.out = append(r.out, Breach{Rule: r.name, Object: object, Words: fmt.Sprintf(format, args...)})
}

// Always returns what breaks a rule of any moment. Before is how each node looks without a maintenance; nodes that
// it does not name are not compared.
func Always(s Snapshot, before map[string]Look) []Breach {
	return join(Progress(s), GivenBack(s, before), OneHolder(s), ToldOnce(s))
}

// AtRest returns what breaks a rule of a cluster where nothing stands in the way any more, those of any moment too.
func AtRest(s Snapshot, before map[string]Look) []Breach {
	return join(Always(s, before), Done(s), ToldAll(s), ToldEnd(s), NoLeaseLeft(s), TaintFollowsCordon(s))
}

func join(all ...[]Breach) []Breach {
	var out []Breach
	for _, b := range all {
		out = append(out, b...)
	}
	return out
}

// maintained returns the NodeMaintenances by node. Of two for one node it keeps them both.
func (s Snapshot) maintained() map[string][]v1beta1.NodeMaintenance {
	out := map[string][]v1beta1.NodeMaintenance{}
	for _, nm := range s.Maintenances {
		out[nm.Spec.NodeName] = append(out[nm.Spec.NodeName], nm)
	}
	return out
}

// node returns the node of that name; nil if there is none.
func (s Snapshot) node(name string) *corev1.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}
