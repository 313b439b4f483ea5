// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain takes the pause out of client-go's handling of errors: it remembers when the last one was, and
// the bubbles of tests begin decades before the process did.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}
