// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/nodemaint/nodemaint/test/deploy"
	"github.com/nodemaint/nodemaint/test/faults/kit"
	"github.com/nodemaint/nodemaint/test/program"
)

const (
	nodes, podsPerNode = 50, 3
	sampleEvery        = 10 * time.Second
	// settling is how long nothing has to happen before a quiet sample.
	settling = 3 * time.Second
	// fewest is how many quiet samples of one process there have to be, the first for warming up.
	fewest = 4
)

// run is what a soak has seen so far.
type run struct {
	length time.Duration
	stage  *kit.Stage
	gauge  *gauge
	hooks  *kit.Proxy // from the API server to the operator's webhook
	dice   *rand.Rand
	began  time.Time
	full   float64        // how many watches were open before the first round
	faults map[string]int // how often each has happened
	looks  int            // at the invariants
	clean  bool           // the engine in this process has left no goroutine

	mu      sync.Mutex
	process int // the how manieth process of the operator this is, from 1
	samples []sample
}

// soak maintains nodes for at least that long. What it returns is never nil; the error says what is broken.
func soak(ctx context.Context, o kit.Options, length time.Duration) (*run, error) {
	r := &run{length: length, process: 1, faults: map[string]int{}}
	port, err := deploy.FreePort()
	if err != nil {
		return r, err
	}
	o.Flags = append(o.Flags, fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port))
	if r.stage, err = kit.SetUp(ctx, o); err != nil {
		return r, err
	}
	if r.gauge, err = newGauge(ctx, r.stage, port); err == nil {
		err = r.overhear(ctx)
	}
	return r, errors.Join(err, r.stage.Close())
}

// overhear makes all rounds with a proxy in front of the webhook. The API server keeps connections to it as it sees fit,
// and the operator some goroutines for each: they are ended before a quiet sample is taken.
func (r *run) overhear(ctx context.Context) error {
	var err error
	if r.hooks, err = kit.Listen(fmt.Sprintf("127.0.0.1:%d", r.stage.WebhookPort)); err != nil {
		return err
	}
	defer r.hooks.Close()
	err = r.stage.EditWebhook(ctx, func(c *admissionv1.WebhookClientConfig) { c.Service.Port = new(int32(r.hooks.Port())) })
	if err != nil {
		return err
	}
	return r.all(ctx)
}

// all makes rounds until the time is over and enough is known of the last process.
func (r *run) all(ctx context.Context) error {
	all, err := r.stage.AddNodes(ctx, "soak", nodes, podsPerNode)
	if err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	dog := r.stage.Watch(ctx)
	for time.Since(r.began) < r.length || len(r.quiet()) < fewest {
		if err = r.round(ctx, all); err != nil {
			break
		}
	}
	looks, broken := dog.End()
	r.looks = looks
	if err = errors.Join(err, broken); err != nil {
		return err
	}
	return r.last(ctx, all)
}

// begin notes what is watched while no node is under maintenance, and starts the clock.
func (r *run) begin(ctx context.Context) error {
	if err := program.Pause(ctx, settling); err != nil {
		return err
	}
	s, err := r.gauge.read(ctx, r.stage.Operator.PID())
	r.full = s.watches
	r.dice, r.began = r.stage.Random("faults"), time.Now()
	return err
}

// last is what is done once, after all rounds.
func (r *run) last(ctx context.Context, all []kit.Node) error {
	if err := r.stage.Past(); err != nil {
		return err
	}
	if err := r.stage.Operator.Stop(10 * time.Second); err != nil {
		return err
	}
	if err := r.embedded(ctx, all[:5]); err != nil {
		return err
	}
	return r.stage.Calm(ctx)
}

// round maintains nodes at random with faults for a twentieth of the time, then ends every maintenance and takes a
// sample.
func (r *run) round(ctx context.Context, all []kit.Node) error {
	busy := max(8*time.Second, r.length/20)
	err := r.stage.While(ctx, all, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, busy, errOver)
		defer cancel()
		var sampling sync.WaitGroup
		sampling.Go(func() { r.sampleAllTheWhile(ctx) })
		err := r.disturb(ctx)
		sampling.Wait()
		if errors.Is(err, errOver) {
			err = nil
		}
		return errors.Join(err, r.mend(context.WithoutCancel(ctx)))
	})
	if err != nil {
		return err
	}
	if err := r.stage.Calm(ctx); err != nil {
		return err
	}
	r.stage.Say("%d connections to the webhook ended", r.hooks.Cut())
	if err := r.rest(ctx); err != nil {
		return err
	}
	return r.take(ctx, quiet)
}

// rest waits until the operator is at rest: all is watched that was before the first round (an informer whose connection was
// broken several times in a row pauses for up to a minute), and in settling no goroutine has come or gone.
func (r *run) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, kit.Patience, errRestless)
	defer cancel()
	var was sample
	for {
		s, err := r.gauge.read(ctx, r.stage.Operator.PID())
		if err != nil || s.watches >= r.full && s.goroutines == was.goroutines {
			return err
		}
		was = s
		if err := program.Pause(ctx, settling); err != nil {
			return fmt.Errorf("%.0f of %.0f watches, %.0f goroutines: %w", s.watches, r.full, s.goroutines, err)
		}
	}
}

var errRestless = errors.New("the operator does not come to rest")

var errOver = errors.New("the round is over")

// sampleAllTheWhile takes a sample now and then. While the operator is cut off it does not answer, which is no
// error: only the quiet samples have to be there.
func (r *run) sampleAllTheWhile(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.take(ctx, busy); err != nil {
				r.stage.Say("no sample: %v", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// take takes a sample.
func (r *run) take(ctx context.Context, when when) error {
	r.mu.Lock()
	pid, process := r.stage.Operator.PID(), r.process
	r.mu.Unlock()
	s, err := r.gauge.read(ctx, pid)
	if err != nil {
		return fmt.Errorf("taking a sample: %w", err)
	}
	s.when, s.at, s.process, s.ended = when, time.Since(r.began), process, r.stage.Finished.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, s)
	r.stage.Say("%s", s)
	return nil
}

// quiet returns the quiet samples of the last process.
func (r *run) quiet() []sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sample
	for _, s := range r.samples {
		if s.when == quiet && s.process == r.process {
			out = append(out, s)
		}
	}
	return out
}
