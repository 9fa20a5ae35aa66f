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

// Reader is a traces.Stream over the jobs of a recording, in order of submit. It holds all objects in memory. Not safe for concurrent use.
type Reader struct {
	stream traces.Slice
	skips  traces.Skips
}

var _ traces.Stream = (*Reader)(nil)

// Objects are the objects of a recording, each in its last state, by uid.
type Objects struct {
	Jobs      map[string]*Job
	Pods      map[string]*Pod
	Workloads map[string]*Workload
	others    int
}

// NewReader reads a recording to its end. file is the name used in messages; what is no recording is a *traces.RowError that
// names the document in place of the line.
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
			return nil, &traces.RowError{File: file, Line: n, Says: fmt.Sprintf("document %d is none of kubectl get -o json: %v", n, err)}
		}
	}
	if len(o.Jobs)+len(o.Pods)+len(o.Workloads) == 0 {
		return nil, &traces.RowError{File: file, Line: 1, Says: fmt.Sprintf("no Jobs, pods or Workloads among %d objects; want what kubectl get jobs,pods -A -o json prints", o.others)}
	}
	return o.Trace(as), nil
}

// Add takes a list, an event of a watch, or an object.
func (o *Objects) Add(text json.RawMessage) error { return o.add(text, "") }

// add takes a document; kind is what it is if it does not say so, as in the lists of the API server.
func (o *Objects) add(text json.RawMessage, kind string) error {
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
		return o.add(head.Object, "")
	}
	kind = cmp.Or(head.Kind, kind)
	if of, list := strings.CutSuffix(kind, "List"); list {
		for _, item := range head.Items {
			if err := o.add(item, of); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	switch kind {
	case "Job":
		err = keep(o.Jobs, text, func(j *Job) *Meta { return &j.Meta })
	case "Pod":
		err = keep(o.Pods, text, func(p *Pod) *Meta { return &p.Meta })
	case "Workload":
		err = keep(o.Workloads, text, func(w *Workload) *Meta { return &w.Meta })
	case "":
		return errors.New("it has no kind")
	default:
		o.others++
	}
	return err
}

// keep stores an object unless a later state of it is there.
func keep[T any](all map[string]*T, text json.RawMessage, meta func(*T) *Meta) error {
	o := new(T)
	if err := json.Unmarshal(text, o); err != nil {
		return err
	}
	m := meta(o)
	if m.UID == "" || m.CreationTimestamp.IsZero() {
		return fmt.Errorf("%s/%s has no uid or creationTimestamp", m.Namespace, m.Name)
	}
	if old := all[m.UID]; old != nil && number(m.ResourceVersion) < number(meta(old).ResourceVersion) {
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

// ran is a job, and when it came, started and ended.
type ran struct {
	job                   traces.Job
	submit, start, finish time.Time
}

// Trace returns the jobs that have run.
func (o *Objects) Trace(as Reading) *Reader {
	ofJob := map[string][]*Pod{}     // by the Job's uid
	byOwner := map[string][]*Pod{}   // by the uid of what else owns them
	gangs := map[string][]*Pod{}     // pods without a Job, by ID
	within := map[string]*Workload{} // by the owner's uid
	for _, w := range o.Workloads {
		for _, r := range w.OwnerReferences {
			if old := within[r.UID]; old == nil || old.CreationTimestamp.Before(w.CreationTimestamp) || old.CreationTimestamp.Equal(w.CreationTimestamp) && old.UID < w.UID {
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
	var all []ran
	workloadOfJob := map[*Workload]bool{}
	for uid, j := range o.Jobs {
		if w := within[j.Controller().UID]; w != nil && j.Controller().UID != "" {
			byOwner[j.Controller().UID] = append(byOwner[j.Controller().UID], ofJob[uid]...)
			continue
		}
		w := within[uid]
		workloadOfJob[w] = true
		r := ran{job: as.FromJob(j, ofJob[uid], w), submit: j.CreationTimestamp, start: begun(ofJob[uid])}
		if r.start.IsZero() {
			r.start = j.Status.StartTime
		}
		r.finish, r.job.Status = j.Finished()
		all = append(all, r)
	}
	for _, w := range o.Workloads {
		if workloadOfJob[w] {
			continue
		}
		r := ran{job: as.FromWorkload(w), submit: w.CreationTimestamp, start: w.Admitted()}
		for _, owner := range w.OwnerReferences {
			if at := begun(byOwner[owner.UID]); !at.IsZero() {
				r.start = at
			}
		}
		if c := Holds(w.Status.Conditions, "Finished"); c != nil {
			r.finish = c.LastTransitionTime
			switch c.Reason {
			case "Succeeded", "JobFinished":
				r.job.Status = traces.Completed
			case "Failed":
				r.job.Status = traces.Failed
			}
		}
		all = append(all, r)
	}
	for _, pods := range gangs {
		slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) })
		r := ran{job: as.FromPods(pods), submit: pods[0].CreationTimestamp, start: begun(pods)}
		r.finish, r.job.Status = over(pods)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ran) int { return cmp.Or(a.submit.Compare(b.submit), strings.Compare(a.job.ID, b.job.ID)) })
	d := &Reader{}
	for _, r := range all {
		switch {
		case r.job.GPUs == 0:
			d.skips.Add(NoGPUs)
		case r.start.IsZero():
			d.skips.Add(NeverStarted)
		case r.finish.IsZero():
			d.skips.Add(NotEnded)
		case !r.finish.After(r.start):
			d.skips.Add(NoRunTime)
		default:
			r.job.Work = min(r.finish.Sub(r.start), traces.MaxTime)
			if len(d.stream.Jobs) == 0 {
				all[0].submit = r.submit
			}
			r.job.Submit = min(r.submit.Sub(all[0].submit), traces.MaxTime)
			d.stream.Jobs = append(d.stream.Jobs, r.job)
		}
	}
	return d
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

// over returns when the last of the pods ended, zero if one has not.
func over(pods []*Pod) (at time.Time, status traces.Status) {
	status = traces.Completed
	for _, p := range pods {
		if !p.Over() {
			return time.Time{}, traces.StatusUnknown
		}
		if t := p.Finished(); t.After(at) {
			at = t
		}
		if p.Status.Phase == "Failed" {
			status = traces.Failed
		}
	}
	return at, status
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Skipped returns how many jobs were left out, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

// Jobs returns how many jobs there are.
func (d *Reader) Jobs() int { return len(d.stream.Jobs) }
