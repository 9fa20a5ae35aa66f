package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"clustergym/live"
	"clustergym/traces/kube"
)

// store mirrors the objects of one resource: it lists them, and watches what becomes of them from there on. One
// goroutine runs it; Observe reads it.
type store[T any] struct {
	c    *client
	path string        // as /apis/batch/v1/jobs
	keep func(*T) bool // what is of interest; the rest is forgotten

	kick chan struct{} // asks for the next try now

	mu      sync.Mutex
	items   map[string]*T // by uid
	version string        // of the list or the last event
	open    bool          // a watch is running
	tries   int           // that have failed
	err     error         // of the last one
	news    chan struct{} // closed and replaced when one of the last three changes
}

func newStore[T any](c *client, path string, keep func(*T) bool) *store[T] {
	return &store[T]{c: c, path: path, keep: keep, kick: make(chan struct{}, 1), news: make(chan struct{})}
}

// head returns what o has as every object of Kubernetes.
func head[T any](o *T) *kube.Meta { return any(o).(interface{ Head() *kube.Meta }).Head() }

// pageSize is how many objects a list asks for at once.
const pageSize = 500

// The pauses between tries.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 15 * time.Second
)

// run keeps the mirror until ctx ends.
func (s *store[T]) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.failed(err)
		case time.Since(begun) > time.Second: // the server has ended the watch, as it does after some minutes
			pause = firstPause
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, lastPause)
		case <-s.kick:
			pause = firstPause
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// follow lists if there is nothing to go on from, and watches until the watch ends.
func (s *store[T]) follow(ctx context.Context) error {
	s.mu.Lock()
	version := s.version
	s.mu.Unlock()
	if version == "" {
		if err := s.list(ctx); err != nil {
			return err
		}
	}
	err := s.watch(ctx)
	if errors.Is(err, errExpired) {
		s.mu.Lock()
		s.version, s.open = "", false
		s.mu.Unlock()
		return nil
	}
	return err
}

func (s *store[T]) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.err = false, err
	s.tries++
	s.tell()
}

func (s *store[T]) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// list reads all objects, page by page.
func (s *store[T]) list(ctx context.Context) error {
	items := map[string]*T{}
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []*T `json:"items"`
		}
		if _, err := s.c.call(ctx, http.MethodGet, s.path, query, nil, &page); err != nil {
			if errors.Is(err, errExpired) && query.Get("continue") != "" { // it took too long: all over again
				query.Del("continue")
				clear(items)
				continue
			}
			if errors.Is(err, errMissing) {
				return fmt.Errorf("%w: the server does not offer %s: its version is not one that is known here",
					live.ErrUnsupported, s.path)
			}
			return err
		}
		for _, o := range page.Items {
			if s.keep(o) {
				items[head(o).UID] = o
			}
		}
		if page.Metadata.Continue == "" {
			s.mu.Lock()
			s.items, s.version = items, page.Metadata.ResourceVersion
			s.mu.Unlock()
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// watchFor is how long a watch lasts until the server ends it. The next one goes on where it ended.
const watchFor = 290

// watch follows the objects until the server ends the watch.
func (s *store[T]) watch(ctx context.Context) error {
	s.mu.Lock()
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {s.version},
		"timeoutSeconds": {strconv.Itoa(watchFor)}}
	s.mu.Unlock()
	// A server that never ends the watch is not believed for ever.
	ctx, cancel := context.WithTimeout(ctx, (watchFor+30)*time.Second)
	defer cancel()
	resp, err := s.c.open(ctx, http.MethodGet, s.path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	s.mu.Lock()
	s.open, s.err = true, nil
	s.tell()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open = false
		s.mu.Unlock()
	}()
	for dec := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return failure(ctx, http.MethodGet, s.path, err)
		}
		if err := s.event(e.Type, e.Object); err != nil {
			return err
		}
	}
}

func (s *store[T]) event(kind string, text json.RawMessage) error {
	if kind == "ERROR" {
		var st struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(text, &st); err != nil {
			return fmt.Errorf("%w: watch %s: an error that is not understood: %v", live.ErrUnsupported, s.path, err)
		}
		return statusError("watch", s.path, st.Code, st.Message)
	}
	o := new(T)
	if err := json.Unmarshal(text, o); err != nil {
		return fmt.Errorf("%w: watch %s: an object of a version that is not known here: %v", live.ErrUnsupported, s.path, err)
	}
	m := head(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "ADDED", "MODIFIED":
		s.set(o)
	case "DELETED":
		delete(s.items, m.UID)
	case "BOOKMARK":
	default:
		return fmt.Errorf("%w: watch %s: event %q", live.ErrUnsupported, s.path, kind)
	}
	if m.ResourceVersion != "" {
		s.version = m.ResourceVersion
	}
	return nil
}

// set stores an object unless a newer version is there, which our own write may have left.
func (s *store[T]) set(o *T) {
	m := head(o)
	if old, there := s.items[m.UID]; there && older(m.ResourceVersion, head(old).ResourceVersion) {
		return
	}
	if s.keep(o) {
		s.items[m.UID] = o
	} else {
		delete(s.items, m.UID)
	}
}

// older compares versions of one object. Servers number them; should one not, the last one counts.
func older(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err == nil && err2 == nil && x < y
}

// put is what a write of ours has made of an object, so that the next snapshot shows it.
func (s *store[T]) put(o *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.items[head(o).UID]; there { // one that is not there may have been deleted
		s.set(o)
	}
}

// ready waits until the mirror follows the server, and returns why it does not if a try from now on fails.
func (s *store[T]) ready(ctx context.Context) error {
	s.mu.Lock()
	tries := s.tries
	s.mu.Unlock()
	for first := true; ; first = false {
		s.mu.Lock()
		open, err, tried, news := s.open, s.err, s.tries, s.news
		s.mu.Unlock()
		if open {
			return nil
		}
		if tried > tries {
			return err
		}
		if first {
			select {
			case s.kick <- struct{}{}:
			default:
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("GET %s: %w", s.path, context.Cause(ctx))
		}
	}
}

// all returns the objects. They must not be changed.
func (s *store[T]) all() []*T {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*T, 0, len(s.items))
	for _, o := range s.items { // the order does not matter, because snapshots are sorted
		list = append(list, o)
	}
	return list
}
