// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func TestStagesParse(t *testing.T) {
	type stage struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			ResourceRef struct{ Kind string }
			Selector    struct{ MatchExpressions []map[string]any }
			Steps       []map[string]any
		}
	}
	in := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(Stages())))
	kinds := map[string]int{}
	names := map[string]bool{}
	for {
		doc, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		var s stage
		require.NoError(t, yaml.Unmarshal(doc, &s))
		require.Equal(t, "kwok.x-k8s.io/v1alpha1", s.APIVersion)
		require.Equal(t, "Stage", s.Kind)
		require.False(t, names[s.Metadata.Name], "two stages are called %s", s.Metadata.Name)
		require.NotEmpty(t, s.Spec.Selector.MatchExpressions, "%s would be for every object", s.Metadata.Name)
		require.NotEmpty(t, s.Spec.Steps, "%s would do nothing", s.Metadata.Name)
		names[s.Metadata.Name] = true
		kinds[s.Spec.ResourceRef.Kind]++
	}
	require.Equal(t, map[string]int{"Node": 3, "Pod": 5}, kinds)
}

func TestStagesKnowTheAnnotations(t *testing.T) {
	for _, annotation := range []string{PodPhaseAnnotation, ReadyAnnotation, GoneAfterAnnotation} {
		require.Contains(t, Stages(), `"`+annotation+`"`, "the constant and the stages must agree")
	}
	require.Contains(t, Stages(), "kubeletVersion: "+KubernetesVersion, "nodes report the cluster's version")
}
