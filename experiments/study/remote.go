package study

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// CellKind is the kind of the tasks that are cells of a study.
const CellKind = "cell"

// cellTask is the input of such a task. The needs of the task are, by name, "rows/KEY" and "work/KEY", the file and the
// folder of each cell that this one reads, and "agent/N", Plan.Agents[N].Dir.
type cellTask struct {
	Study  string   `json:"study"`
	Quick  bool     `json:"quick,omitempty"`
	Seeds  int      `json:"seeds,omitempty"`
	Data   string   `json:"data,omitempty"`
	Agents []string `json:"agents,omitempty"` // Where of each
	// Changes are not there if nothing is changed.
	Changes *Changes `json:"changes,omitempty"`
	Key     string   `json:"key"`
	Digest  string   `json:"digest"`
}

// cellValue is the value of its result.
type cellValue struct {
	Rows json.RawMessage `json:"rows"`
}

// remote hands cells to other machines.
type remote struct {
	queue *workqueue.Coordinator

	mu  sync.Mutex
	put map[string]string // digests in the store, by path
}

// stored returns the digest of a file or folder in the store.
func (q *remote) stored(ctx context.Context, path string) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d, ok := q.put[path]; ok {
		return d, nil
	}
	d, err := q.queue.Put(ctx, path)
	if err == nil {
		q.put[path] = d
	}
	return d, err
}

// task returns cell i as a task.
func (r *run) task(ctx context.Context, i int) (workqueue.Task, error) {
	c, p := &r.cells[i], &r.opt.Plan
	in := cellTask{Study: r.study.Name, Quick: p.Quick, Seeds: p.Seeds, Data: p.Data, Key: c.Key, Digest: r.at[i].digest}
	needs := map[string]string{}
	if p.Changes.some() {
		in.Changes = &p.Changes
	}
	need := func(name, path string) error {
		d, err := r.remote.stored(ctx, path)
		needs[name] = d
		return err
	}
	for k, a := range p.Agents {
		in.Agents = append(in.Agents, a.Where)
		if err := need("agent/"+strconv.Itoa(k), a.Dir); err != nil {
			return workqueue.Task{}, err
		}
	}
	for _, a := range c.After {
		at := &r.at[r.index[a]]
		if err := need("rows/"+a, at.file); err != nil {
			return workqueue.Task{}, err
		}
		if files, err := at.left(); err != nil {
			return workqueue.Task{}, err
		} else if files {
			if err := need("work/"+a, at.work); err != nil {
				return workqueue.Task{}, err
			}
		}
	}
	return workqueue.NewTask(CellKind, c.Key, in, needs)
}

// elsewhere puts cell i into the queue and waits until a worker, or a free slot of this machine, has computed it. If it
// returns no error, the cell has been kept.
func (r *run) elsewhere(ctx context.Context, i int) (f finished) {
	f.i, f.kept = i, true
	begun := r.opt.Now()
	t, err := r.task(ctx, i)
	if err != nil {
		f.err = err
		return f
	}
	f.err = r.remote.queue.Do(ctx, t, func(ctx context.Context, workers int) error {
		begun = r.opt.Now() // before, it waited
		// Another machine may have begun it.
		if err := r.at[i].begin(); err != nil {
			return err
		}
		if err := arrive(&r.at[i], func(dir string) (bool,
			error) {
			return r.remote.queue.Restore(ctx, t.Digest, dir)
		}); err != nil {
			return err
		}
		rows, err := r.cell(ctx, i, workers)
		if err != nil {
			return err
		}
		f.rows, f.wall = rows, r.opt.Now().Sub(begun)
		return r.at[i].end(rows, f.wall)
	}, func(res *workqueue.Result) error {
		var v cellValue
		if err := json.Unmarshal(res.Value, &v); err != nil {
			return fmt.Errorf("the result of worker %s cannot be read: %w", res.Worker, err)
		}
		rows, err := decodeRows(v.Rows)
		if err != nil {
			return fmt.Errorf("the result of worker %s cannot be read: %w", res.Worker, err)
		}
		if res.Files == "" {
			err = os.RemoveAll(r.at[i].work)
		} else if err = r.at[i].begin(); err == nil {
			err = arrive(&r.at[i], func(dir string) (bool, error) { return true, r.remote.queue.Unpack(ctx, res.Files, dir) })
		}
		if err != nil {
			return err
		}
		f.rows, f.wall, f.worker = rows, res.Wall, res.Worker
		return r.at[i].end(rows, res.Wall)
	})
	if ctx.Err() != nil && f.err != nil {
		f.err = ctx.Err()
	}
	return f
}

// arrive calls unpack with a temporary folder and moves what it unpacked into the cell's folder. It does nothing if
// unpack returns false.
func arrive(at *place, unpack func(dir string) (ok bool, err error)) error {
	aside := at.work + ".arriving" // not the folder of another cell: those of a folder are named by their keys
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if ok, err := unpack(aside); err != nil || !ok {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(aside, workFolder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(at.work, e.Name())
		if err := errors.Join(os.RemoveAll(to), os.Rename(filepath.Join(aside, workFolder, e.Name()), to)); err != nil {
			return err
		}
	}
	return nil
}

// workFolder is the cell's folder in the folder of a task.
const workFolder = "work"

// mostKnown is how many lists of cells a worker keeps, and mostSeeds the largest number of seeds that it takes from a
// task.
const (
	mostKnown = 16
	mostSeeds = 10000
)

// Handler returns what a worker does with cells: find returns the study of a name, and data is the folder of recorded
// workloads on this machine, "" = none: cells that read some are then refused.
func Handler(find func(name string) (Study, error), data string) workqueue.Handler {
	h := &cellHandler{find: find, data: data, known: map[string]*listed{}}
	return h.do
}

// cellHandler does cells. It keeps the lists of cells of the studies that it was asked for, as making one can mean
// reading large files.
type cellHandler struct {
	find func(name string) (Study, error)
	data string

	mu    sync.Mutex
	known map[string]*listed
}

// listed are the cells of a study as a plan wants it.
type listed struct {
	study Study
	data  string // folder of recorded workloads
	cells []Cell
	at    []place
	index map[string]int
}

func (h *cellHandler) do(ctx context.Context, j *workqueue.Job) (workqueue.Outcome, error) {
	var in cellTask
	if err := json.Unmarshal(j.Task.Input, &in); err != nil {
		return workqueue.Outcome{}, fmt.Errorf("the task cannot be read: %w", err)
	}
	l, err := h.list(&in, j)
	if err != nil {
		return workqueue.Outcome{}, err
	}
	i, ok := l.index[in.Key]
	if !ok {
		return workqueue.Outcome{}, fault.Mistakef("cell %s: experiment %s has none of that name here; "+
			"want the coordinator's recorded workloads in the folder that %s names", in.Key, in.Study, fault.Key("data"))
	}
	if l.at[i].digest != in.Digest {
		return workqueue.Outcome{}, fault.Mistakef("cell %s: its input is another one here than at the coordinator; "+
			"want the same recorded workloads in the folder that %s names", in.Key, fault.Key("data"))
	}
	c := &l.cells[i]
	if err := sameData(j.Dir, l.data); err != nil {
		return workqueue.Outcome{}, err
	}
	b := &Bench{
		Dir: j.Dir, Workers: j.Workers, study: l.study.Name, key: c.Key, work: filepath.Join(j.Dir,
			workFolder), now: time.Now, told: time.Now(),
		before: map[string]earlier{}, log: func(format string, args ...any) { j.Log(format, args...) }, at: j.Progress,
		saved: j.Save,
	}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return workqueue.Outcome{}, err
	}
	for _, a := range c.After {
		if j.Needs["rows/"+a] == "" {
			return workqueue.Outcome{}, fmt.Errorf("cell %s reads the rows of %s and has not brought them", c.Key, a)
		}
		e := earlier{work: j.Needs["work/"+a]}
		at := l.at[l.index[a]]
		at.file = j.Needs["rows/"+a]
		rows, _, ok, err := at.read()
		if err == nil && !ok {
			err = errors.New("it is of another input")
		}
		if err != nil {
			return workqueue.Outcome{}, fmt.Errorf("the rows of cell %s, which %s reads: %w", a, c.Key, err)
		}
		e.rows = rows
		b.before[a] = e
	}
	rows, err := b.run(ctx, c)
	if err != nil {
		return workqueue.Outcome{}, err
	}
	encoded, err := encodeRows(rows)
	if err != nil {
		return workqueue.Outcome{}, err
	}
	proof, err := encodeRows(steady(rows))
	if err != nil {
		return workqueue.Outcome{}, err
	}
	out := workqueue.Outcome{Value: cellValue{encoded}, Proof: proof}
	if entries, err := os.ReadDir(b.work); err != nil {
		return out, err
	} else {
		out.Keep = len(entries) > 0
	}
	return out, nil
}

// list returns the cells of the study that in names.
func (h *cellHandler) list(in *cellTask, j *workqueue.Job) (*listed, error) {
	plan := Plan{Quick: in.Quick, Seeds: in.Seeds, Workers: 1, sent: true}
	if in.Data != "" {
		// The path is the coordinator's. What lies there on this machine is not the task's business.
		if h.data == "" {
			return nil, fault.Mistakef("cell %s reads recorded workloads, and a worker opens no folder that a task names; "+
				"start it with %s and the folder on its machine", in.Key, fault.Key("data"))
		}
		plan.Data = h.data
	}
	if in.Seeds < 0 || in.Seeds > mostSeeds {
		return nil, fault.Mistakef("cell %s: got %d seeds, and workers take at most %d", in.Key, in.Seeds, mostSeeds)
	}
	if in.Changes != nil {
		plan.Changes = *in.Changes
	}
	key, err := json.Marshal([]any{in.Study, in.Quick, in.Seeds, plan.Data, in.Agents, plan.Changes})
	if err != nil {
		return nil, err
	}
	for k, where := range in.Agents {
		name := "agent/" + strconv.Itoa(k)
		if j.Needs[name] == "" {
			return nil, fmt.Errorf("cell %s names an agent on %q and has not brought it", in.Key, where)
		}
		plan.Agents = append(plan.Agents, Agent{Where: where, Dir: j.Needs[name]})
		key = append(key, j.Task.Needs[name]...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.known[string(key)]; l != nil {
		return l, nil
	}
	s, err := h.find(in.Study)
	if err != nil {
		return nil, err
	}
	l := &listed{study: s, data: plan.Data, index: map[string]int{}}
	if l.cells, err = s.Cells(plan); err != nil {
		return nil, err
	}
	if err := s.check(l.cells, plan); err != nil {
		return nil, err
	}
	if l.at, err = places(s.Name, "", l.cells); err != nil {
		return nil, err
	}
	for i, c := range l.cells {
		l.index[c.Key] = i
	}
	if len(h.known) >= mostKnown {
		clear(h.known)
	}
	h.known[string(key)] = l
	return l, nil
}

// sameData empties a folder in which a worker with another folder of recorded workloads began: what it left, such as
// the configuration of a run, names files that are not here.
func sameData(dir, data string) error {
	stamp := filepath.Join(dir, "data.sha256")
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(data)))
	if b, err := ordinary.Read(stamp, 4096); err == nil && string(b) == want {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(dir, workFolder)); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(want), 0o600) // scratch
}

// steady returns the rows that do not measure the machine.
func steady(rows []Row) (out []Row) {
	for i := range rows {
		if !rows[i].Timing() {
			out = append(out, rows[i])
		}
	}
	return out
}
