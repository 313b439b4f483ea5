// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// serve takes a request through its life: recorded, met by the hook and the rules, carried
// out, answered.
func (c *Cluster) serve(ctx context.Context, r *Request) (obj runtime.Object, err error) {
	err = c.serveWith(ctx, r, func() error {
		obj, err = c.carryOut(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// serveWatch does the same for the opening of a watch.
func (c *Cluster) serveWatch(ctx context.Context, r *Request) (w watch.Interface, err error) {
	err = c.serveWith(ctx, r, func() error {
		w, err = c.watch(ctx, r)
		return err
	})
	if err != nil {
		if w != nil {
			w.Stop()
		}
		return nil, err
	}
	return w, nil
}

func (c *Cluster) serveWith(ctx context.Context, r *Request, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", r.Verb, r.path(), err)
	}
	hook, rules := c.arrive(r)
	err := c.meet(ctx, r, hook, rules)
	if err == nil {
		err = effect()
		for _, rule := range rules {
			if lost := rule.after(ctx, r.N); lost != nil {
				err = lost
				break
			}
		}
	}
	c.leave(r, err)
	return err
}

// meet is what a request passes before it takes effect.
func (c *Cluster) meet(ctx context.Context, r *Request, hook func(Request) error, rules []*Rule) error {
	select {
	case <-c.closed:
		return errClosed
	default:
	}
	if hook != nil {
		if err := hook(r.copied()); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := rule.before(ctx, r.N); err != nil {
			return err
		}
	}
	return nil
}

// arrive records a request and finds what meets it.
func (c *Cluster) arrive(r *Request) (func(Request) error, []*Rule) {
	c.mu.Lock()
	if r.Write() {
		c.writes++
		r.N = c.writes
	}
	c.records = append(c.records, r)
	c.inFlight[r] = struct{}{}
	hook, rules, seen := c.hook, append([]*Rule(nil), c.rules...), r.copied()
	c.wake()
	c.mu.Unlock()

	var met []*Rule
	for _, rule := range rules { // their functions may use the cluster
		if (rule.match == nil || rule.match(seen)) && rule.take() {
			met = append(met, rule)
		}
	}
	return hook, met
}

// leave records the answer.
func (c *Cluster) leave(r *Request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Answered, r.Err = true, err
	delete(c.inFlight, r)
	c.wake()
}

// carryOut does what a request asks for.
func (c *Cluster) carryOut(ctx context.Context, r *Request) (runtime.Object, error) {
	if len(r.dryRun) > 0 {
		return nil, apierrors.NewBadRequest("maintenancetest does not support dryRun")
	}
	if r.Verb == "create" && r.Subresource == "eviction" {
		return nil, c.evict(ctx, r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Verb {
	case "get":
		return c.get(r)
	case "list":
		return c.list(r)
	case "create":
		return c.create(r)
	case "update":
		return c.update(r)
	case "patch":
		return c.patch(r)
	case "delete":
		return nil, c.delete(r)
	case "deletecollection":
		return c.deleteCollection(r)
	}
	return nil, unsupported(r)
}
