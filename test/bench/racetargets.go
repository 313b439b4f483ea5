// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/nodemaint/nodemaint/test/bench/report"
)

func targetsOfW1(f field) []report.Target {
	us := f.of(nameOurs)
	requests := us.pods + 15*us.nodes
	return []report.Target{
		toTheLimit(f),
		{Text: "wall at most 0.8 times kubectl drain's", Most: 0.8, Measured: ratio(us.wall, f.of(nameKubectl).wall), Unknown: us.cut},
		{Text: "wall at most 1/5 of the library loop's", Most: 0.2, Measured: ratio(us.wall, f.of(nameLoop).wall), Unknown: us.cut},
		{Text: fmt.Sprintf("at most %d requests: one a pod and 15 a node", requests), Most: float64(requests), Measured: float64(len(us.requests)), Unknown: us.cut},
	}
}

func targetsOfW3(f field) []report.Target {
	return []report.Target{toTheLimit(f), {Text: "at most 1.1 requests a pod", Most: 1.1, Measured: f.of(nameOurs).perPod(), Unknown: f.of(nameOurs).cut}}
}

func targetsOfW4(f field) []report.Target {
	return []report.Target{toTheLimit(f), {Text: "at most 1.7 requests a pod", Most: 1.7, Measured: f.of(nameOurs).perPod(), Unknown: f.of(nameOurs).cut}}
}

func toTheLimit(f field) report.Target {
	us := f.of(nameOurs)
	return report.Target{Text: "wall at most 1.15 times the limit", Most: 1.15, Measured: ratio(us.wall, f.limit()), Unknown: us.cut || f.limit() == 0}
}

// inMilliseconds makes a duration the measured value of a target.
func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
