// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withAuthority returns a webhook configuration in which each webhook trusts ca, and whether that is a
// change. It is unstructured so that a field which this program does not know survives the write.
func withAuthority(config *unstructured.Unstructured, ca []byte) (*unstructured.Unstructured, bool, error) {
	out := config.DeepCopy()
	hooks, _, err := unstructured.NestedSlice(out.Object, "webhooks")
	if err != nil {
		return nil, false, fmt.Errorf("reading webhook configuration %q: %w", config.GetName(), err)
	}
	want, changed := base64.StdEncoding.EncodeToString(ca), false
	for i := range hooks {
		hook, ok := hooks[i].(map[string]any)
		if !ok {
			return nil, false, fmt.Errorf("reading webhook configuration %q: webhook %d is a %T", config.GetName(), i, hooks[i])
		}
		if has, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle"); has == want {
			continue
		}
		if err := unstructured.SetNestedField(hook, want, "clientConfig", "caBundle"); err != nil {
			return nil, false, fmt.Errorf("changing webhook configuration %q: %w", config.GetName(), err)
		}
		changed = true
	}
	if !changed {
		return config, false, nil
	}
	if err := unstructured.SetNestedSlice(out.Object, hooks, "webhooks"); err != nil {
		return nil, false, fmt.Errorf("changing webhook configuration %q: %w", config.GetName(), err)
	}
	return out, true, nil
}
