// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// TestMain takes the pause out of client-go's handling of errors: it remembers when the last one was, and
// the bubbles of tests begin decades before the process did. What clients log of the faults they meet, and they
// meet many, would hide what a test says.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
