// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGaps(t *testing.T) {
	const (
		made, adopted, leased      = "they create nodemaintenances n 201", "patch nodemaintenances n 200", "create leases node-n 201"
		deleted, released, theirs  = "they delete nodemaintenances n 200", "delete leases node-n 200", "they delete leases node-n 200"
		refused, another, byOthers = "patch nodemaintenances n 409", "they create nodemaintenances m 201", "they patch nodemaintenances n 200"
	)
	second := func(i int) time.Time { return time.Unix(int64(i), 0) }
	for _, tc := range []struct {
		reason string
		lasts  time.Duration // how long each request takes; they come in one second apart
		log    []string
		want   []Gap
	}{
		{"the deletion came first", 1500 * time.Millisecond, []string{made, deleted, adopted, leased, released}, []Gap{{"n", second(1), second(4).Add(1500 * time.Millisecond)}}},
		{"the finalizer came first", 1500 * time.Millisecond, []string{made, adopted, deleted, leased, released}, []Gap{{"n", second(2), second(4).Add(1500 * time.Millisecond)}}},
		{"the next one takes the node over", 1500 * time.Millisecond, []string{made, adopted, deleted, made, released}, []Gap{{"n", second(2), second(3).Add(1500 * time.Millisecond)}}},
		{
			"the next one goes before it takes the node over", 1500 * time.Millisecond, []string{made, adopted, deleted, made, deleted, released},
			[]Gap{{"n", second(2), second(3).Add(1500 * time.Millisecond)}, {"n", second(4), second(5).Add(1500 * time.Millisecond)}},
		},
		{"the next one goes without a word, of a node that was given back", 500 * time.Millisecond, []string{made, adopted, deleted, released, made, leased, deleted, released}, nil},
		{"one after the other", 500 * time.Millisecond, []string{made, adopted, deleted, leased, released}, nil},
		{"never adopted", 1500 * time.Millisecond, []string{made, deleted, refused, byOthers, leased, released}, nil},
		{"never given back", 1500 * time.Millisecond, []string{made, deleted, adopted, leased, theirs}, nil},
		{"given back too late", 30 * time.Second, []string{made, deleted, adopted, leased, released}, nil},
		{"another's", 1500 * time.Millisecond, []string{another, deleted, adopted, "delete leases node-m 200"}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			log := logged(tc.log...)
			for i := range log {
				log[i].Answered = log[i].Time.Add(tc.lasts)
			}
			require.Equal(t, tc.want, Gaps(log, us))
		})
	}
}

func TestWithoutGaps(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	gaps := []Gap{{"n", at(10), at(20)}}
	held := Breach{Rule: ruleGivenBack, Object: "n"}
	for _, tc := range []struct {
		reason    string
		breach    Breach
		from, to  int
		explained bool
	}{
		{"in the gap", held, 12, 13, true},
		{"at its edge", held, 9, 11, true},
		{"before", held, 8, 10, false},
		{"after", held, 20, 21, false},
		{"another node", Breach{Rule: ruleGivenBack, Object: "m"}, 12, 13, false},
		{"another rule", Breach{Rule: "one holder", Object: "n"}, 12, 13, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			left := WithoutGaps([]Breach{tc.breach}, gaps, at(tc.from), at(tc.to))
			if tc.explained {
				require.Empty(t, left)
				return
			}
			require.Equal(t, []Breach{tc.breach}, left)
		})
	}
}

func TestWithoutUnseen(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	gaps := []Gap{{"n", at(10).Add(500 * time.Millisecond), at(20)}}
	for _, tc := range []struct {
		reason    string
		breach    Breach
		explained bool
	}{
		{"begun in the gap", Breach{Rule: ruleToldEnd, node: "n", begun: at(12)}, true},
		{"begun in its first second", Breach{Rule: ruleToldEnd, node: "n", begun: at(10)}, true},
		{"before", Breach{Rule: ruleToldEnd, node: "n", begun: at(9)}, false},
		{"after", Breach{Rule: ruleToldEnd, node: "n", begun: at(20)}, false},
		{"of another node", Breach{Rule: ruleToldEnd, node: "m", begun: at(12)}, false},
		{"another rule", Breach{Rule: "told all", node: "n", begun: at(12)}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.explained, len(WithoutUnseen([]Breach{tc.breach}, gaps)) == 0)
		})
	}
}
