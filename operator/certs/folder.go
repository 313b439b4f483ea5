// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a certificate and its key in a folder.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// Folder returns the folder from which the webhook server takes its certificate: the given one, else
// k8s-webhook-server/serving-certs below tmp if there is a certificate in it. Empty means that there is
// none, so that the certificate is to be managed. A given folder without tls.crt or tls.key is an error.
func Folder(given, tmp string) (string, error) {
	if given != "" {
		for _, name := range []string{certFile, keyFile} {
			if _, err := os.Stat(filepath.Join(given, name)); err != nil {
				return "", fmt.Errorf("looking for %s in the certificate folder: %w", name, err)
			}
		}
		return given, nil
	}
	usual := filepath.Join(tmp, "k8s-webhook-server", "serving-certs")
	_, err := os.Stat(filepath.Join(usual, certFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for a certificate of the webhook: %w", err)
	}
	return usual, nil
}
