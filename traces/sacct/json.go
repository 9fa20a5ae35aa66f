package sacct

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"clustergym/traces"
)

// sniffJSON reports whether head begins with a document of sacct --json: releases until 22.05 begin with their plugin, later
// ones with the first job.
func sniffJSON(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	return bytes.Contains(head, []byte(`"jobs"`)) && (bytes.Contains(head, []byte(`openapi\/dbv`)) || bytes.Contains(head, []byte("openapi/dbv")) ||
		bytes.Contains(head, []byte(`"allocation_nodes"`)) && bytes.Contains(head, []byte(`"association"`)))
}

// FromJSON returns what sacct -P would have printed in place of the document of sacct --json in r, with times as seconds since
// 1970, and the columns that NewReader reads. It reads the document as a stream. In names of jobs, vertical bars and line breaks
// become blanks. What is no such document is a *traces.RowError of file, whose lines are those of the result.
func FromJSON(r io.Reader, file string) io.Reader {
	return &converter{d: json.NewDecoder(r), file: file}
}

// jsonColumns are the columns of FromJSON.
const jsonColumns = "JobID|User|Account|Partition|Cluster|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|AllocTRES|ReqTRES|JobName\n"

type converter struct {
	d     *json.Decoder
	file  string
	begun bool
	line  int
	out   bytes.Buffer
	err   error
}

// Read implements io.Reader.
func (c *converter) Read(p []byte) (int, error) {
	for c.out.Len() == 0 && c.err == nil {
		c.err = c.next()
	}
	if c.out.Len() > 0 {
		return c.out.Read(p)
	}
	return 0, c.err
}

func (c *converter) fault(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &traces.RowError{File: c.file, Line: max(1, c.line), Says: fmt.Sprintf("this is no document of sacct --json: %v", err)}
}

// next writes the next line. It finds the list of jobs first, and reads what is behind it at the end.
func (c *converter) next() error {
	if !c.begun {
		if err := c.find(); err != nil {
			return err
		}
		c.begun = true
		c.line = 1
		c.out.WriteString(jsonColumns)
		return nil
	}
	if !c.d.More() {
		if _, err := c.d.Token(); err != nil { // the end of the list
			return c.fault(err)
		}
		for c.d.More() {
			if _, err := c.skip(); err != nil {
				return err
			}
		}
		if _, err := c.d.Token(); err != nil {
			return c.fault(err)
		}
		return io.EOF
	}
	c.line++
	var j jsonJob
	if err := c.d.Decode(&j); err != nil {
		return c.fault(err)
	}
	if j.ID.v <= 0 || j.State.Current == nil || j.Time == nil {
		return c.fault(fmt.Errorf("a job without job_id, state or time"))
	}
	j.row(&c.out)
	return nil
}

// find reads until the list of jobs begins.
func (c *converter) find() error {
	if t, err := c.d.Token(); err != nil || t != json.Delim('{') {
		return c.fault(cmpError(err, "it does not begin with {"))
	}
	for c.d.More() {
		key, err := c.skip()
		if err != nil {
			return err
		}
		if key == "jobs" {
			return nil
		}
	}
	return c.fault(fmt.Errorf("it has no jobs"))
}

// skip reads a key and its value, but of jobs only the beginning of the list.
func (c *converter) skip() (key string, err error) {
	t, err := c.d.Token()
	if err != nil {
		return "", c.fault(err)
	}
	key, _ = t.(string)
	switch {
	case key == "jobs" && !c.begun:
		if t, err := c.d.Token(); err != nil || t != json.Delim('[') {
			return "", c.fault(cmpError(err, "jobs is no list"))
		}
	case key == "errors":
		var all []struct {
			Description string `json:"description"`
			Error       string `json:"error"`
		}
		if err := c.d.Decode(&all); err != nil {
			return "", c.fault(err)
		}
		if len(all) > 0 {
			return "", &traces.RowError{File: c.file, Line: max(1, c.line), Says: fmt.Sprintf("sacct says that it failed: %s %s", all[0].Description, all[0].Error)}
		}
	default:
		var value json.RawMessage
		if err := c.d.Decode(&value); err != nil {
			return "", c.fault(err)
		}
	}
	return key, nil
}

func cmpError(err error, says string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s", says)
}

// jsonNumber is a number as any release writes it: plain, null, or {"set": true, "infinite": false, "number": 5}.
type jsonNumber struct {
	v        int64
	set      bool
	infinite bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonNumber) UnmarshalJSON(b []byte) error {
	*n = jsonNumber{}
	var o struct {
		Set      *bool       `json:"set"`
		Infinite bool        `json:"infinite"`
		Number   json.Number `json:"number"`
	}
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '{':
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		if n.infinite = o.Infinite; o.Infinite || o.Number == "" || o.Set != nil && !*o.Set {
			return nil
		}
	default:
		o.Number = json.Number(b)
	}
	v, err := strconv.ParseInt(string(o.Number), 10, 64)
	if err != nil {
		return fmt.Errorf("got %.40q, want a whole number", b)
	}
	switch v {
	case 4294967294: // Slurm's NO_VAL
	case 4294967295: // and INFINITE
		n.infinite = true
	default:
		n.v, n.set = v, true
	}
	return nil
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

type jsonTRES []struct {
	Type  string     `json:"type"`
	Name  string     `json:"name"`
	Count jsonNumber `json:"count"`
}

type jsonJob struct {
	ID    jsonNumber `json:"job_id"`
	Array struct {
		ID    jsonNumber `json:"job_id"`
		Task  jsonNumber `json:"task_id"`
		Tasks string     `json:"task"`
	} `json:"array"`
	Het struct {
		ID     jsonNumber `json:"job_id"`
		Offset jsonNumber `json:"job_offset"`
	} `json:"het"`
	User        string `json:"user"`
	Association struct {
		User    string `json:"user"`
		Account string `json:"account"`
	} `json:"association"`
	Account   string     `json:"account"`
	Partition string     `json:"partition"`
	Cluster   string     `json:"cluster"`
	Name      string     `json:"name"`
	Nodes     jsonNumber `json:"allocation_nodes"`
	State     struct {
		Current jsonWords `json:"current"`
	} `json:"state"`
	Time *struct {
		Submission jsonNumber `json:"submission"`
		Start      jsonNumber `json:"start"`
		End        jsonNumber `json:"end"`
		Elapsed    jsonNumber `json:"elapsed"`
		Limit      jsonNumber `json:"limit"` // minutes
	} `json:"time"`
	TRES struct {
		Allocated jsonTRES `json:"allocated"`
		Requested jsonTRES `json:"requested"`
	} `json:"tres"`
}

// id returns the ID as sacct -P prints it.
func (j *jsonJob) id() string {
	switch {
	case j.Het.ID.v > 0:
		return fmt.Sprintf("%d+%d", j.Het.ID.v, j.Het.Offset.v)
	case j.Array.ID.v > 0 && j.Array.Task.set && j.Array.Tasks == "":
		return fmt.Sprintf("%d_%d", j.Array.ID.v, j.Array.Task.v)
	case j.Array.ID.v > 0 && j.Array.Tasks != "": // tasks that have not started, as numbers or as bits
		return fmt.Sprintf("%d_[%s]", j.Array.ID.v, j.Array.Tasks)
	}
	return strconv.FormatInt(j.ID.v, 10)
}

// row writes the line of sacct -P.
func (j *jsonJob) row(w *bytes.Buffer) {
	instant := func(n jsonNumber) string {
		if !n.set || n.v <= 0 {
			return "Unknown"
		}
		return strconv.FormatInt(n.v, 10)
	}
	limit := "UNLIMITED"
	if j.Time.Limit.set && j.Time.Limit.v > 0 {
		limit = strconv.FormatInt(j.Time.Limit.v, 10)
	}
	user, account := j.User, j.Account
	if user == "" {
		user = j.Association.User
	}
	if account == "" {
		account = j.Association.Account
	}
	state := ""
	if len(j.State.Current) > 0 {
		state = j.State.Current[0]
		if slices.Contains(j.State.Current, "REQUEUED") {
			state = "REQUEUED"
		}
	}
	elapsed := max(0, j.Time.Elapsed.v)
	for _, s := range []string{j.id(), user, account, j.Partition, j.Cluster, instant(j.Time.Submission), instant(j.Time.Start), instant(j.Time.End), strconv.FormatInt(elapsed, 10),
		limit, state, strconv.FormatInt(max(0, j.Nodes.v), 10), j.TRES.Allocated.text(), j.TRES.Requested.text()} {
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
		name := r.Type
		if r.Type == "gres" {
			name += "/" + r.Name
		} else if r.Type != "cpu" && r.Type != "mem" && r.Type != "node" {
			continue
		}
		if !r.Count.set {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", name, r.Count.v)
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
