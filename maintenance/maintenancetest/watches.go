// SPDX-License-Identifier: Apache-2.0

package maintenancetest

// The methods in this file do to open watches what servers and networks do.

// CloseWatches ends every open watch of a resource ("pods"; "*" is every resource), as a
// server does now and then. Readers get what was already sent, then a closed channel.
func (c *Cluster) CloseWatches(resource string) {
	c.eachWatch(resource, (*watcher).end)
}

// PauseWatches keeps back the events of a resource ("pods"), of open watches and of those
// to come, so that their readers see an old state until ResumeWatches. Reads and writes
// are not held up. An event that is being handed to a slow reader right now still gets
// through.
func (c *Cluster) PauseWatches(resource string) {
	c.mu.Lock()
	c.paused[resource] = true
	c.mu.Unlock()
	c.eachWatch(resource, (*watcher).hold)
}

// ResumeWatches delivers what PauseWatches kept back, in order, and all that follows.
func (c *Cluster) ResumeWatches(resource string) {
	c.mu.Lock()
	delete(c.paused, resource)
	c.mu.Unlock()
	c.eachWatch(resource, (*watcher).resume)
}

// ExpireHistory forgets all history. A watch that starts from an earlier version than the
// latest is answered with an error event 410 Expired; open watches go on.
func (c *Cluster) ExpireHistory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.expired, c.store.history = c.store.rv, nil
}

// Watches counts the open watches of a resource ("*": of every resource).
func (c *Cluster) Watches(resource string) int {
	n := 0
	c.eachWatch(resource, func(*watcher) { n++ })
	return n
}

func (c *Cluster) eachWatch(resource string, f func(*watcher)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.store.watchers {
		if resource == "*" || w.gvr.Resource == resource {
			f(w)
		}
	}
}
