package sacct

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"clustergym/traces"
)

// sniffJSON reports whether head begins with a document of sacct --json: releases until 22.05 begin with their plugin,
// later ones with the first job. It may be in a list, and be a job alone.
func sniffJSON(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(mark)), " \t\r\n")
	if !document(head) {
		return false
	}
	return bytes.Contains(head, []byte(`"jobs"`)) &&
		(bytes.Contains(head, []byte(`openapi\/dbv`)) || bytes.Contains(head, []byte("openapi/dbv"))) ||
		bytes.Contains(head, []byte(`"allocation_nodes"`)) && bytes.Contains(head, []byte(`"association"`))
}

// jsonColumns are the columns of AsText.
const jsonColumns = "JobID|User|Account|Partition|Cluster|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|" +
	"AllocTRES|ReqTRES|NodeList|Eligible|JobName\n"

// deepest is how many lists may be around a document.
const deepest = 4

// documents reads one document after the other, until the end of the file or what is no JSON.
type documents struct {
	t     *asText
	d     *json.Decoder
	count int  // documents begun
	lists int  // lists around what is read
	in    bool // the list of jobs of a document
	alone map[string]json.RawMessage
}

func newDocuments(t *asText) *documents { return &documents{t: t, d: json.NewDecoder(t.src)} }

func (c *documents) fault(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	which := ""
	if c.count > 1 {
		which = fmt.Sprintf(" (the file's document %d)", c.count)
	}
	return &traces.RowError{File: c.t.file, Line: max(1, c.t.line),
		Says: fmt.Sprintf("this is no document of sacct --json%s: %v", which, err)}
}

// next writes the row of the next job, if it comes to one. It returns io.EOF where the documents end, and gives back
// what is behind them.
func (c *documents) next() error {
	switch {
	case c.in && c.d.More():
		var j jsonJob
		c.t.line++ // of the job, also in a fault
		if err := c.d.Decode(&j); err != nil {
			return c.fault(err)
		}
		return c.row(&j)
	case c.in:
		if _, err := c.d.Token(); err != nil { // the end of the list
			return c.fault(err)
		}
		c.in = false
		return c.object()
	case c.lists > 0 && !c.d.More():
		if _, err := c.d.Token(); err != nil {
			return c.fault(err)
		}
		c.lists--
		return nil
	case c.lists == 0:
		c.d.More() // reads until something stands there
		head := make([]byte, 64)
		n, _ := io.ReadFull(c.d.Buffered(), head) // fewer may be there
		if !document(append(head[:n], c.t.src.peek(64)...)) {
			rest, err := io.ReadAll(c.d.Buffered())
			if err != nil {
				return c.fault(err)
			}
			c.t.src.unread(bytes.TrimLeft(rest, " \t\r\n"))
			c.t.start = true
			return io.EOF
		}
		c.count++
	}
	switch t, err := c.d.Token(); {
	case err != nil:
		return c.fault(err)
	case t == json.Delim('{'):
		c.alone = map[string]json.RawMessage{}
		return c.object()
	case t == json.Delim('[') && c.lists < deepest:
		c.lists++
		return nil
	default:
		return c.fault(fmt.Errorf("got %.40q, want { and a document or a job", fmt.Sprint(t)))
	}
}

// row writes the row of j.
func (c *documents) row(j *jsonJob) error {
	if j.ID.V <= 0 || j.State.Current == nil || j.Time == nil {
		says := "a job without job_id, state or time"
		if len(j.Waits) > 0 {
			says += "; " + ofSqueue
		}
		return c.fault(fmt.Errorf("%s", says))
	}
	if err := j.check(); err != nil {
		return c.fault(err)
	}
	j.row(&c.t.out)
	return nil
}

// object reads an object until its list of jobs begins, or to its end. It may be a job itself.
func (c *documents) object() error {
	for c.d.More() {
		t, err := c.d.Token()
		if err != nil {
			return c.fault(err)
		}
		switch key, _ := t.(string); key {
		case "jobs":
			if t, err := c.d.Token(); err != nil || t != json.Delim('[') {
				return c.fault(cmpError(err, "jobs is no list"))
			}
			c.in, c.alone = true, nil
			return nil
		case "errors":
			var all []struct {
				Description string `json:"description"`
				Error       string `json:"error"`
			}
			if err := c.d.Decode(&all); err != nil {
				return c.fault(err)
			}
			if len(all) > 0 {
				return &traces.RowError{File: c.t.file, Line: max(1, c.t.line),
					Says: fmt.Sprintf("sacct says that it failed: %s %s", all[0].Description, all[0].Error)}
			}
		default:
			var value json.RawMessage
			if err := c.d.Decode(&value); err != nil {
				return c.fault(err)
			}
			if c.alone != nil {
				c.alone[key] = value
			}
		}
	}
	if _, err := c.d.Token(); err != nil {
		return c.fault(err)
	}
	if c.alone == nil {
		return nil
	}
	if len(c.alone["job_id"]) == 0 {
		return c.fault(errors.New("it has no jobs"))
	}
	text, err := json.Marshal(c.alone)
	if err != nil {
		return c.fault(err)
	}
	var j jsonJob
	c.t.line++
	if err := json.Unmarshal(text, &j); err != nil {
		return c.fault(err)
	}
	return c.row(&j)
}

func cmpError(err error, says string) error {
	if err != nil {
		return err
	}
	return errors.New(says)
}

// jsonWords is a text or a list of texts.
type jsonWords []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *jsonWords) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(w))
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*w = jsonWords{s}
	return nil
}

// jsonHosts is a list of nodes. It is "" for anything but a text, as nothing depends on it.
type jsonHosts string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (h *jsonHosts) UnmarshalJSON(b []byte) error {
	*h = ""
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(h))
	}
	return nil
}

type jsonTRES []jsonResource

type jsonResource struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Count Number `json:"count"`
}

// counts reports whether a job's resources are read from r.
func (r *jsonResource) counts() bool {
	switch r.Type {
	case "cpu", "mem", "node":
		return true
	}
	return r.Type == "gres" && (r.Name == "gpu" || strings.HasPrefix(r.Name, "gpu:"))
}

type jsonJob struct {
	ID    Number `json:"job_id"`
	Array struct {
		ID    Number `json:"job_id"`
		Task  Number `json:"task_id"`
		Tasks string `json:"task"`
	} `json:"array"`
	Het struct {
		ID     Number `json:"job_id"`
		Offset Number `json:"job_offset"`
	} `json:"het"`
	User        string `json:"user"`
	Association struct {
		User    string `json:"user"`
		Account string `json:"account"`
	} `json:"association"`
	Account   string    `json:"account"`
	Partition string    `json:"partition"`
	Cluster   string    `json:"cluster"`
	Name      string    `json:"name"`
	Nodes     Number    `json:"allocation_nodes"`
	Hosts     jsonHosts `json:"nodes"`
	State     struct {
		Current jsonWords `json:"current"`
	} `json:"state"`
	Waits json.RawMessage `json:"job_state"` // of squeue and scontrol alone
	Time  *struct {
		Submission Number `json:"submission"`
		Eligible   Number `json:"eligible"`
		Start      Number `json:"start"`
		End        Number `json:"end"`
		Elapsed    Number `json:"elapsed"`
		Limit      Number `json:"limit"` // minutes
	} `json:"time"`
	TRES struct {
		Allocated jsonTRES `json:"allocated"`
		Requested jsonTRES `json:"requested"`
	} `json:"tres"`
}

// check returns an error if a number that row needs is missing or malformed.
func (j *jsonJob) check() error {
	for _, n := range []struct {
		key string
		of  *Number
	}{
		{"job_id", &j.ID}, {"array.job_id", &j.Array.ID}, {"array.task_id", &j.Array.Task}, {"het.job_id", &j.Het.ID},
		{"het.job_offset", &j.Het.Offset},
		{"allocation_nodes", &j.Nodes}, {"time.submission", &j.Time.Submission}, {"time.start", &j.Time.Start},
		{"time.end", &j.Time.End},
		{"time.elapsed", &j.Time.Elapsed}, {"time.limit", &j.Time.Limit},
	} {
		if n.of.Bad != "" {
			return fmt.Errorf("%s of job %d: got %.80s, want a whole number", n.key, j.ID.V, n.of.Bad)
		}
	}
	for _, list := range []jsonTRES{j.TRES.Allocated, j.TRES.Requested} {
		for _, r := range list {
			if r.counts() && r.Count.Bad != "" {
				return fmt.Errorf("tres of job %d: %s: got %.80s, want a whole number",
					j.ID.V, strings.TrimSuffix(r.Type+"/"+r.Name, "/"), r.Count.Bad)
			}
		}
	}
	return nil
}

// id returns the ID as sacct -P prints it.
func (j *jsonJob) id() string {
	switch {
	case j.Het.ID.V > 0:
		return fmt.Sprintf("%d+%d", j.Het.ID.V, j.Het.Offset.V)
	case j.Array.ID.V > 0 && j.Array.Task.Set && j.Array.Tasks == "":
		return fmt.Sprintf("%d_%d", j.Array.ID.V, j.Array.Task.V)
	case j.Array.ID.V > 0 && j.Array.Tasks != "": // tasks that have not started, as numbers or as bits
		return fmt.Sprintf("%d_[%s]", j.Array.ID.V, j.Array.Tasks)
	}
	return strconv.FormatInt(j.ID.V, 10)
}

// row writes the line of sacct -P.
func (j *jsonJob) row(w *bytes.Buffer) {
	instant := func(n Number) string {
		if !n.Set || n.V <= 0 {
			return "Unknown"
		}
		return strconv.FormatInt(n.V, 10)
	}
	limit := "UNLIMITED"
	if j.Time.Limit.Set && j.Time.Limit.V > 0 {
		limit = strconv.FormatInt(j.Time.Limit.V, 10)
	}
	user, account := cmp.Or(j.User, j.Association.User), cmp.Or(j.Account, j.Association.Account)
	state := ""
	if len(j.State.Current) > 0 {
		state = j.State.Current[0]
		if slices.Contains(j.State.Current, "REQUEUED") {
			state = "REQUEUED"
		}
	}
	elapsed := "" // then it is from start to end
	if j.Time.Elapsed.Set {
		elapsed = strconv.FormatInt(max(0, j.Time.Elapsed.V), 10)
	}
	for _, s := range []string{j.id(), user, account, j.Partition, j.Cluster, instant(j.Time.Submission),
		instant(j.Time.Start), instant(j.Time.End), elapsed,
		limit, state, strconv.FormatInt(max(0, j.Nodes.V), 10), j.TRES.Allocated.text(), j.TRES.Requested.text(),
		string(j.Hosts), instant(j.Time.Eligible)} {
		w.WriteString(clean(s))
		w.WriteByte('|')
	}
	w.WriteString(clean(j.Name))
	w.WriteByte('\n')
}

// text writes resources as sacct -P does: memory in MB.
func (t jsonTRES) text() string {
	var b strings.Builder
	for _, r := range t {
		if !r.counts() || !r.Count.Set || r.Count.V == -1 || r.Count.V == -2 { // INFINITE64 and NO_VAL64 as signed
			continue
		}
		name := r.Type
		if r.Type == "gres" {
			name += "/" + r.Name
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", name, r.Count.V)
		if r.Type == "mem" {
			b.WriteByte('M')
		}
	}
	return b.String()
}

// clean replaces what would end a field or a line by blanks.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '|' || r < ' ' {
			return ' '
		}
		return r
	}, s)
}
