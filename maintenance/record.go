// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodemaint/nodemaint/taint"
)

const (
	// RecordAnnotation is the annotation of a Node that holds its Record.
	RecordAnnotation = "nodemaintenance.medik8s.io/applied"
	// ExcludeLabel keeps remediation operators off a node while its value is "true".
	ExcludeLabel = "remediation.medik8s.io/exclude-from-remediation"
	// recordVersion is the only version there is.
	recordVersion = 1
	// labelValue is the value of ExcludeLabel that we set.
	labelValue = "true"
)

// ErrRecord says that the record on a node cannot be read.
var ErrRecord = errors.New("the record of what was done to the node cannot be read")

// Record is what stood on a node before its maintenance began, of our marks only, and the pods counted
// then. Its JSON form, with exactly these keys, is the value of RecordAnnotation.
type Record struct {
	V int `json:"v"`
	// Holder is the lease holder whose maintenance this is.
	Holder string `json:"holder"`
	// Unschedulable is spec.unschedulable before.
	Unschedulable bool `json:"unschedulable"`
	// Taints are those of our keys and effects that were there before, as key=value:effect.
	Taints []string `json:"taints"`
	// Label is the value of ExcludeLabel before; nil if there was none.
	Label *string `json:"label"`
	// Total and Eviction are the counts of Progress.
	Total    int `json:"total"`
	Eviction int `json:"eviction"`
}

// parseRecord returns the record on n: nil if there is none, and an error that wraps ErrRecord if what
// is there is not one.
func parseRecord(n *corev1.Node) (*Record, error) {
	text, ok := n.Annotations[RecordAnnotation]
	if !ok {
		return nil, nil
	}
	r, err := decodeRecord([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: annotation %s of node %q: %w", ErrRecord, RecordAnnotation, n.Name, err)
	}
	return r, nil
}

// Unrecorded says that n carries our taint and no record: an operator that kept none left it so. As long as its lease is
// ours, a Start takes the marks for ours, and the Stop after it takes them off.
func Unrecorded(n *corev1.Node) bool {
	_, recorded := n.Annotations[RecordAnnotation]
	return !recorded && slices.ContainsFunc(n.Spec.Taints, isOurs)
}

// decodeRecord is strict: what a record lacks might be the very thing that is somebody else's.
func decodeRecord(text []byte) (*Record, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	for _, k := range []string{"v", "holder", "unschedulable", "taints", "label", "total", "eviction"} {
		if v, ok := keys[k]; !ok || (k != "label" && string(v) == "null") {
			return nil, fmt.Errorf("it lacks %q", k)
		}
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.V != recordVersion || r.Holder == "" || r.Total < 0 || r.Eviction < 0 {
		return nil, fmt.Errorf("it is not a record of version %d", recordVersion)
	}
	if r.Label != nil && len(validation.IsValidLabelValue(*r.Label)) > 0 {
		return nil, fmt.Errorf("%q is not a label's value", *r.Label) // it could never be put back
	}
	for _, t := range r.Taints {
		if _, effect, ok := cutTaint(t); !ok || !slices.Contains(taintEffects, effect) {
			return nil, fmt.Errorf("%q is not a taint", t)
		}
	}
	return &r, nil
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

// newRecord records what stands on n now as somebody else's.
func newRecord(n *corev1.Node, holder string) Record {
	r := Record{V: recordVersion, Holder: holder, Unschedulable: n.Spec.Unschedulable, Taints: []string{}}
	for _, t := range n.Spec.Taints {
		if t.MatchTaint(&drainTaint) || t.MatchTaint(&unschedulableTaint) {
			r.Taints = append(r.Taints, t.ToString())
		}
	}
	if v, ok := n.Labels[ExcludeLabel]; ok {
		r.Label = &v
	}
	return r
}

// adoptedRecord records what stands on n as ours, as far as it can be: a taint or label with a value that
// we never set is somebody else's all the same.
func adoptedRecord(n *corev1.Node, holder string) Record {
	r := newRecord(n, holder)
	r.Unschedulable = false
	r.Taints = slices.DeleteFunc(r.Taints, func(t string) bool {
		return t == drainTaint.ToString() || t == unschedulableTaint.ToString()
	})
	if r.Label != nil && *r.Label == labelValue {
		r.Label = nil
	}
	return r
}

func (r Record) encode() string {
	if r.Taints == nil {
		r.Taints = []string{}
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	return string(b)
}

// foreignTaint says whether a taint of the key and effect of t was there before.
func (r Record) foreignTaint(t corev1.Taint) bool {
	return slices.ContainsFunc(r.Taints, func(s string) bool { return isOf(s, t) })
}

var (
	drainTaint         = taint.Drain()
	unschedulableTaint = taint.Unschedulable()
)
