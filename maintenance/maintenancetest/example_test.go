// SPDX-License-Identifier: Apache-2.0

package maintenancetest_test

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/maintenance/maintenancetest"
)

func Example() {
	web := map[string]string{"app": "web"}
	c := maintenancetest.New(maintenancetest.Options{},
		maintenancetest.Node("n1"),
		maintenancetest.Pod("shop", "web-0", "n1", maintenancetest.Labels(web)),
	)
	defer c.Close()
	c.AddBudget("shop", "web", web, 1)

	evict := func() error {
		return c.Client().PolicyV1().Evictions("shop").Evict(context.Background(),
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}})
	}
	fmt.Println("blocked:", evict())
	c.SetDisruptionsAllowed("shop", "web", 1)
	fmt.Println("allowed:", evict())
	fmt.Println("pods left:", len(c.Pods()))
	fmt.Println("writes:", len(c.Writes()))
	// Output:
	// blocked: Cannot evict pod as it would violate the pod's disruption budget.
	// allowed: <nil>
	// pods left: 0
	// writes: 2
}
