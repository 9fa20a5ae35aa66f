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
	"clustergym/traces/sacct"
)

// number is a sacct.Number that is needed. Fractions are cut off.
type number struct{ sacct.Number }

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	if err := n.Number.UnmarshalJSON(b); err != nil || n.Bad == "" {
		return err
	}
	f, err := strconv.ParseFloat(n.Bad, 64)
	if err != nil || math.Abs(f) > 1<<62 {
		return fmt.Errorf("got %.40q, want a number", n.Bad)
	}
	n.V, n.Set = int64(f), true
	return nil
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
	User         string `json:"user_name"`
	UserID       number `json:"user_id"`
	Account      string `json:"account"`
	Partition    string `json:"partition"`
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
}

func (j *jsonJob) record() record {
	r := record{
		id: j.ID.V, array: j.Array.V, het: j.Het.V, offset: j.Offset.V, task: -1, waiting: j.Tasks, throttle: j.Throttle.V,
		states: j.State.upper(), reason: j.Reason, user: j.User, account: j.Account,
		partition: j.Partition, name: j.Name, admin: j.Admin, comment: j.Comment,
		dependency: j.Dependency, required: j.Required, excluded: j.Excluded, nodes: j.Nodes,
		submit: j.Submit.V, eligible: j.Eligible.V, start: j.Start.V, end: j.End.V,
		limit:     time.Duration(min(j.Limit.V, maxMinutes)) * time.Minute,
		nodeCount: j.NodeCount.V, cpus: j.CPUs.V, ntasks: j.NTasks.V, sockets: j.Sockets.V, priority: j.Priority.V,
		restarts: j.Restarts.V,
		perNode:  j.PerNode, perJob: j.PerJob, perTask: j.PerTask, perSocket: j.PerSocket,
		alloc: j.Alloc, request: j.Request, detail: j.Detail, memNode: j.MemoryNode.V << 20, memCPU: j.MemoryPerCPU.V << 20,
	}
	if j.Priority.Infinite || !j.Priority.Set {
		r.priority = 1 // not 0, which is a hold
	}
	if j.Task.Set && j.Array.V != 0 && r.waiting == "" {
		r.task = j.Task.V
	}
	if r.user == "" && j.UserID.Set {
		r.user = fmt.Sprint(j.UserID.V)
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
	release string
	faults  []string
}

// stream reads a document of Slurm's commands, and calls each with every element of the list called name. Only one
// element is held in memory.
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
			var raw map[string]json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return fail(err)
			}
			var m struct {
				Release string `json:"release"`
			}
			for key, value := range raw { // "Slurm", later "slurm"; the order does not matter
				if strings.EqualFold(key, "slurm") {
					_ = json.Unmarshal(value, &m) // of another shape: it is only shown
				}
			}
			h.release = m.Release
		case "errors":
			if h.faults, err = faults(d); err != nil {
				return fail(err)
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

// faults reads the list of errors in a document.
func faults(d *json.Decoder) (list []string, err error) {
	var all []struct {
		Description string `json:"description"`
		Error       string `json:"error"`
	}
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	for _, e := range all {
		s := e.Error
		if e.Description != "" {
			s = e.Description + ": " + s
		}
		list = append(list, s)
	}
	return list, nil
}

// readJobs reads squeue --json.
func readJobs(r io.Reader, each func(*record) error) (head, error) {
	var j jsonJob
	return stream(r, "jobs", func(d *json.Decoder) error {
		j = jsonJob{}
		if err := d.Decode(&j); err != nil {
			return err
		}
		if j.ID.V <= 0 || len(j.State) == 0 {
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
		m := machine{name: n.Name, states: append(n.State.upper(), n.Flags.upper()...), gres: n.Gres, used: n.Used,
			cpus: n.CPUs.V, mem: n.Memory.V, reason: n.Reason, partitions: n.Partitions}
		return each(&m)
	})
}
