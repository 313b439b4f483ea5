// SPDX-License-Identifier: Apache-2.0

package drainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWait(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	pod := func(uid types.UID) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	m := newMemory()
	m.attempts["soon"] = &attempt{answer: answer{kind: blocked}, due: now.Add(2 * time.Second)}
	m.attempts["later"] = &attempt{answer: answer{kind: refused}, due: now.Add(9 * time.Second)}
	m.attempts["dropped"] = &attempt{}
	m.attempts["flying"] = &attempt{flying: true}
	m.attempts["goes"] = &attempt{answer: answer{kind: accepted}, due: now}
	for _, tt := range []struct {
		reason string
		pods   []judged
		want   time.Duration
	}{
		{"nothing", nil, 0},
		{"under way or on its way out: an event comes", []judged{{pod: pod("flying")}, {pod: pod("goes")}}, 0},
		{"the first that is due", []judged{{pod: pod("later")}, {pod: pod("soon")}}, 2 * time.Second},
		{"one that was never made", []judged{{pod: pod("later")}, {pod: pod("dropped")}}, time.Millisecond},
		{"one that the filters could not judge", []judged{{pod: pod("x"), fate: unknown}}, RetryDelay},
		{"one that the options keep", []judged{{pod: pod("x"), fate: kept}}, RetryDelay},
		{"one that stays", []judged{{pod: pod("x"), fate: stays}}, 0},
		{"one that a later pass found gone", []judged{{pod: pod("x")}}, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) { require.Equal(t, tt.want, m.wait(tt.pods, now)) })
	}
}
