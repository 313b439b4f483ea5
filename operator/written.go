// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sync"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
)

// written remembers objects as we wrote them last until the cache shows them, so that the next pass does not
// begin from what stood before: its write would only collide with our own.
type written struct {
	mu   sync.Mutex
	last map[string]lastWrite // by name
}

type lastWrite struct {
	object *v1beta1.NodeMaintenance
	older  map[string]bool // resource versions that the cache may still show
}

func newWritten() *written { return &written{last: map[string]lastWrite{}} }

// put notes that the object of that resource version has become nm by our write.
func (w *written) put(before string, nm *v1beta1.NodeMaintenance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.last[nm.Name]
	if l.object == nil || l.object.UID != nm.UID {
		l.older = map[string]bool{}
	}
	if before != nm.ResourceVersion {
		l.older[before] = true
	}
	l.object = nm.DeepCopy()
	w.last[nm.Name] = l
}

// freshest returns nm, or what we made of it if the cache has yet to show that.
func (w *written) freshest(nm *v1beta1.NodeMaintenance) *v1beta1.NodeMaintenance {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.last[nm.Name]
	if l.object != nil && l.object.UID == nm.UID && l.older[nm.ResourceVersion] {
		return l.object.DeepCopy()
	}
	delete(w.last, nm.Name)
	return nm
}

func (w *written) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, name)
}
