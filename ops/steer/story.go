package steer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"clustergym/internal/ordinary"
	"clustergym/lab/decisionlog"
)

// IsLog reports whether a file that begins with these bytes is a log of steer.
func IsLog(begin []byte) bool {
	return bytes.HasPrefix(begin, []byte(`{"log":"clustergym-steer/`)) ||
		bytes.HasPrefix(begin, []byte(`{"at":"`)) && bytes.Contains(begin, []byte(`"mode":"`))
}

// The bounds of a story.
const (
	mostStory   = 64 << 20 // bytes of the log's newest files
	mostLooks   = 20_000
	mostOptions = 32 // of decisions that follow from an order
	mostNotes   = 12 // of one look
)

// Story writes the log of steer in file, and in the files that it was before (file.1, file.2), as a log of decisions:
// what happened on the cluster, and at each look what the policy started, or would have. It begins where the cluster
// got the nodes that it has at the end, and leaves out the oldest looks if there are too many. lines is the number of
// lines in file.
func Story(file string, w io.Writer) (lines int, err error) {
	list, lines, err := readStory(file)
	if err != nil {
		return lines, err
	}
	if len(list) == 0 {
		return lines, fmt.Errorf("it is empty, want a log of gymctl steer")
	}
	list = sameNodes(list)
	first, last := list[0], list[len(list)-1]
	h := decisionlog.Header{
		Title: fmt.Sprintf("%s, --mode %s, %s", last.Policy, last.Mode,
			last.Cluster), Policy: last.Policy, Zero: first.Observed,
	}
	if last.DryRun {
		h.Title += ", dry run"
	}
	for i := range list {
		h.Scores, h.Rival = cmp.Or(list[i].Scores, h.Scores), cmp.Or(list[i].Rival, h.Rival)
	}
	for _, n := range first.Nodes {
		h.Nodes, h.Names = append(h.Nodes, n.GPUs), append(h.Names, n.Name)
	}
	t := teller{log: decisionlog.NewWriter(w, h), zero: first.Observed, now: math.Inf(-1), number: map[string]int{},
		down: make([]bool, len(h.Nodes)), jobs: map[string]*toldJob{}, asks: h.Scores+h.Rival != ""}
	for i, n := range first.Nodes {
		t.number[n.Name] = i
		t.first = append(t.first, len(t.owner))
		t.owner = append(t.owner, make([]*toldJob, n.GPUs)...)
	}
	t.first = append(t.first, len(t.owner))
	for i, l := range list {
		t.look(l, i == 0, i == len(list)-1)
	}
	return lines, t.log.Flush()
}

// Files returns the files of a log, newest first: file, file.1, file.2 and so on.
func Files(file string) []string {
	names := []string{file}
	for {
		name := fmt.Sprintf("%s.%d", file, len(names))
		if _, err := os.Stat(name); err != nil {
			return names
		}
		names = append(names, name)
	}
}

// readStory reads the newest lines of a log, from one that stands alone on.
func readStory(file string) (list []*Line, lines int, err error) {
	names := Files(file)
	size, from := int64(0), len(names)-1
	for k, name := range names {
		i, err := os.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if size += i.Size(); size > mostStory && k > 0 {
			from = k - 1
			break
		}
	}
	for k := from; k >= 0; k-- {
		lines = 0
		if err := readLines(names[k], func(l *Line) {
			lines++
			if l != nil && (len(list) > 0 || len(l.Nodes) > 0) {
				list = append(list, l)
			}
		}); err != nil && !(k > 0 && errors.Is(err, fs.ErrNotExist)) { // it may just have become another one
			return nil, 0, err
		}
	}
	if len(list) > mostLooks {
		for at := len(list) - mostLooks; at < len(list); at++ {
			if list[at].Log != "" {
				return list[at:], lines, nil
			}
		}
	}
	return list, lines, nil
}

// readLines calls f for every whole line of a file; with nil for one that nobody understands.
func readLines(name string, f func(l *Line)) error {
	in, err := ordinary.Open(name)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	r := bufio.NewReaderSize(io.LimitReader(in, 4*mostStory), 1<<16)
	for {
		b, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l := new(Line)
		if json.Unmarshal(b, l) != nil || l.Mode == "" {
			l = nil
		}
		f(l)
	}
}

// sameNodes returns the lines from the last one on at which the cluster got other nodes.
func sameNodes(list []*Line) []*Line {
	same := func(a, b NodeLine) bool { return a.Name == b.Name && a.GPUs == b.GPUs }
	from, nodes := 0, list[0].Nodes
	for i, l := range list {
		if len(l.Nodes) > 0 && !slices.EqualFunc(l.Nodes, nodes, same) {
			from, nodes = i, l.Nodes
		}
	}
	return list[from:]
}

// teller writes a story.
type teller struct {
	log    *decisionlog.Writer
	zero   time.Time
	now    float64
	number map[string]int // of nodes
	first  []int          // GPU of each node, and one more
	down   []bool
	owner  []*toldJob // by GPU
	jobs   map[string]*toldJob
	told   map[string]bool // jobs that have a line
	order  []string
	n      int  // decisions
	asks   bool // the policy acts through an environment
}

// toldJob is a job of a story.
type toldJob struct {
	line JobLine
	runs bool
	held []int32
}

// happening is an event of a look.
type happening struct {
	at   time.Time
	kind string
	job  *JobLine
	node int32
}

// rank orders events of one time.
func (h *happening) rank() int {
	return slices.Index([]string{"finish", "drop", "preempt", "node-recover", "submit", "start", "node-fail"}, h.kind)
}

func (t *teller) look(l *Line, first, last bool) {
	var list []happening
	add := func(at time.Time, kind string, j *JobLine) {
		if at.IsZero() || at.After(l.Observed) {
			at = l.Observed
		}
		list = append(list, happening{at: at, kind: kind, job: j})
	}
	for i := range l.Nodes {
		if k, known := t.number[l.Nodes[i].Name]; known && t.down[k] != l.Nodes[i].Down {
			t.down[k] = l.Nodes[i].Down
			list = append(list, happening{at: l.Observed, kind: map[bool]string{true: "node-fail", false: "node-recover"}[t.down[k]], node: int32(k)}) //nolint:gosec // few
		}
	}
	if l.Log != "" || first {
		t.alone(l, add)
	} else {
		t.changes(l, add)
	}
	slices.SortStableFunc(list,
		func(a, b happening) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank(), b.rank())) })
	happened := len(list) > 0
	for i := range list {
		t.event(&list[i])
	}
	if len(l.Order) > 0 {
		t.order = t.order[:0]
		for _, r := range l.Order {
			t.order = append(t.order, r.ID)
		}
	}
	if notes := notesOf(l); happened || last || len(notes) > 0 || l.Waiting > 0 {
		t.decide(l, notes)
	}
}

// alone compares what is known with all jobs of a line that stands alone.
func (t *teller) alone(l *Line, add func(at time.Time, kind string, j *JobLine)) {
	here := map[string]bool{}
	ended := map[string]*JobLine{}
	for i := range l.Ended {
		ended[l.Ended[i].ID] = &l.Ended[i]
	}
	all := l.Jobs
	if l.Log == "" {
		all = slices.Concat(l.Arrived, l.Started)
	}
	for i := range all {
		j := &all[i]
		here[j.ID] = true
		was := t.jobs[j.ID]
		if was == nil {
			add(j.Submit, "submit", j)
		}
		runs := len(j.Nodes) > 0
		if was != nil && was.runs && (!runs || !was.line.Start.Equal(j.Start)) {
			add(time.Time{}, "preempt", j)
		}
		if runs && (was == nil || !was.runs || !was.line.Start.Equal(j.Start)) {
			add(j.Start, "start", j)
		}
	}
	var gone []*toldJob
	for id, j := range t.jobs {
		if !here[id] {
			gone = append(gone, j)
		}
	}
	slices.SortFunc(gone, func(a, b *toldJob) int { return strings.Compare(a.line.ID, b.line.ID) })
	for _, j := range gone {
		end := time.Time{}
		if e := ended[j.line.ID]; e != nil {
			end = e.End
		}
		add(end, map[bool]string{true: "finish", false: "drop"}[j.runs], &j.line)
	}
}

func (t *teller) changes(l *Line, add func(at time.Time, kind string, j *JobLine)) {
	for i := range l.Arrived {
		if j := &l.Arrived[i]; t.jobs[j.ID] == nil {
			add(j.Submit, "submit", j)
		}
	}
	for i := range l.Requeued {
		if was := t.jobs[l.Requeued[i].ID]; was != nil && was.runs {
			at := time.Time{}
			if len(l.Requeued[i].Nodes) > 0 {
				at = l.Requeued[i].Start
			}
			add(at, "preempt", &l.Requeued[i])
		}
	}
	for i := range l.Started {
		add(l.Started[i].Start, "start", &l.Started[i])
	}
	for i := range l.Ended {
		if was := t.jobs[l.Ended[i].ID]; was != nil {
			add(l.Ended[i].End,
				map[bool]string{true: "finish", false: "drop"}[was.runs || !l.Ended[i].Start.IsZero() && len(l.Ended[i].Nodes) > 0],
				&l.Ended[i])
		}
	}
}

func (t *teller) since(at time.Time) float64 { return at.Sub(t.zero).Seconds() }

func (t *teller) event(h *happening) {
	t.now = max(t.now, t.since(h.at))
	e := decisionlog.Event{At: t.now, Kind: h.kind}
	if h.job == nil {
		e.Node = &h.node
		t.log.Event(&e)
		return
	}
	e.Job = h.job.ID
	j := t.jobs[h.job.ID]
	if j == nil {
		if h.kind != "submit" && h.kind != "start" {
			return
		}
		j = t.add(h.job)
	}
	switch h.kind {
	case "start":
		if t.leave(j); len(h.job.Nodes) > 0 {
			t.seat(j, h.job)
		}
		j.line, j.runs, e.GPUs = *h.job, true, j.held
	case "finish", "drop":
		if h.kind == "finish" && !j.runs && len(h.job.Nodes) > 0 { // it has come and gone between two looks
			t.seat(j, h.job)
			t.log.Event(&decisionlog.Event{At: t.now, Kind: "start", Job: j.line.ID, GPUs: j.held})
		}
		t.leave(j)
		delete(t.jobs, h.job.ID)
	case "preempt":
		t.leave(j)
		j.runs = false
	}
	t.log.Event(&e)
}

// add writes a job of which the log knows nothing.
func (t *teller) add(l *JobLine) *toldJob {
	j := &toldJob{line: *l}
	t.jobs[l.ID] = j
	if t.told == nil {
		t.told = map[string]bool{}
	}
	if !t.told[l.ID] {
		t.told[l.ID] = true
		out := decisionlog.Job{ID: l.ID, Submit: t.since(l.Submit), GPUs: l.GPUs, User: l.User}
		if l.Limit > 0 {
			out.Estimate = &l.Limit
		}
		t.log.Job(&out)
	}
	return j
}

func (t *teller) leave(j *toldJob) {
	for _, g := range j.held {
		if t.owner[g] == j {
			t.owner[g] = nil
		}
	}
	j.held = nil
}

// seat gives j GPUs of its nodes: the log does not say which.
func (t *teller) seat(j *toldJob, l *JobLine) {
	for i, name := range l.Nodes {
		k, known := t.number[name]
		if !known {
			continue
		}
		want := l.GPUs / len(l.Nodes)
		if len(l.On) == len(l.Nodes) {
			want = l.On[i]
		}
		for g := t.first[k]; g < t.first[k+1] && want > 0; g++ {
			if t.owner[g] == nil {
				t.owner[g], j.held = j, append(j.held, int32(g)) //nolint:gosec // few
				want--
			}
		}
	}
}

// notesOf says what has been done at a look, and what came of it.
func notesOf(l *Line) (notes []string) {
	if l.Lost > 0 {
		notes = append(notes, fmt.Sprintf("%d lines of the log before this one are lost: the disk was too slow", l.Lost))
	}
	if l.Note != "" {
		notes = append(notes, l.Note)
	}
	var alike, others []string
	for i := range l.Started {
		if j := &l.Started[i]; j.Chosen {
			alike = append(alike, j.ID)
		} else {
			others = append(others, j.ID)
		}
	}
	if len(alike) > 0 {
		notes = append(notes, "the cluster has started, as the policy wanted: "+few(alike))
	}
	if len(others) > 0 {
		notes = append(notes, "the cluster has started on its own: "+few(others))
	}
	var done, refused []string
	for _, w := range l.Writes {
		switch {
		case w.Error != "":
			refused = append(refused, w.Action+" ("+w.Error+")")
		default:
			done = append(done, w.Action)
		}
	}
	if len(done) > 0 {
		notes = append(notes, map[bool]string{true: "would be written: ", false: "written: "}[l.DryRun]+few(done))
	}
	if len(refused) > 0 {
		notes = append(notes, "refused: "+few(refused))
	}
	return notes
}

// few joins the first words of a list.
func few(list []string) string {
	if len(list) > mostNotes {
		return strings.Join(list[:mostNotes], ", ") + fmt.Sprintf(" and %d more", len(list)-mostNotes)
	}
	return strings.Join(list, ", ")
}

// decide writes the decisions of a look: those that the policy has told, or, of one that sees the whole queue, one for
// each start.
func (t *teller) decide(l *Line, notes []string) {
	t.now = max(t.now, t.since(l.Observed))
	list := l.Decisions
	if len(list) == 0 {
		list = t.fromOrder(l)
		for i := range list {
			for k := range list[i].Options {
				o := &list[i].Options[k]
				o.Illegal = t.asks && o.Do == "start" && k != list[i].Chosen // nobody was asked: nothing fits
			}
		}
	}
	for i := range list {
		for _, o := range list[i].Options {
			if o.Job != "" && !t.told[o.Job] {
				return // lines are missing
			}
		}
		t.n++
		d := decisionlog.Decision{At: t.now, Number: t.n, Options: list[i].Options, Chosen: list[i].Chosen,
			Rival: list[i].Rival, Waiting: max(0, l.Waiting-i)}
		if i == 0 {
			d.Notes = notes
		}
		t.log.Decision(&d)
	}
}

// fromOrder makes decisions of what a policy starts, among the first jobs of its order.
func (t *teller) fromOrder(l *Line) (list []DecisionLine) {
	order := slices.DeleteFunc(slices.Clone(t.order), func(id string) bool { return t.jobs[id] == nil || t.jobs[id].runs })
	if len(order) == 0 {
		for id, j := range t.jobs {
			if !j.runs {
				order = append(order, id)
			}
		}
		slices.SortFunc(order, func(a, b string) int {
			return cmp.Or(t.jobs[a].line.Submit.Compare(t.jobs[b].line.Submit), strings.Compare(a, b))
		})
	}
	begun := map[string]bool{}
	for i := 0; i <= len(l.Starts); i++ {
		d := DecisionLine{Chosen: -1}
		for k := i; k < len(l.Starts); k++ { // what starts is shown wherever it stands
			if t.jobs[l.Starts[k].ID] == nil || t.jobs[l.Starts[k].ID].runs {
				begun[l.Starts[k].ID] = true
			}
		}
		for _, id := range order {
			chosen := i < len(l.Starts) && l.Starts[i].ID == id
			if !begun[id] && (chosen || len(d.Options) < mostOptions) {
				if chosen {
					d.Chosen = len(d.Options)
				}
				d.Options = append(d.Options, decisionlog.Option{Do: "start", Job: id})
			}
		}
		if i < len(l.Starts) {
			begun[l.Starts[i].ID] = true
			if d.Chosen < 0 {
				continue
			}
		} else {
			d.Chosen = len(d.Options)
		}
		d.Options = append(d.Options, decisionlog.Option{Do: "wait"})
		list = append(list, d)
	}
	return list
}
