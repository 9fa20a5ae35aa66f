package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/jsonl"
)

// beat is how long a stream is silent at most, so that both sides find out when the other is gone.
const beat = 15 * time.Second

// patience is how long a receiver may take for what it is sent.
const patience = time.Minute

// events is /events?run=ID&run=…&after=N,…&of=HEAD,… or /events?list=1.
//
// The id of an event is the number of lines of progress.jsonl that its receiver then has, of every run in the order of
// the request, joined by commas. A browser that lost the connection sends the last id back (Last-Event-ID), and goes on
// after it: no line is missing, none comes twice, whichever process answers. after says where a first connection
// begins; without it a stream begins with the first line. of are the heads of the files that the receiver has lines of,
// as /api/curves says them: where another run took the folder meanwhile, those lines are void. A run can also be a log
// of decisions.
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
		if err := st.follow(ids, cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("after")), q.Get("of")); err != nil {
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
	control := http.NewResponseController(w)
	for {
		// Whoever takes nothing for so long is gone. A connection that cannot have a deadline goes on without.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
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
	has    []int    // lines that the receiver has, by run
	of     []string // heads of the files that they are of; "" = any
	digest string
}

// follow begins to follow runs after the lines that an id names.
func (st *stream) follow(ids []string, after, of string) error {
	if len(ids) > mostRuns {
		return fault.Mistakef("run: got %d runs, want at most %d", len(ids), mostRuns)
	}
	st.has = make([]int, len(ids))
	if after != "" {
		parts := strings.Split(after, ",")
		if len(parts) != len(ids) {
			return fault.Mistakef("after: got %q, want %d numbers of lines, joined by commas", after, len(ids))
		}
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 {
				return fault.Mistakef("after: got %q, want numbers of lines", after)
			}
			st.has[i] = n
		}
	}
	st.of = make([]string, len(ids))
	if of != "" {
		if st.of = strings.Split(of, ","); len(st.of) != len(ids) {
			return fault.Mistakef("of: got %q, want %d heads of files, joined by commas", of, len(ids))
		}
	}
	for i, id := range ids {
		e, err := st.s.entry(id, aRun, aLog)
		if err != nil {
			return err
		}
		tail := jsonl.New(e.path)
		if e.Kind == aRun {
			tail = st.s.data(e.path).follow(st.has[i])
		}
		st.tails = append(st.tails, tail)
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

// void reports whether what the receiver has of run i is of another file.
func (st *stream) void(i int) bool {
	head := st.tails[i].Head()
	return st.of[i] != "" && head != "" && head != st.of[i]
}

// lines sends new lines.
func (st *stream) lines() (sent bool, err error) {
	for i, t := range st.tails {
		var gone error // what writing to the receiver says
		_, err := t.Next(func(n int, line []byte) error {
			if t.Resets() > 0 || st.void(i) {
				return errAgain
			}
			if n <= st.has[i] {
				return nil
			}
			if !json.Valid(line) {
				line = []byte("null")
			}
			st.has[i], sent = n, true
			_, gone = fmt.Fprintf(st.w, "id: %s\nevent: line\ndata: {\"run\":%d,\"n\":%d,\"line\":%s}\n\n", st.id(), i, n,
				bytes.TrimSpace(line))
			return gone
		})
		if gone != nil {
			return sent, gone
		}
		if t.Resets() > 0 || st.void(i) || err == nil && t.Lines() < st.has[i] {
			st.has[i] = 0
			_, _ = fmt.Fprintf(st.w, "id: %s\nevent: again\ndata: {\"run\":%d}\n\n", st.id(), i) // it ends anyway
			st.flush()
			return true, errAgain
		}
		// Another error is one of the file, which may be there again in a moment.
	}
	return sent, nil
}

// announced is a list as receivers get it.
type announced struct {
	list   []byte
	digest string // without what follows from the clock alone
}

// list sends the list if it has changed. All receivers share one.
func (st *stream) list() (sent bool, err error) {
	a, err := st.s.news.get(st.s.opt.Poll, st.s.announce)
	if err != nil || a.digest == st.digest {
		return false, err
	}
	st.digest = a.digest
	_, err = fmt.Fprintf(st.w, "id: %s\nevent: list\ndata: %s\n\n", a.digest, a.list)
	return true, err
}

func (s *Server) announce() (a announced, err error) {
	l := s.listed(false)
	if a.list, err = json.Marshal(l); err != nil {
		return a, err
	}
	l.Now = 0
	for i := range l.Entries {
		l.Entries[i].Seen = nil
	}
	still, err := json.Marshal(l)
	sum := sha256.Sum256(still)
	a.digest = hex.EncodeToString(sum[:8])
	return a, err
}
