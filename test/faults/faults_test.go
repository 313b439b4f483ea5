// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodemaint/nodemaint/apis/v1beta1"
	"github.com/nodemaint/nodemaint/test/deploy"
)

func TestChoose(t *testing.T) {
	for _, tc := range []struct {
		reason, names string
		want          []string
		fails         bool
	}{
		{reason: "one", names: "kill", want: []string{"kill"}},
		{reason: "some, in the order asked for", names: "storm,kill", want: []string{"storm", "kill"}},
		{reason: "one that does not exist", names: "kill,nothing", fails: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			all, err := choose(tc.names)
			require.Equal(t, tc.fails, err != nil)
			require.Equal(t, tc.want, namesOf(all))
		})
	}
	all, err := choose("")
	require.NoError(t, err)
	require.Equal(t, namesOf(faults()), namesOf(all))
}

func namesOf(all []fault) (out []string) {
	for _, f := range all {
		out = append(out, f.name())
	}
	return out
}

func TestEveryFaultHasANameAndATitle(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults() {
		require.Regexp(t, `^[a-z][a-z-]*$`, f.name(), "it is part of names of nodes")
		require.False(t, seen[f.name()], f.name())
		seen[f.name()] = true
		require.NotEmpty(t, f.title())
		require.Contains(t, listed(), f.name())
	}
}

func TestTableAndJudge(t *testing.T) {
	results := []result{
		{fault: kill{}, survived: "3 kills", looks: 7, ended: 5, took: 1500 * time.Millisecond},
		{fault: cut{}, survived: "not this", err: errors.New("node n is lost")},
	}
	lines := strings.Split(table(results), "\n")
	require.Equal(t, []string{"kill", "3", "kills", "5", "7", "2s"}, strings.Fields(lines[1]))
	require.Equal(t, []string{"cut", "BROKEN", "0", "0", "0s"}, strings.Fields(lines[2]))

	require.NoError(t, judge(results[:1], 1))
	require.EqualError(t, judge(results, 2), "cut: node n is lost")
	require.EqualError(t, judge(results[:1], 3), "2 of 3 faults did not happen")
}

func TestRunnerSaysWhereItIs(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out, began: time.Now()}
	r.enter("1/2 kill")
	r.say("killed %d times", 3)
	require.Equal(t, "   0s  1/2 kill: killed 3 times\n", out.String())
}

// What is put into the webhook's Secret is over, and good for nothing else.
func TestExpired(t *testing.T) {
	ca, err := deploy.NewAuthority("ca", time.Now().Add(time.Hour))
	require.NoError(t, err)
	data := map[string][]byte{}
	data["ca.crt"], data["ca.key"], err = ca.PEM()
	require.NoError(t, err)
	verify := func() error {
		pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(data["ca.crt"]))
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: deploy.WebhookHost})
		return err
	}
	require.NoError(t, sign(data, ca, time.Now().Add(time.Hour)))
	require.NoError(t, verify())

	require.NoError(t, expireCertificate(data))
	require.ErrorContains(t, verify(), "expired")
	require.Equal(t, ca.CertPEM(), data["ca.crt"], "by the same authority")

	require.NoError(t, expireAuthority(data))
	require.ErrorContains(t, verify(), "expired")
	require.NotEqual(t, ca.CertPEM(), data["ca.crt"])

	data["ca.key"] = []byte("rubbish")
	require.Error(t, expireCertificate(data))
}

func TestWhatAStatusSays(t *testing.T) {
	with := func(condition, reason string, count int) v1beta1.NodeMaintenanceStatus {
		st := v1beta1.NodeMaintenanceStatus{ErrorOnLeaseCount: count}
		st.Conditions = append(st.Conditions, conditionOf("Other", "Whatever"), conditionOf(condition, reason))
		return st
	}
	require.True(t, blocked(with(v1beta1.ConditionDrained, v1beta1.ReasonBlockedByBudget, 0)))
	require.False(t, blocked(with(v1beta1.ConditionDrained, v1beta1.ReasonDraining, 0)))
	require.False(t, blocked(v1beta1.NodeMaintenanceStatus{}))
	require.True(t, unharmed(with(v1beta1.ConditionLeaseHeld, v1beta1.ReasonHeld, 0)))
	require.False(t, unharmed(with(v1beta1.ConditionLeaseHeld, v1beta1.ReasonHeld, 1)))
	require.False(t, unharmed(with(v1beta1.ConditionLeaseHeld, v1beta1.ReasonRefused, 0)))
}

func conditionOf(name, reason string) metav1.Condition {
	return metav1.Condition{Type: name, Reason: reason}
}
