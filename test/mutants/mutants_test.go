// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApply(t *testing.T) {
	for _, tc := range []struct{ reason, text, want, err string }{
		{reason: "it is there", text: "if a && b {", want: "if a {"},
		{reason: "it is not there any more", text: "if b && a {", err: "0 times in f.go"},
		{reason: "nobody knows which one is meant", text: "a && b, a && b", err: "2 times in f.go"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := mutant{file: "f.go", was: "a && b", is: "a"}.apply(tc.text)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

// Whoever moves code that a mutant is in moves the mutant too.
func TestEachMutantHasItsPlace(t *testing.T) {
	for _, m := range mutants {
		_, err := m.overlay(filepath.Join("..", ".."), t.TempDir())
		require.NoError(t, err, m.bug)
	}
}

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		out       []string
		want, err string
	}{
		{reason: "all is well", out: []string{`{"Action":"pass","Test":"TestA"}`, `{"Action":"pass"}`}},
		{
			reason: "a part of a test fails", want: "TestB",
			out: []string{`{"Action":"pass","Test":"TestA"}`, `{"Action":"fail","Test":"TestB/of/it"}`, `{"Action":"fail","Test":"TestB"}`, `{"Action":"fail"}`},
		},
		{
			reason: "it cannot be compiled", err: "it does not compile: undefined: x",
			out: []string{`{"Action":"build-output","Output":"undefined: x"}`, `{"Action":"build-fail"}`, `{"Action":"fail","FailedBuild":"p"}`},
		},
		{reason: "that is no answer", out: []string{"go: no such package"}, err: "reading what go test says"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := failure([]byte(strings.Join(tc.out, "\n")))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
