package kube

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/traces"
)

// The reasons for which jobs are left out.
const (
	NoGPUs       = "no GPUs: nothing of it asks for one"
	NeverStarted = "never started: no pod had a node, and startTime is not set"
	NotEnded     = "not ended: neither complete nor failed when it was last seen"
	NoRunTime    = "no run time: it ended when it started"
)

// Reader is a traces.Stream over the jobs of a recording, in order of submit. It holds all objects in memory. Not safe
// for concurrent use.
type Reader struct {
	traces.Sorted
	evicted int
	others  []Other
	parts   []Other
}

// Objects are the objects of a recording, each in its last state, by uid.
type Objects struct {
	Jobs      map[string]*Job
	Pods      map[string]*Pod
	Workloads map[string]*Workload
	others    int
	histories map[string]*runHistory // by uid
}

// past returns the history that the states of an object record.
func (o *Objects) past(uid string) *runHistory {
	if o.histories == nil {
		o.histories = map[string]*runHistory{}
	}
	if o.histories[uid] == nil {
		o.histories[uid] = &runHistory{}
	}
	return o.histories[uid]
}

// NewReader reads a recording to its end. file is the name used in messages; what is no recording is a *traces.RowError
// that names the document in place of the line.
func NewReader(r io.Reader, file string, as Reading) (*Reader, error) {
	o := &Objects{Jobs: map[string]*Job{}, Pods: map[string]*Pod{}, Workloads: map[string]*Workload{}}
	d := json.NewDecoder(r)
	for n := 1; ; n++ {
		var text json.RawMessage
		err := d.Decode(&text)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = o.Add(text)
		}
		if err != nil {
			return nil, &traces.RowError{File: file, Line: n,
				Says: fmt.Sprintf("document %d is none of kubectl get -o json: %v", n, err)}
		}
	}
	if len(o.Jobs)+len(o.Pods)+len(o.Workloads) == 0 {
		return nil, &traces.RowError{File: file, Line: 1,
			Says: fmt.Sprintf("no Jobs, pods or Workloads among %d objects; want what kubectl get jobs,pods -A -o json prints",
				o.others)}
	}
	return o.Trace(as), nil
}

// Add takes a list, an event of a watch, or an object.
func (o *Objects) Add(text json.RawMessage) error { return o.add(text, "", false) }

// add takes a document; kind is what it is if it does not say so, as in the lists of the API server.
func (o *Objects) add(text json.RawMessage, kind string, deleted bool) error {
	var head struct {
		Kind   string            `json:"kind"`
		Type   string            `json:"type"`
		Object json.RawMessage   `json:"object"`
		Items  []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	if head.Object != nil && head.Type != "" {
		if head.Type == "ERROR" || head.Type == "BOOKMARK" {
			return nil
		}
		return o.add(head.Object, "", head.Type == "DELETED")
	}
	kind = cmp.Or(head.Kind, kind)
	if of, list := strings.CutSuffix(kind, "List"); list {
		for _, item := range head.Items {
			if err := o.add(item, of, false); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	switch kind {
	case "Job":
		err = keep(o.Jobs, text, func(j *Job) { o.past(j.UID).job(j) })
	case "Pod":
		err = keep(o.Pods, text, func(p *Pod) {
			if deleted {
				o.past(p.UID).deleted = true
			}
		})
	case "Workload":
		err = keep(o.Workloads, text, func(w *Workload) { o.past(w.UID).workload(w) })
	case "":
		return errors.New("it has no kind")
	default:
		o.others++
	}
	return err
}

// keep stores an object unless a later state of it is there, and has each state noted.
func keep[T any, P interface {
	*T
	Head() *Meta
}](all map[string]*T, text json.RawMessage, note func(*T)) error {
	o := new(T)
	if err := json.Unmarshal(text, o); err != nil {
		return err
	}
	m := P(o).Head()
	if m.UID == "" || m.CreationTimestamp.IsZero() {
		return fmt.Errorf("%s/%s has no uid or creationTimestamp", m.Namespace, m.Name)
	}
	note(o)
	if old := all[m.UID]; old != nil && number(m.ResourceVersion) < number(P(old).Head().ResourceVersion) {
		return nil
	}
	all[m.UID] = o
	return nil
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ran is a job, when it came, when it had its nodes, and when it ended.
type ran struct {
	job            traces.Job
	submit, finish time.Time
	started        bool
	runs           []Run
	before         time.Duration // of earlier runs whose times are unknown
	evicted        bool          // it ran before, for an unknown time
	asks           asked         // that counts as no GPU
}

// all returns all jobs, in order of submit.
func (o *Objects) all(as Reading) (all []ran) {
	ofJob := map[string][]*Pod{}     // by the Job's uid
	byOwner := map[string][]*Pod{}   // by the uid of what else owns them
	gangs := map[string][]*Pod{}     // pods without a Job, by ID
	within := map[string]*Workload{} // by the owner's uid
	for _, w := range o.Workloads {
		for _, r := range w.OwnerReferences {
			if old := within[r.UID]; old == nil || old.CreationTimestamp.Before(w.CreationTimestamp) ||
				old.CreationTimestamp.Equal(w.CreationTimestamp) && old.UID < w.UID {
				within[r.UID] = w
			}
		}
	}
	for _, p := range o.Pods {
		switch c := p.Controller(); {
		case c.Kind == "Job":
			ofJob[c.UID] = append(ofJob[c.UID], p)
		case within[c.UID] != nil || within[p.UID] != nil:
			byOwner[cmp.Or(c.UID, p.UID)] = append(byOwner[cmp.Or(c.UID, p.UID)], p)
		default:
			gangs[PodsID(p)] = append(gangs[PodsID(p)], p)
		}
	}
	workloadOfJob := map[*Workload]bool{}
	for uid, j := range o.Jobs {
		if w := within[j.Controller().UID]; w != nil && j.Controller().UID != "" {
			byOwner[j.Controller().UID] = append(byOwner[j.Controller().UID], ofJob[uid]...)
			continue
		}
		w := within[uid]
		workloadOfJob[w] = true
		r := ran{job: as.FromJob(j, ofJob[uid], w), submit: j.CreationTimestamp, asks: as.ofJob(j, ofJob[uid])}
		r.finish, r.job.Status = j.Finished()
		o.run(&r, ofJob[uid], j.Gang(), o.histories[uid], w)
		all = append(all, r)
	}
	for _, w := range o.Workloads {
		if workloadOfJob[w] {
			continue
		}
		r := ran{job: as.FromWorkload(w), submit: w.CreationTimestamp, asks: as.ofWorkload(w)}
		if c := Holds(w.Status.Conditions, "Finished"); c != nil {
			r.finish = c.LastTransitionTime
			switch c.Reason {
			case "Succeeded", "JobFinished":
				r.job.Status = traces.Completed
			case "Failed":
				r.job.Status = traces.Failed
			}
		}
		var pods []*Pod
		for _, owner := range w.OwnerReferences {
			pods = append(pods, byOwner[owner.UID]...)
		}
		o.run(&r, pods, w.pods(), nil, w)
		all = append(all, r)
	}
	for _, pods := range gangs {
		slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) })
		r := ran{job: as.FromPods(pods), submit: pods[0].CreationTimestamp, asks: as.ofPods(pods)}
		r.finish, r.job.Status = o.over(pods)
		o.run(&r, pods, len(members(pods)), nil, nil)
		all = append(all, r)
	}
	slices.SortFunc(all,
		func(a, b ran) int { return cmp.Or(a.submit.Compare(b.submit), strings.Compare(a.job.ID, b.job.ID)) })
	return all
}

// Trace returns the jobs that have run.
func (o *Objects) Trace(as Reading) *Reader {
	d, all := &Reader{}, o.all(as)
	var (
		jobs        []traces.Job
		none, parts asks
	)
	for _, r := range all {
		work := lasted(r.runs)
		switch {
		case r.job.GPUs == 0 && len(r.asks) > 0:
			none.add(r.asks)
		case r.job.GPUs == 0:
			d.Left.Add(NoGPUs)
		case !r.started:
			d.Left.Add(NeverStarted)
		case r.finish.IsZero():
			d.Left.Add(NotEnded)
		case work <= 0:
			d.Left.Add(NoRunTime)
		default:
			r.job.Work = min(work+min(r.before, traces.MaxTime), traces.MaxTime)
			if r.evicted {
				d.evicted++
			}
			if len(r.asks) > 0 {
				parts.add(r.asks)
			}
			if len(jobs) == 0 {
				all[0].submit = r.submit
			}
			r.job.Submit = min(r.submit.Sub(all[0].submit), traces.MaxTime)
			jobs = append(jobs, r.job)
		}
	}
	d.Sort(jobs)
	d.others, d.parts = none.list(), parts.list()
	for _, x := range d.others {
		d.Left.AddN(x.reason(), x.Jobs)
	}
	return d
}

// run finds out when a job ran: from its pods, else from its Job, else from its Workload. w may be nil.
func (o *Objects) run(r *ran, pods []*Pod, width int, job *runHistory, w *Workload) {
	var quota *runHistory
	evictions := 0
	if w != nil {
		// a quota is all it takes where admission is not checked
		if quota = o.histories[w.UID]; quota == nil || len(quota.starts) == 0 {
			quota = &runHistory{}
			quota.add(&quota.starts, w.Admitted())
		}
		evictions = w.Evictions()
	}
	both := job.with(quota)
	all, unknown := podRuns(pods, width, r.finish, both,
		func(p *Pod) bool { return o.histories[p.UID] != nil && o.histories[p.UID].deleted })
	gap := unknown > 0
	for _, p := range []*runHistory{job, quota} {
		of, missing := p.runs(r.finish)
		all = fill(all, of)
		gap = gap || missing
	}
	settle(all, r.finish)
	r.runs, r.started = all, len(all) > 0 || len(both.starts) > 0 || !begun(pods).IsZero()
	switch {
	case w != nil && w.Earlier() > 0:
		if len(all) == 1 {
			r.before = w.Earlier()
		}
	case len(all) > 0:
		r.evicted = len(all) <= evictions || gap && !told(all, pods, both.starts)
	}
}

// told reports whether each known start lies in a run.
func told(all []Run, pods []*Pod, starts []time.Time) bool {
	in := func(at time.Time) bool {
		return slices.ContainsFunc(all, func(r Run) bool { return !at.Before(r.Start.Add(-slack)) && at.Before(r.End) })
	}
	for _, p := range pods {
		if at := p.Started(); !at.IsZero() && p.Spec.NodeName != "" && !in(at) {
			return false
		}
	}
	return !slices.ContainsFunc(starts, func(at time.Time) bool { return !in(at) })
}

// begun returns when the first of the pods got its node.
func begun(pods []*Pod) (at time.Time) {
	for _, p := range pods {
		if t := p.Started(); !t.IsZero() && p.Spec.NodeName != "" && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// over returns when the last of the pods ended, zero if one has not. Pods that were replaced do not tell how the gang
// ended.
func (o *Objects) over(pods []*Pod) (at time.Time, status traces.Status) {
	status = traces.Completed
	for _, p := range members(pods) {
		if !p.Over() {
			return time.Time{}, traces.StatusUnknown
		}
		if t := p.Ended(); t.After(at) {
			at = t
		}
		if p.Status.Phase == "Failed" {
			status = traces.Failed
		}
	}
	return at, status
}

// Evicted returns how many of the jobs ran before, were evicted, and do not tell for how long they had run: their Work
// is that of the runs that are known.
func (d *Reader) Evicted() int { return d.evicted }

// Others returns what jobs without GPUs ask for that may be GPUs, or parts of them.
func (d *Reader) Others() []Other { return d.others }

// Parts returns what jobs with GPUs ask for, too: a part of each GPU, for one, which counts as a whole one.
func (d *Reader) Parts() []Other { return d.parts }
