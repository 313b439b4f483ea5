// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// AuditEvent is one request that the API server answered.
type AuditEvent struct {
	ID        string
	Time      time.Time // when the request came in
	Answered  time.Time // when Stage was reached
	User      string
	UserAgent string
	// Credential tells two tokens of one service account apart, as JTI= and the token's jti; empty if the user
	// came with anything else.
	Credential string
	Verb       string
	// Group, Resource, Subresource, Namespace and Name say what was asked for; all
	// are empty for a request such as /readyz.
	Group, Resource, Subresource, Namespace, Name string
	URI                                           string
	// Code is the HTTP status; 0 for a watch that is still open.
	Code int
	// Stage is the last one that was logged: ResponseStarted for an open watch,
	// ResponseComplete, or Panic.
	Stage string
}

// credentialKey is under what the API server notes the token that a user came with.
const credentialKey = "authentication.kubernetes.io/credential-id"

// AuditFilter picks audit events. A zero field picks all.
type AuditFilter struct {
	User  string
	Verb  string
	Since time.Time
}

func (f AuditFilter) matches(e AuditEvent) bool {
	return (f.User == "" || f.User == e.User) && (f.Verb == "" || f.Verb == e.Verb) && !e.Time.Before(f.Since)
}

// auditPolicy logs every request at one level. That a request has come in is not
// logged, only how it ended, and when the answer to a watch began.
func auditPolicy(level string) string {
	return fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: %s\n", level)
}

// AuditLog returns the path of the audit log, one JSON object a line.
func (c *Cluster) AuditLog() string { return c.layout.auditLog() }

// ReadAudit returns the requests that the filter picks, one event each, in the
// order in which they were first logged. The API server logs a request just after
// it has answered it, so a test that has its answer should poll.
func (c *Cluster) ReadAudit(f AuditFilter) ([]AuditEvent, error) {
	file, err := os.Open(c.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("reading audit log: %w", err)
	}
	defer file.Close()
	return parseAudit(file, f)
}

// parseAudit keeps of each request its last stage. A last line without its end is
// still being written, and left out.
func parseAudit(r io.Reader, f AuditFilter) ([]AuditEvent, error) {
	var out []AuditEvent
	seen := map[string]int{}
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading audit log: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := parseAuditLine(line)
		if err != nil {
			return nil, fmt.Errorf("reading audit log, line %d: %w", n, err)
		}
		if !f.matches(e) {
			continue
		}
		if i, ok := seen[e.ID]; ok {
			out[i] = e
			continue
		}
		seen[e.ID] = len(out)
		out = append(out, e)
	}
}

func parseAuditLine(line []byte) (AuditEvent, error) {
	var raw struct {
		AuditID, Stage, RequestURI, Verb, UserAgent string
		User                                        struct {
			Username string
			Extra    map[string][]string
		}
		ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus           struct{ Code int }
		RequestReceivedTimestamp time.Time
		StageTimestamp           time.Time
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return AuditEvent{}, err
	}
	return AuditEvent{
		ID: raw.AuditID, Time: raw.RequestReceivedTimestamp, Answered: raw.StageTimestamp, User: raw.User.Username, UserAgent: raw.UserAgent,
		Credential: strings.Join(raw.User.Extra[credentialKey], " "), Verb: raw.Verb, Group: raw.ObjectRef.APIGroup, Resource: raw.ObjectRef.Resource,
		Subresource: raw.ObjectRef.Subresource, Namespace: raw.ObjectRef.Namespace, Name: raw.ObjectRef.Name,
		URI: raw.RequestURI, Code: raw.ResponseStatus.Code, Stage: raw.Stage,
	}, nil
}
