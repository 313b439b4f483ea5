// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodemaint/nodemaint/test/deploy"
)

// What the manifests grant, to whom, and nothing else.
func TestTheRightsAreTheseAndNoOthers(t *testing.T) {
	t.Parallel()
	const crd, rbac = "nodemaintenance.medik8s.io/nodemaintenances", "node-maintenance-operator-"
	everything, err := shared.kustomize(t.Context())
	require.NoError(t, err)
	roles, err := granted(everything)
	require.NoError(t, err)
	rights, bound := map[string][]string{}, map[string][]string{}
	for name, r := range roles {
		rights[name] = r.rights
		if len(r.to) > 0 {
			bound[name] = r.to
		}
	}
	require.Equal(t, map[string][]string{
		"ClusterRole " + rbac + "manager-role": lines(
			crd+": get list watch patch delete", crd+"/status: patch",
			"/nodes: get list watch patch", "/pods: get list watch", "/pods/eviction: create",
			"apps/daemonsets: get list watch", "policy/poddisruptionbudgets: list watch",
			"coordination.k8s.io/leases: get list watch create update delete", "/namespaces: create", "/events: create patch",
			"admissionregistration.k8s.io/validatingwebhookconfigurations: list watch",
			"admissionregistration.k8s.io/validatingwebhookconfigurations "+deploy.WebhookConfig+": update",
		),
		"ClusterRole " + rbac + "metrics-auth-role": lines(
			"authentication.k8s.io/tokenreviews: create", "authorization.k8s.io/subjectaccessreviews: create",
		),
		"Role " + rbac + "leader-election-role":     lines("coordination.k8s.io/leases: get create update", "/events: create patch"),
		"Role " + rbac + "webhook-certificate-role": lines("/secrets webhook-server-cert: list watch create patch update"),
		"ClusterRole " + rbac + "nodemaintenance-viewer-role": lines(
			crd+": get list watch", crd+"/status: get",
		),
		"ClusterRole " + rbac + "nodemaintenance-editor-role": lines(
			crd+": get list watch create update patch delete", crd+"/status: get",
		),
		"ClusterRole " + rbac + "metrics-reader": lines("URL /metrics: get"),
	}, rights)
	require.Equal(t, map[string][]string{
		"ClusterRole " + rbac + "manager-role":      {operator},
		"ClusterRole " + rbac + "metrics-auth-role": {operator},
		"Role " + rbac + "leader-election-role":     {operator},
		"Role " + rbac + "webhook-certificate-role": {operator},
	}, bound)
	require.NotContains(t, everything, `'*'`)
	require.NotContains(t, everything, `"*"`)
}

// lines makes "group/resource: get list" into a line for each verb.
func lines(rules ...string) []string {
	var out []string
	for _, r := range rules {
		what, verbs, _ := strings.Cut(r, ": ")
		for verb := range strings.FieldsSeq(verbs) {
			out = append(out, what+" "+verb)
		}
	}
	slices.Sort(out)
	return out
}

// operator is to whom rights are bound.
const operator = "ServiceAccount " + deploy.Namespace + "/" + deploy.ServiceAccount

// role is what a role grants, where, and to whom it is bound.
type role struct {
	namespace string   // empty for a ClusterRole
	rights    []string // a line for each resource and verb
	to        []string
}

// granted returns the roles in the manifests, each under its kind and name.
func granted(manifests string) (map[string]*role, error) {
	out := map[string]*role{}
	of := func(kind, name string) *role {
		at := kind + " " + name
		if out[at] == nil {
			out[at] = &role{}
		}
		return out[at]
	}
	for doc := range strings.SplitSeq(manifests, "\n---\n") {
		var o struct { // a role or a binding, of the cluster or of a namespace
			To       rbacv1.RoleRef `json:"roleRef"`
			Kind     string
			Metadata metav1.ObjectMeta
			Rules    []rbacv1.PolicyRule
			Subjects []rbacv1.Subject
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, err
		}
		switch o.Kind {
		case "Role", "ClusterRole":
			r := of(o.Kind, o.Metadata.Name)
			r.namespace = o.Metadata.Namespace
			for _, rule := range o.Rules {
				r.rights = append(r.rights, lines(spelled(rule)...)...)
			}
			slices.Sort(r.rights)
		case "RoleBinding", "ClusterRoleBinding":
			r := of(o.To.Kind, o.To.Name)
			for _, s := range o.Subjects {
				r.to = append(r.to, s.Kind+" "+s.Namespace+"/"+s.Name)
			}
		}
	}
	return out, nil
}

func spelled(rule rbacv1.PolicyRule) []string {
	verbs := ": " + strings.Join(rule.Verbs, " ")
	var out []string
	for _, url := range rule.NonResourceURLs {
		out = append(out, "URL "+url+verbs)
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			what := group + "/" + resource
			if len(rule.ResourceNames) == 0 {
				out = append(out, what+verbs)
			}
			for _, name := range rule.ResourceNames {
				out = append(out, what+" "+name+verbs)
			}
		}
	}
	return out
}

func TestOneCanReadAnotherCanEditAndAThirdSeesTheMetrics(t *testing.T) {
	t.Parallel()
	e := shared
	user := map[string]string{}
	for _, role := range []string{"nodemaintenance-viewer-role", "nodemaintenance-editor-role", "metrics-reader"} {
		user[role] = role + "-" + suffix(t)
		e.bind(t, "node-maintenance-operator-"+role, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user[role]})
	}
	viewer, editor, reader := user["nodemaintenance-viewer-role"], user["nodemaintenance-editor-role"], user["metrics-reader"]
	const group, crd = "nodemaintenance.medik8s.io", "nodemaintenances"
	of := func(group, resource, sub string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub}
	}
	ours, status := of(group, crd, ""), of(group, crd, "status")
	for _, row := range []struct {
		who, verb string
		what      authorizationv1.ResourceAttributes
		may       bool
	}{
		{viewer, "get", ours, true},
		{viewer, "watch", ours, true},
		{viewer, "get", status, true},
		{viewer, "create", ours, false},
		{viewer, "delete", ours, false},
		{editor, "list", ours, true},
		{editor, "create", ours, true},
		{editor, "patch", ours, true},
		{editor, "delete", ours, true},
		{editor, "get", status, true},
		{editor, "patch", status, false},
		{editor, "patch", of("", "nodes", ""), false},
		{reader, "get", ours, false},
		{deploy.User, "patch", status, true},
		{deploy.User, "create", of("", "pods", "eviction"), true},
		{deploy.User, "create", ours, false},
		{deploy.User, "get", of("", "secrets", ""), false},
		{deploy.User, "delete", of("", "pods", ""), false},
		{deploy.User, "update", of("", "nodes", ""), false},
		{deploy.User, "delete", of("", "nodes", ""), false},
		{deploy.User, "update", of("admissionregistration.k8s.io", "validatingwebhookconfigurations", ""), false},
	} {
		t.Run(strings.Join([]string{row.who, row.verb, row.what.Resource, row.what.Subresource}, " "), func(t *testing.T) {
			row.what.Verb = row.verb
			e.requireRight(t, row.may, authorizationv1.SubjectAccessReviewSpec{User: row.who, ResourceAttributes: &row.what})
		})
	}
	for who, may := range map[string]bool{reader: true, viewer: false, editor: false, deploy.User: false} {
		t.Run(fmt.Sprintf("%s get /metrics", who), func(t *testing.T) {
			e.requireRight(t, may, authorizationv1.SubjectAccessReviewSpec{
				User: who, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			})
		})
	}
}

func (e *env) requireRight(t *testing.T, may bool, spec authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	allowed := func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		require.NoError(t, e.Create(t.Context(), review))
		return review.Status.Allowed
	}
	if may {
		e.eventually(t, "the right to be known", allowed)
		return
	}
	require.False(t, allowed())
}

// bind gives a ClusterRole to a subject until the test ends.
func (e *env) bind(t *testing.T, role string, subject rbacv1.Subject) {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + suffix(t)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
	require.NoError(t, e.Create(t.Context(), b))
	t.Cleanup(func() { _ = e.Delete(context.Background(), b) })
}
