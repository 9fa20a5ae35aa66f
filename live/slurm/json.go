package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"clustergym/live"
)

// The values by which Slurm says that there is none, and that there is no limit, where it writes plain numbers.
const (
	noValue  = 4294967294
	infinite = 4294967295
)

// number is a number as any release writes it: plain, null, in quotes, or {"set": true, "infinite": false, "number": 5}.
type number struct {
	v        int64
	set      bool
	infinite bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = number{}
	switch {
	case len(b) == 0 || string(b) == "null" || string(b) == `""`:
		return nil
	case b[0] == '{':
		set, number, err := n.object(b)
		if !set || err != nil {
			return err
		}
		b = number
	case b[0] == '"':
		b = bytes.Trim(b, `"`)
	}
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		switch u, err := strconv.ParseUint(string(b), 10, 64); {
		case err == nil && u == math.MaxUint64-1: // noValue of 64 bits
			return nil
		case err == nil && u == math.MaxUint64: // infinite
			n.infinite = true
			return nil
		}
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil || math.Abs(f) > 1<<62 {
			return fmt.Errorf("got %.40q, want a number", b)
		}
		v = int64(f)
	}
	switch v {
	case noValue:
		return nil
	case infinite:
		n.infinite = true
		return nil
	}
	n.v, n.set = v, true
	return nil
}

// object reads {"set": true, "infinite": false, "number": 5} without allocating, as there are dozens for each job. set says that
// there is a number; b is valid JSON.
func (n *number) object(b []byte) (set bool, value []byte, err error) {
	set = true
	for rest := b[1 : len(b)-1]; len(bytes.TrimSpace(rest)) > 0; {
		var item []byte
		item, rest, _ = bytes.Cut(rest, []byte{','})
		key, v, found := bytes.Cut(item, []byte{':'})
		v = bytes.TrimSpace(v)
		switch key = bytes.TrimSpace(key); {
		case !found || len(v) == 0 || v[0] == '{' || v[0] == '[' || v[0] == '"':
			return false, nil, fmt.Errorf("got %.80q, want a number", b)
		case string(key) == `"set"`:
			set = set && string(v) == "true"
		case string(key) == `"infinite"`:
			n.infinite = string(v) == "true"
		case string(key) == `"number"`:
			value = v
		}
	}
	return set && !n.infinite && value != nil && string(value) != "null", value, nil
}

// words is a text, or a list of texts.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(b []byte) error {
	*w = nil
	switch {
	case string(b) == "null":
		return nil
	case string(b) == "[]":
		return nil
	case len(b) > 1 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0:
		if len(b) > 2 {
			*w = words{known(b[1 : len(b)-1])}
		}
		return nil
	case len(b) > 0 && b[0] == '[':
		return json.Unmarshal(b, (*[]string)(w))
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s != "" {
		*w = words{s}
	}
	return nil
}

// known returns a text; frequent states are not allocated.
func known(b []byte) string {
	for _, s := range [...]string{"PENDING", "RUNNING", "none", "COMPLETED", "user"} {
		if string(b) == s {
			return s
		}
	}
	return string(b)
}

// upper returns the words in capitals.
func (w words) upper() []string {
	for i := range w {
		w[i] = strings.ToUpper(w[i])
	}
	return w
}

// jsonJob is a job of squeue --json. All releases have these names.
type jsonJob struct {
	ID           number `json:"job_id"`
	Array        number `json:"array_job_id"`
	Task         number `json:"array_task_id"`
	Tasks        string `json:"array_task_string"`
	Throttle     number `json:"array_max_tasks"`
	Het          number `json:"het_job_id"`
	Offset       number `json:"het_job_offset"`
	State        words  `json:"job_state"`
	Reason       string `json:"state_reason"`
	Says         string `json:"state_description"`
	User         string `json:"user_name"`
	UserID       number `json:"user_id"`
	Account      string `json:"account"`
	Partition    string `json:"partition"`
	QOS          string `json:"qos"`
	Name         string `json:"name"`
	Admin        string `json:"admin_comment"`
	Comment      string `json:"comment"`
	Dependency   string `json:"dependency"`
	Required     string `json:"required_nodes"`
	Excluded     string `json:"excluded_nodes"`
	Nodes        string `json:"nodes"`
	Submit       number `json:"submit_time"`
	Eligible     number `json:"eligible_time"`
	Start        number `json:"start_time"`
	End          number `json:"end_time"`
	Limit        number `json:"time_limit"` // minutes
	NodeCount    number `json:"node_count"`
	CPUs         number `json:"cpus"`
	NTasks       number `json:"tasks"`
	Sockets      number `json:"sockets_per_node"`
	Priority     number `json:"priority"`
	Restarts     number `json:"restart_cnt"`
	PerNode      string `json:"tres_per_node"`
	PerJob       string `json:"tres_per_job"`
	PerTask      string `json:"tres_per_task"`
	PerSocket    string `json:"tres_per_socket"`
	Alloc        string `json:"tres_alloc_str"`
	Request      string `json:"tres_req_str"`
	Detail       words  `json:"gres_detail"`
	Shared       words  `json:"shared"`    // "none" = --exclusive
	Exclusive    words  `json:"exclusive"` // later releases
	MemoryNode   number `json:"memory_per_node"`
	MemoryPerCPU number `json:"memory_per_cpu"`
	Cluster      string `json:"cluster"`
}

func (j *jsonJob) record() record {
	r := record{
		id: j.ID.v, array: j.Array.v, het: j.Het.v, offset: j.Offset.v, task: -1, waiting: j.Tasks, throttle: j.Throttle.v,
		states: j.State.upper(), reason: j.Reason, says: j.Says, user: j.User, account: j.Account,
		partition: j.Partition, name: j.Name, qos: j.QOS, admin: j.Admin, comment: j.Comment,
		dependency: j.Dependency, required: j.Required, excluded: j.Excluded, nodes: j.Nodes,
		submit: j.Submit.v, eligible: j.Eligible.v, start: j.Start.v, end: j.End.v, limit: time.Duration(min(j.Limit.v, maxMinutes)) * time.Minute,
		nodeCount: j.NodeCount.v, cpus: j.CPUs.v, ntasks: j.NTasks.v, sockets: j.Sockets.v, priority: j.Priority.v, restarts: j.Restarts.v,
		perNode: j.PerNode, perJob: j.PerJob, perTask: j.PerTask, perSocket: j.PerSocket,
		alloc: j.Alloc, request: j.Request, detail: j.Detail, memNode: j.MemoryNode.v << 20, memCPU: j.MemoryPerCPU.v << 20,
	}
	if j.Priority.infinite || !j.Priority.set {
		r.priority = 1 // not 0, which is a hold
	}
	if j.Task.set && j.Array.v != 0 && r.waiting == "" {
		r.task = j.Task.v
	}
	if r.user == "" && j.UserID.set {
		r.user = fmt.Sprint(j.UserID.v)
	}
	for _, w := range [][]string{j.Shared, j.Exclusive} {
		for _, s := range w {
			r.exclusive = r.exclusive || s == "none" || s == "true"
		}
	}
	return r
}

// maxMinutes is the longest limit that is told apart from none.
const maxMinutes = int64(time.Duration(math.MaxInt64)/time.Minute) / 4

// head is what stands around the list of a document.
type head struct {
	release, cluster string
	faults           []string
}

// stream reads a document of Slurm's commands, and calls each with every element of the list called name. Only one element is
// held in memory.
func stream(r io.Reader, name string, each func(*json.Decoder) error) (h head, err error) {
	d := json.NewDecoder(r)
	fail := func(err error) (head, error) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return h, fmt.Errorf("%w: this is no JSON of Slurm: %w", live.ErrUnsupported, err)
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		if err == nil {
			err = fmt.Errorf("got %.40q, want {", fmt.Sprint(t))
		}
		return fail(err)
	}
	found := false
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fail(err)
		}
		switch t {
		case name:
			found = true
			if t, err := d.Token(); err != nil || t != json.Delim('[') {
				return fail(fmt.Errorf("%s is no list", name))
			}
			for d.More() {
				if err := each(d); err != nil {
					return fail(err)
				}
			}
			if _, err := d.Token(); err != nil {
				return fail(err)
			}
		case "meta", "metadata":
			var m struct {
				Old, New struct {
					Release string `json:"release"`
					Cluster string `json:"cluster"`
				}
			}
			var raw map[string]json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return fail(err)
			}
			for key, value := range raw { // "Slurm", later "slurm"; the order does not matter
				if strings.EqualFold(key, "slurm") {
					_ = json.Unmarshal(value, &m.New) // of another shape: it is only shown
				}
			}
			h.release, h.cluster = m.New.Release, m.New.Cluster
		case "errors":
			var all []struct {
				Description string `json:"description"`
				Error       string `json:"error"`
				Source      string `json:"source"`
			}
			if err := d.Decode(&all); err != nil {
				return fail(err)
			}
			for _, e := range all {
				s := e.Error
				if e.Description != "" {
					s = e.Description + ": " + s
				}
				h.faults = append(h.faults, s)
			}
		default:
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return fail(err)
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	if !found {
		return fail(fmt.Errorf("it has no %s", name))
	}
	if _, err := d.Token(); err != io.EOF {
		return fail(errors.New("something follows the document, want one"))
	}
	return h, nil
}

// readJobs reads squeue --json.
func readJobs(r io.Reader, each func(*record) error) (head, error) {
	var j jsonJob
	return stream(r, "jobs", func(d *json.Decoder) error {
		j = jsonJob{}
		if err := d.Decode(&j); err != nil {
			return err
		}
		if j.ID.v <= 0 || len(j.State) == 0 {
			return fmt.Errorf("a job without job_id or job_state")
		}
		rec := j.record()
		return each(&rec)
	})
}

// machine is a node as Slurm tells of it.
type machine struct {
	name       string
	states     []string
	gres       string
	used       string // of gres, as Slurm counts; "" where it does not tell
	cpus, mem  int64  // cores; MiB
	reason     string
	partitions []string
}

// jsonNode is a node of sinfo --json of 21.08 to 22.05, and of scontrol show nodes --json since.
type jsonNode struct {
	Name       string `json:"name"`
	State      words  `json:"state"`
	Flags      words  `json:"state_flags"`
	Gres       string `json:"gres"`
	Used       string `json:"gres_used"`
	CPUs       number `json:"cpus"`
	Memory     number `json:"real_memory"`
	Reason     string `json:"reason"`
	Partitions words  `json:"partitions"`
}

func readNodes(r io.Reader, each func(*machine) error) (head, error) {
	return stream(r, "nodes", func(d *json.Decoder) error {
		var n jsonNode
		if err := d.Decode(&n); err != nil {
			return err
		}
		m := machine{name: n.Name, states: append(n.State.upper(), n.Flags.upper()...), gres: n.Gres, used: n.Used, cpus: n.CPUs.v, mem: n.Memory.v,
			reason: n.Reason, partitions: n.Partitions}
		return each(&m)
	})
}
