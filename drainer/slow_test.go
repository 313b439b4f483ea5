// SPDX-License-Identifier: Apache-2.0

package drainer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodemaint/nodemaint/drainer"
	mt "github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func TestSlowCallHoldsUpNobody(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		hold := s.Hold(evictionOfPods.Named("shop", "web-0"))
		began := time.Now()
		r := s.pass("n1")
		require.Equal(t, drainer.WatchedWait, time.Since(began), "a pass waits for answers at most that long")
		require.Equal(t, "deferred", where(r)["shop/web-0"])
		require.Len(t, r.Evicted, 2)

		<-s.wakes // of the pods that went
		for range 5 {
			advance(time.Second)
			began = time.Now()
			require.Equal(t, map[string]string{"shop/web-0": "deferred"}, where(s.pass("n1")))
			require.Zero(t, time.Since(began), "a call under way is not waited for again")
		}
		require.Len(t, s.InFlight(evictionOfPods), 1, "one call at most for a pod")
		synctest.Wait()
		hold.Release()
		<-s.wakes
		synctest.Wait()
		r = s.pass("n1")
		require.Equal(t, []string{"shop/web-0"}, names(r.Evicted), "its answer wakes")
	}, web(3)...)
}

func TestCallTimesOut(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{Timeout: 10 * time.Second}, func(t *testing.T, s *stage) {
		s.watch("n1")
		hold := s.Hold(evictionOfPods)
		s.pass("n1")
		advance(10*time.Second - drainer.WatchedWait)
		r := s.settle("n1")
		require.Equal(t, map[string]string{"shop/web-0": "failed"}, where(r))
		require.Contains(t, r.Failed[0].Reason, "deadline")
		require.False(t, r.Done(), "a call that timed out proves nothing")
		hold.Release()
		advance(5 * time.Second)
		require.Len(t, s.pass("n1").Evicted, 1)
		require.Len(t, s.Matching(mt.On("get", "pods")), 1, "looked at first")
	}, web(1)...)
}

func TestSlowCallWithoutAWatch(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.Delay(evictionOfPods, 7*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := s.Pass(ctx, "n1")
		require.NoError(t, err)
		cancel() // the caller's context ends with its pass
		require.Equal(t, map[string]string{"shop/web-0": "deferred"}, where(r))
		require.Equal(t, drainer.RetryDelay, r.RetryAfter, "nothing will wake the caller")
		advance(r.RetryAfter)
		require.Len(t, s.pass("n1").Deferred, 1)
		advance(r.RetryAfter)
		require.True(t, s.pass("n1").Done(), "the call went on and was answered")
		require.Len(t, s.evictions(), 1)
	}, web(1)...)
}

func TestContextEndsInAPass(t *testing.T) {
	for _, mode := range []string{"listed", "watched"} {
		t.Run(mode, func(t *testing.T) {
			onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 2}, func(t *testing.T, s *stage) {
				if mode == "watched" {
					s.watch("n1")
				}
				s.Hold(evictionOfPods)
				cause := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Millisecond, func() { cancel(cause) })
				_, err := s.Pass(ctx, "n1")
				require.ErrorIs(t, err, cause)
				synctest.Wait()
				if mode == "listed" {
					require.Empty(t, s.InFlight(nil), "its calls end with it")
					require.Len(t, s.evictions(), 1, "and none begins")
				}
			}, web(5)...)
		})
	}
}

func TestContextEndedBeforeAPass(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		for range 20 {
			_, err := s.Pass(ctx, "n1")
			require.ErrorIs(t, err, enough)
		}
		synctest.Wait()
		require.Empty(t, s.evictions())
	}, web(3)...)
}

func TestCancel(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{MaxInFlight: 4}, func(t *testing.T, s *stage) {
		s.Cancel("n1") // nothing to cancel
		s.watch("n1")
		s.Hold(evictionOfPods)
		s.pass("n1")
		require.Len(t, s.InFlight(evictionOfPods), 2)

		s.Cancel("n1")

		require.Empty(t, s.InFlight(evictionOfPods), "it returns when they have ended")
		advance(time.Minute)
		require.Len(t, s.evictions(), 2, "and none begins after it")
		require.Len(t, s.PodsOn("n1"), 9)
	}, web(9)...)
}

func TestCancelDuringAPass(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Hold(evictionOfPods)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Pass(t.Context(), "n1")
			require.NoError(t, err)
		})
		synctest.Wait()
		s.Cancel("n1")
		wg.Wait()
		require.Empty(t, s.InFlight(nil))
	}, web(3)...)
}

func TestConcurrentPasses(t *testing.T) {
	onStage(t, mt.Options{}, drainer.Options{}, func(t *testing.T, s *stage) {
		s.watch("n1")
		s.Delay(evictionOfPods, time.Millisecond)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				advance(time.Duration(i) * 100 * time.Microsecond)
				_, err := s.Pass(t.Context(), "n1")
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Len(t, s.evictions(), 30)
		require.True(t, s.pass("n1").Done())
	}, web(30)...)
}

// Calls that hang on one node keep that node's pods from the front of a lane, not the others behind them.
func TestLaneGoesPastANodeThatIsFull(t *testing.T) {
	objects := append(spread(1), mt.Pod("shop", "hangs", "n1"))
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{MaxInFlight: 2}, func(t *testing.T, s *stage) {
		s.inTurn(0)
		hold := s.Hold(evictionOfPods.Named("shop", "hangs"))
		defer hold.Remove()
		for range 3 { // the budget refuses the pod of n2, which then waits behind that of n1
			s.pass("n2")
			s.pass("n1")
			advance(time.Second)
		}
		s.SetDisruptionsAllowed("shop", "web", 2)
		synctest.Wait()
		advance(100 * time.Millisecond)
		require.NotNil(t, s.Pod("shop", "web-1").DeletionTimestamp, "its node has room")
		require.Nil(t, s.Pod("shop", "web-0").DeletionTimestamp, "its node has none")
	}, objects...)
}

// Nothing is begun for a node after the end of its watch.
func TestEndOfAWatchDropsWhatIsQueued(t *testing.T) {
	var objects []runtime.Object
	for i := range 5 {
		objects = append(objects, mt.Pod("shop", fmt.Sprintf("lone-%d", i), "n1"))
	}
	onStage(t, mt.Options{Termination: mt.Never}, drainer.Options{MaxInFlight: 2}, func(t *testing.T, s *stage) {
		ctx, end := context.WithCancel(t.Context())
		s.Watch(ctx, "n1", func() {})
		synctest.Wait()
		s.Delay(evictionOfPods, time.Second)
		s.pass("n1")
		asked := len(s.evictions())
		require.Equal(t, 1, asked)
		end()
		advance(time.Minute)
		require.Len(t, s.evictions(), asked)
	}, objects...)
}
