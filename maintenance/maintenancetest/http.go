// SPDX-License-Identifier: Apache-2.0

package maintenancetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Config returns what a real client needs to use the cluster: one of client-go, of
// controller-runtime, or any other. Its requests go through no network, but through all of
// the client's own code: encoding, retries, RESTClient. Discovery is not served, so a client
// that maps kinds to resources needs a mapper of its own. What a rule answers that is no
// status of the API, such as ErrInjected, breaks the connection.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: "http://maintenancetest", Transport: front{c}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// front serves the cluster as HTTP.
type front struct{ c *Cluster }

// RoundTrip implements http.RoundTripper.
func (f front) RoundTrip(hr *http.Request) (*http.Response, error) {
	r, err := f.requestOf(hr)
	if err != nil {
		return respond(hr, http.StatusBadRequest, &apierrors.NewBadRequest(err.Error()).ErrStatus)
	}
	if r.Verb == "watch" {
		w, err := f.c.serveWatch(hr.Context(), r)
		if err != nil {
			return refuse(hr, err)
		}
		return f.stream(hr, w), nil
	}
	obj, err := f.c.serve(hr.Context(), r)
	if err != nil {
		return refuse(hr, err)
	}
	code := http.StatusOK
	if r.Verb == "create" {
		code = http.StatusCreated
	}
	if obj == nil {
		return respond(hr, code, &metav1.Status{Status: metav1.StatusSuccess, Code: int32(code)})
	}
	return respond(hr, code, f.kinded(obj))
}

// requestOf reads a request off its URL and its body.
func (f front) requestOf(hr *http.Request) (*Request, error) {
	r := &Request{}
	if err := r.readPath(hr.URL.Path); err != nil {
		return nil, err
	}
	r.kind = kindOf(f.c.scheme, r.gvr())
	if err := r.readQuery(hr.URL.Query()); err != nil {
		return nil, err
	}
	var body []byte
	if hr.Body != nil {
		var err error
		if body, err = io.ReadAll(hr.Body); err != nil {
			return nil, err
		}
	}
	switch hr.Method {
	case http.MethodGet:
		r.Verb = "get"
		if r.listOptions.Watch {
			r.Verb = "watch"
		} else if r.Name == "" {
			r.Verb = "list"
		}
	case http.MethodPost:
		r.Verb = "create"
		return r, f.readObject(r, body)
	case http.MethodPut:
		r.Verb = "update"
		return r, f.readObject(r, body)
	case http.MethodPatch:
		r.Verb, r.Patch, r.PatchType = "patch", body, types.PatchType(hr.Header.Get("Content-Type"))
	case http.MethodDelete:
		if r.Verb = "delete"; r.Name == "" {
			r.Verb = "deletecollection"
		}
		var o metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &o); err != nil {
				return nil, err
			}
		}
		r.deleteBy(&o)
	default:
		return nil, fmt.Errorf("method %s", hr.Method)
	}
	return r, nil
}

// readPath takes apart /api/v1 or /apis/GROUP/VERSION, then [/namespaces/NS]/RESOURCE[/NAME[/SUBRESOURCE]].
func (r *Request) readPath(path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, r.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return fmt.Errorf("path %s", path)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return nil
}

func (r *Request) readQuery(q url.Values) error {
	var list metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &list, nil); err != nil {
		return err
	}
	r.selectBy(list)
	r.dryRun = q["dryRun"]
	return nil
}

func (f front) readObject(r *Request, body []byte) error {
	o, _, err := serializer.NewCodecFactory(f.c.scheme).UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return err
	}
	r.Object = o
	r.readBody()
	return nil
}

// stream writes what a watch sees into the body of a response, until either ends.
func (f front) stream(hr *http.Request, w watch.Interface) *http.Response {
	body, to := io.Pipe()
	stop := context.AfterFunc(hr.Context(), func() { _ = to.CloseWithError(hr.Context().Err()) })
	go func() {
		defer stop()
		defer w.Stop()
		defer func() { _ = to.Close() }()
		for e := range w.ResultChan() {
			line, err := json.Marshal(metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Object: f.kinded(e.Object)}})
			if err == nil {
				_, err = to.Write(line)
			}
			if err != nil { // the reader has gone
				return
			}
		}
	}()
	out := response(hr, http.StatusOK)
	out.Body = streamed{body, w}
	return out
}

// streamed is the body of a watch: whoever closes it ends the watch.
type streamed struct {
	*io.PipeReader
	w watch.Interface
}

func (s streamed) Close() error {
	s.w.Stop()
	return s.PipeReader.Close()
}

// kinded returns a copy of an object that says what it is, as everything does on the wire.
func (f front) kinded(o runtime.Object) runtime.Object {
	o = o.DeepCopyObject()
	if kinds, _, err := f.c.scheme.ObjectKinds(o); err == nil {
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return o
}

// refuse answers with a status of the API; any other error breaks the connection.
func refuse(hr *http.Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	s := status.Status()
	out, err := respond(hr, int(s.Code), &s)
	if err == nil && s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		out.Header.Set("Retry-After", fmt.Sprint(s.Details.RetryAfterSeconds))
	}
	return out, err
}

func respond(hr *http.Request, code int, o runtime.Object) (*http.Response, error) {
	if s, ok := o.(*metav1.Status); ok {
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	out := response(hr, code)
	out.Body = io.NopCloser(bytes.NewReader(data))
	return out, nil
}

func response(hr *http.Request, code int) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: hr,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": []string{runtime.ContentTypeJSON}},
	}
}
