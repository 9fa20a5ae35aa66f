package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// apiServer answers as a kube-apiserver does, as far as the adapter and the tests' controllers ask: objects by path,
// lists in pages, watches, merge patches on the condition of a version, reviews of rights. Its objects have the shape
// of the real ones.
type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	objects map[string]tree // by path
	events  []event
	changed chan struct{}

	kueue    []string // versions that are offered
	token    string   // that is wanted; "" = any
	may      func(verb, resource string) bool
	down     int                     // requests that are refused with 503
	compact  int                     // watches from before this version get 410
	old      bool                    // as before 1.36: nodes of a Job that has been started cannot change
	conflict int                     // patches that somebody else comes before
	requests []string                // method and path of all that have come
	before   func(r *http.Request)   // every request
	refuse   func(*http.Request) int // a status to refuse with
	log      []tree                  // patches
}

type event struct {
	version int
	kind    string
	path    string
	object  tree
}

func newAPI(t *testing.T) *apiServer {
	s := &apiServer{objects: map[string]tree{}, changed: make(chan struct{}), version: 100,
		may: func(string, string) bool { return true }}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

var verbs = map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPost: "create",
	http.MethodDelete: "delete"}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if s.down > 0 {
		s.down--
		s.fail(w, http.StatusServiceUnavailable, "the server is starting")
		return
	}
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		s.fail(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if s.refuse != nil {
		if code := s.refuse(r); code != 0 {
			s.fail(w, code, "refused by the test")
			return
		}
	}
	switch path := r.URL.Path; {
	case path == "/version":
		s.send(w, tree{"gitVersion": "v1.36.3"})
	case path == "/apis/"+kueueGroup:
		if s.kueue == nil {
			s.fail(w, http.StatusNotFound, "the server could not find the requested resource")
			return
		}
		var versions []tree
		for _, v := range s.kueue {
			versions = append(versions, tree{"groupVersion": kueueGroup + "/" + v, "version": v})
		}
		s.send(w, tree{"kind": "APIGroup", "versions": versions})
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		var review tree
		_ = json.NewDecoder(r.Body).Decode(&review)
		a := review["spec"].(tree)["resourceAttributes"].(tree)
		s.send(w, tree{"status": tree{"allowed": s.may(a["verb"].(string), a["resource"].(string))}})
	default:
		s.object(w, r, path)
	}
}

func (s *apiServer) send(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

func (s *apiServer) fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(tree{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
		"code": code})
}

// split takes a path apart: the collection over all namespaces, the namespace, the name and the subresource.
func split(path string) (collection, namespace, name, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	n := 2 // api/v1
	if parts[0] == "apis" {
		n = 3
	}
	api, rest := parts[:n], parts[n:]
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	collection = "/" + strings.Join(append(slices.Clone(api), rest[0]), "/")
	if len(rest) > 1 {
		name = rest[1]
	}
	if len(rest) > 2 {
		sub = rest[2]
	}
	return collection, namespace, name, sub
}

func key(collection, namespace, name string) string { return collection + "|" + namespace + "|" + name }

func (s *apiServer) object(w http.ResponseWriter, r *http.Request, path string) {
	collection, namespace, name, sub := split(path)
	resource := collection[strings.LastIndex(collection, "/")+1:]
	known := []string{"/api/v1/pods", "/api/v1/nodes", "/apis/batch/v1/jobs"}
	for _, v := range s.kueue {
		known = append(known, "/apis/"+kueueGroup+"/"+v+"/workloads", "/apis/"+kueueGroup+"/"+v+"/clusterqueues")
	}
	if !slices.Contains(known, collection) {
		s.fail(w, http.StatusNotFound, "the server could not find the requested resource")
		return
	}
	verb := verbs[r.Method]
	if verb == "get" && name == "" {
		verb = "list"
	}
	if !s.may(verb, resource) {
		s.fail(w, http.StatusForbidden,
			fmt.Sprintf(`%s is forbidden: User "system:serviceaccount:gym:gym" cannot %s resource %q`, resource, verb, resource))
		return
	}
	k := key(collection, namespace, name)
	switch {
	case r.Method == http.MethodGet && name == "" && r.URL.Query().Get("watch") != "":
		s.watch(w, r, collection, namespace)
	case r.Method == http.MethodGet && name == "":
		s.list(w, r, collection, namespace)
	case r.Method == http.MethodPost:
		var o tree
		_ = json.NewDecoder(r.Body).Decode(&o)
		m := o["metadata"].(tree)
		if m["namespace"] == nil && resource != "nodes" {
			m["namespace"] = namespace
		}
		s.version++
		m["uid"] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.version)
		if m["creationTimestamp"] == nil {
			m["creationTimestamp"] = time.Date(2026, 1, 5, 8, 0, s.version, 0, time.UTC).Format(time.RFC3339)
		}
		s.store("ADDED", key(collection, namespace, m["name"].(string)), collection, o)
		s.send(w, o)
	case s.objects[k] == nil:
		s.fail(w, http.StatusNotFound, fmt.Sprintf("%s %q not found", resource, name))
	case r.Method == http.MethodGet:
		s.send(w, s.objects[k])
	case r.Method == http.MethodDelete:
		s.version++
		o := s.objects[k]
		delete(s.objects, k)
		s.note(event{s.version, "DELETED", collection, o})
		s.send(w, o)
	case r.Method == http.MethodPatch:
		s.patch(w, r, k, collection, sub)
	default:
		s.fail(w, http.StatusMethodNotAllowed, r.Method)
	}
}

func (s *apiServer) patch(w http.ResponseWriter, r *http.Request, k, collection, sub string) {
	if r.Header.Get("Content-Type") != mergePatch {
		s.fail(w, http.StatusUnsupportedMediaType, r.Header.Get("Content-Type"))
		return
	}
	var p tree
	_ = json.NewDecoder(r.Body).Decode(&p)
	o := s.objects[k]
	if s.conflict > 0 && sub == "" {
		s.conflict--
		s.version++
		s.store("MODIFIED", k, collection,
			merged(o, tree{"metadata": tree{"labels": tree{"touched": strconv.Itoa(s.version)}}}))
		o = s.objects[k]
	}
	if m, ok := p["metadata"].(tree); ok {
		if v := m["resourceVersion"]; v != nil && v != o["metadata"].(tree)["resourceVersion"] {
			s.fail(w, http.StatusConflict,
				"the object has been modified; please apply your changes to the latest version and try again")
			return
		}
		delete(m, "resourceVersion")
	}
	next := merged(o, p)
	if strings.HasSuffix(collection, "/jobs") && sub == "" {
		spec, was := next["spec"].(tree), o["spec"].(tree)
		status, _ := o["status"].(tree)
		active, _ := status["active"].(float64)
		if !same(spec["template"], was["template"]) &&
			(was["suspend"] != true || active > 0 || status["startTime"] != nil && (s.old || !suspendedCondition(status))) {
			s.fail(w, http.StatusUnprocessableEntity, "spec.template: Invalid value: field is immutable")
			return
		}
	}
	s.log = append(s.log, p)
	s.version++
	s.store("MODIFIED", k, collection, next)
	s.send(w, s.objects[k])
}

func suspendedCondition(status tree) bool {
	all, _ := status["conditions"].([]any)
	return slices.ContainsFunc(all,
		func(c any) bool { return c.(tree)["type"] == "Suspended" && c.(tree)["status"] == "True" })
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// merged applies a merge patch (RFC 7386) to a copy.
func merged(o, p tree) tree {
	next := maps.Clone(o)
	if next == nil {
		next = tree{}
	}
	for k, v := range p {
		switch v := v.(type) {
		case nil:
			delete(next, k)
		case tree:
			old, _ := next[k].(tree)
			next[k] = merged(old, v)
		default:
			next[k] = v
		}
	}
	return next
}

// store keeps an object of the version that is current, and tells the watches.
func (s *apiServer) store(kind, k, collection string, o tree) {
	m := maps.Clone(o["metadata"].(tree))
	m["resourceVersion"] = strconv.Itoa(s.version)
	o["metadata"] = m
	s.objects[k] = o
	s.note(event{s.version, kind, collection, o})
}

func (s *apiServer) note(e event) {
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, collection, namespace string) {
	q := r.URL.Query()
	var items []tree
	from, _ := strconv.Atoi(q.Get("continue"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		parts := strings.Split(k, "|")
		if parts[0] != collection || namespace != "" && parts[1] != namespace {
			continue
		}
		if sel, value, ok := strings.Cut(q.Get("labelSelector"), "="); ok {
			labels, _ := s.objects[k]["metadata"].(tree)["labels"].(tree)
			if labels[sel] != value {
				continue
			}
		}
		items = append(items, s.objects[k])
	}
	meta := tree{"resourceVersion": strconv.Itoa(s.version)}
	items = items[min(from, len(items)):]
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		meta["continue"] = strconv.Itoa(from + limit)
	}
	if items == nil {
		items = []tree{}
	}
	s.send(w, tree{"kind": "List", "metadata": meta, "items": items})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, collection, namespace string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if from < s.compact {
		// As the real one does: the answer is 200, and an event says what is wrong.
		s.send(w, tree{"type": "ERROR", "object": tree{"kind": "Status", "code": 410, "message": "too old resource version"}})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	enc := json.NewEncoder(w)
	sent := 0
	for {
		for ; sent < len(s.events); sent++ {
			e := s.events[sent]
			ns, _ := e.object["metadata"].(tree)["namespace"].(string)
			if e.version > from && e.path == collection && (namespace == "" || ns == namespace) {
				_ = enc.Encode(tree{"type": e.kind, "object": e.object})
			}
		}
		_ = enc.Encode(tree{"type": "BOOKMARK",
			"object": tree{"kind": "Bookmark",
				"metadata": tree{"resourceVersion": strconv.Itoa(s.version), "creationTimestamp": nil}}})
		w.(http.Flusher).Flush()
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
			s.mu.Lock()
			return
		}
		s.mu.Lock()
	}
}
