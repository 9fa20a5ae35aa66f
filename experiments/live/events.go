package live

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"clustergym/experiments/jsonl"
	"clustergym/experiments/rundir"
	"clustergym/experiments/workload"
)

// beat is how long a stream is silent at most, so that both sides find out when the other is gone.
const beat = 15 * time.Second

// events is /events?run=ID&run=…&after=N,… or /events?list=1.
//
// The id of an event is the number of lines of progress.jsonl that its receiver then has, of every run in the order of the
// request, joined by commas. A browser that lost the connection sends the last id back (Last-Event-ID), and goes on after it: no
// line is missing, none comes twice, whichever process answers. after says where a first connection begins; without it a stream
// begins with the first line.
//
//	event: line    data: {"run":I,"n":N,"line":{…}}
//	event: again   data: {"run":I}       the file was cut or is another one: what the receiver has of it is void, and the stream ends
//	event: list    data: {…}             as /api/list, whenever it has changed; its id is a digest
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	flush, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "this connection cannot stream", http.StatusInternalServerError)
		return
	}
	st := &stream{s: s, w: w, flush: flush.Flush}
	q := r.URL.Query()
	next := st.list
	if ids := q["run"]; len(ids) > 0 {
		if err := st.follow(ids, cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("after"))); err != nil {
			fail(w, err)
			return
		}
		next = st.lines
	} else {
		st.digest = r.Header.Get("Last-Event-ID")
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	fmt.Fprintf(w, "retry: 1000\n\n") //nolint:errcheck // the next write says it
	flush.Flush()
	tick := time.NewTicker(s.opt.Poll)
	defer tick.Stop()
	silent := time.Duration(0)
	for {
		sent, err := next()
		if err != nil {
			return // the receiver is gone, and comes back if it wants to
		}
		if silent += s.opt.Poll; sent {
			silent = 0
		} else if silent >= beat {
			if _, err := fmt.Fprint(w, ": here\n\n"); err != nil {
				return
			}
			silent, sent = 0, true
		}
		if sent {
			flush.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// stream is one connection of /events.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	flush func()

	tails  []*jsonl.Tail
	has    []int // lines that the receiver has, by run
	digest string
	rest   time.Time // no list is made before
}

// follow begins to follow runs after the lines that an id names.
func (st *stream) follow(ids []string, after string) error {
	if len(ids) > mostRuns {
		return workload.Mistake("run: got %d runs, want at most %d", len(ids), mostRuns)
	}
	st.has = make([]int, len(ids))
	if after != "" {
		parts := strings.Split(after, ",")
		if len(parts) != len(ids) {
			return workload.Mistake("after: got %q, want %d numbers of lines, joined by commas", after, len(ids))
		}
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 {
				return workload.Mistake("after: got %q, want numbers of lines", after)
			}
			st.has[i] = n
		}
	}
	for _, id := range ids {
		e, err := st.s.entry(id, aRun)
		if err != nil {
			return err
		}
		st.tails = append(st.tails, jsonl.New(filepath.Join(e.path, rundir.ProgressFile)))
	}
	return nil
}

// id returns the id of what the receiver then has.
func (st *stream) id() string {
	parts := make([]string, len(st.has))
	for i, n := range st.has {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

// errAgain ends a connection: its receiver begins again.
var errAgain = errors.New("again")

// lines sends new lines.
func (st *stream) lines() (sent bool, err error) {
	for i, t := range st.tails {
		var gone error // what writing to the receiver says
		_, err := t.Next(func(n int, line []byte) error {
			if t.Resets() > 0 {
				return errAgain
			}
			if n <= st.has[i] {
				return nil
			}
			if !json.Valid(line) {
				line = []byte("null")
			}
			st.has[i], sent = n, true
			_, gone = fmt.Fprintf(st.w, "id: %s\nevent: line\ndata: {\"run\":%d,\"n\":%d,\"line\":%s}\n\n", st.id(), i, n, bytes.TrimSpace(line))
			return gone
		})
		if gone != nil {
			return sent, gone
		}
		if t.Resets() > 0 || err == nil && t.Lines() < st.has[i] {
			st.has[i] = 0
			_, _ = fmt.Fprintf(st.w, "id: %s\nevent: again\ndata: {\"run\":%d}\n\n", st.id(), i) // it ends anyway
			st.flush()
			return true, errAgain
		}
		// Another error is one of the file, which may be there again in a moment.
	}
	return sent, nil
}

// list sends the list if it has changed.
func (st *stream) list() (sent bool, err error) {
	begun := time.Now()
	if begun.Before(st.rest) {
		return false, nil
	}
	l := st.s.listed(false)
	// A folder of a thousand runs must not keep a processor busy: a list takes a twentieth of the time at most.
	defer func() { st.rest = time.Now().Add(20 * time.Since(begun)) }()
	// What follows from the clock alone is no change.
	still := l
	still.Now, still.Entries = 0, make([]summary, len(l.Entries))
	for i, e := range l.Entries {
		e.Seen = nil
		still.Entries[i] = e
	}
	b, err := json.Marshal(still)
	if err != nil {
		return false, err
	}
	h := sha256.Sum256(b)
	digest := hex.EncodeToString(h[:8])
	if digest == st.digest {
		return false, nil
	}
	st.digest = digest
	if b, err = json.Marshal(l); err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(st.w, "id: %s\nevent: list\ndata: %s\n\n", digest, b)
	return true, err
}
