// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxBody is how many bytes a request to the webhook may have. An API server takes no object that is larger,
// and controller-runtime would read more than twice that into memory for anybody who reaches the port.
const maxBody = 3 << 20

// maxDiscarded is how much more of it is read and thrown away: who is still sending would not see the answer.
const maxDiscarded = 16 << 20

// noLarger refuses a request of more than maxBody bytes with 413 and a text, which an API server hands on to its
// client. An AdmissionReview could not say it: nobody knows the UID it must name before the body has been read.
func noLarger(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		switch {
		case err != nil:
			http.Error(w, fmt.Sprintf("reading the request: %v", err), http.StatusBadRequest)
		case len(body) > maxBody:
			_, _ = io.CopyN(io.Discard, r.Body, maxDiscarded) // at its end or not, the answer is the same
			http.Error(w, fmt.Sprintf("the request is larger than %d bytes", maxBody), http.StatusRequestEntityTooLarge)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}
