// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFolder(t *testing.T) {
	const usual = "k8s-webhook-server/serving-certs"
	for _, tc := range []struct {
		reason  string
		files   []string // below the folder that is tmp and, as "given", the given one
		given   string
		want    string
		wantErr string
	}{
		{reason: "nothing anywhere: to be managed"},
		{reason: "the usual folder is filled", files: []string{usual + "/tls.crt"}, want: usual},
		{reason: "the usual folder is there but empty", files: []string{usual + "/other"}},
		{reason: "the given folder goes before the usual one", given: "given", files: []string{usual + "/tls.crt", "given/tls.crt", "given/tls.key"}, want: "given"},
		{reason: "the given folder does not exist", given: "given", files: []string{usual + "/tls.crt"}, wantErr: "looking for tls.crt in the certificate folder"},
		{reason: "the given folder has no key", given: "given", files: []string{"given/tls.crt"}, wantErr: "looking for tls.key in the certificate folder"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tmp := t.TempDir()
			for _, f := range tc.files {
				path := filepath.Join(tmp, f)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			in := func(name string) string {
				if name == "" {
					return ""
				}
				return filepath.Join(tmp, name)
			}
			got, err := Folder(in(tc.given), tmp)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, in(tc.want), got)
		})
	}
}
