// SPDX-License-Identifier: Apache-2.0

package maintenance

import "math/bits"

// Progress counts pods. Total and Eviction are taken when the record is written and never change.
type Progress struct {
	// Recorded says that the maintenance has begun: there is, or was, a record on the node.
	Recorded bool `json:"recorded"`
	// Total is the number of all pods on the node when the maintenance began.
	Total int `json:"total"`
	// Eviction is the number of those that had to leave.
	Eviction int `json:"eviction"`
	// Pending is the number of pods that have yet to leave, late ones included.
	Pending int `json:"pending"`
}

// Percent returns how much of the drain is done, 0 to 100, rounded down: 100 exactly when the
// maintenance has begun and nothing is pending.
func (p Progress) Percent() int {
	switch {
	case !p.Recorded:
		return 0
	case p.Pending <= 0:
		return 100
	case p.Eviction <= 0:
		return 0
	default:
		// In 128 bits: the count comes from a record that anybody can edit.
		high, low := bits.Mul64(uint64(max(0, p.Eviction-p.Pending)), 100)
		percent, _ := bits.Div64(high, low, uint64(p.Eviction))
		return int(percent)
	}
}
