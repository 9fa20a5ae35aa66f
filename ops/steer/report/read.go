package report

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/plain"
	"clustergym/ops/steer"
)

// Job is what the log tells of a job.
type Job struct {
	ID, User, VC string
	GPUs         int
	Types        []string
	Limit        time.Duration // 0 = none
	Submit       time.Time     // or when it began to compete for GPUs, if it was blocked before
	Start        time.Time     // the first that the log tells; zero = it has not started
	Again        time.Time     // the last start
	End          time.Time     // zero = it has not ended
	Nodes        []string      // of the last start
	On           []int         // GPUs on each of Nodes, if there are several and the log tells
	Restarts     int
	Gone         bool // it left without having run, as far as the log tells

	Asked  bool      // a look has seen it wait before it started
	Chosen bool      // at the last of these looks the policy would have started it,
	Placed bool      // the log tells where,
	Same   bool      // and it was there
	Wanted time.Time // the first look at which the policy would have started it; zero = none

	first   time.Time // the first look that has seen it
	blocked bool
}

// Log is what logs tell of a cluster.
type Log struct {
	Files    []string
	Cluster  string
	Policy   string   // of the last line
	Policies []string // all, in order of appearance
	Modes    []string
	Begun    *steer.Begun // of the last run of steer; nil = the log does not tell
	Nodes    []steer.NodeLine
	From, To time.Time // of the first and last look
	Jobs     []*Job    // in order of Submit
	Looks    int
	Runs     int     // of steer
	Cut      int     // lines that are no JSON, such as the last one before a crash
	Lost     int64   // lines that steer could not write
	Unseen   int     // ends that nobody told: the next look stands for them
	Changed  int     // how often the log tells of other nodes
	Down     float64 // share of GPU time on nodes that were down

	byID   map[string]*Job
	inside map[string]*Job // that wait or run as of the last line
	starts map[string][]string
	down   int     // GPUs
	told   string  // nodes, as the last line that names them
	sum    float64 // GPU seconds down
	names  map[string]string
}

// line is a line of the log. Those that stand alone list all jobs that wait or run.
type line struct {
	steer.Line
	Log  string          `json:"log"`
	Jobs []steer.JobLine `json:"jobs"`
}

// Read reads logs of one cluster, each with the older files FILE.1, FILE.2 and so on that it has. They may be given in
// any order. Of a log of which nothing can be said it returns why.
func Read(ctx context.Context, files []string) (*Log, error) {
	l := &Log{byID: map[string]*Job{}, inside: map[string]*Job{}, names: map[string]string{}}
	type part struct {
		name  string
		parts []string
		first time.Time
	}
	var all []part
	seen := map[string]bool{}
	for _, name := range files {
		p := part{name: name, parts: steer.Files(name)}
		slices.Reverse(p.parts) // oldest first
		for _, f := range p.parts {
			if seen[f] {
				return nil, fault.Mistakef("%s is given twice: FILE.1 and its siblings are read with FILE", f)
			}
			seen[f] = true
		}
		var err error
		for _, f := range p.parts {
			if p.first, err = firstLook(f); err != nil {
				return nil, err
			}
			if !p.first.IsZero() {
				break
			}
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b part) int { return a.first.Compare(b.first) })
	for i := range all {
		if i > 0 && !l.To.IsZero() && all[i].first.Before(l.To.Add(-time.Minute)) {
			return nil, fault.Mistakef("%s begins at %s, before %s ends (%s): want logs of one steer after the other",
				all[i].name, all[i].first.Format(time.RFC3339), all[i-1].name, l.To.Format(time.RFC3339))
		}
		for _, f := range all[i].parts {
			if err := l.file(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case l.Looks == 0 && l.Cut == 0:
		return nil, fault.Mistakef("%s is empty: want a log that gymctl steer %s has written", files[0], fault.Key("log"))
	case l.Looks == 0:
		return nil, fault.Mistakef("%s is no log of gymctl steer: none of its lines is one of a look", files[0])
	}
	l.end()
	return l, l.check()
}

// mostLine bounds a line.
const mostLine = 1 << 28

// lines calls f with every line of a file until it returns false.
func lines(name string, f func(b []byte) (bool, error)) error {
	in, err := ordinary.Open(name)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	defer in.Close() //nolint:errcheck // only read
	r := bufio.NewReaderSize(in, 1<<20)
	var long []byte
	for {
		b, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, b...); len(long) > mostLine {
				return fault.Mistakef("%s is no log of gymctl steer: it has a line of more than %d MiB", name, mostLine>>20)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return &fault.Mistake{Err: err}
		}
		if len(long) > 0 {
			long = append(long, b...)
			b = long
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			if more, e := f(b); e != nil || !more {
				return e
			}
		}
		long = long[:0]
		if err != nil {
			return nil //nolint:nilerr // the end of the file
		}
	}
}

// parse reads a line; ok is false for one that is none of steer.
func parse(b []byte, x *line) (ok bool) {
	return json.Unmarshal(b, x) == nil && !x.Observed.IsZero() && x.Mode != "" && x.Digest != ""
}

func firstLook(name string) (at time.Time, err error) {
	err = lines(name, func(b []byte) (bool, error) {
		var x line
		if parse(b, &x) {
			at = x.Observed
		}
		return at.IsZero(), nil
	})
	return at, err
}

func (l *Log) file(ctx context.Context, name string) error {
	l.Files = append(l.Files, name)
	return lines(name, func(b []byte) (bool, error) {
		var x line
		if !parse(b, &x) {
			l.Cut++
			return true, ctx.Err()
		}
		return true, errors.Join(l.add(name, &x), ctx.Err())
	})
}

// one returns the string that stands for all equal ones.
func (l *Log) one(s string) string {
	if t, ok := l.names[s]; ok {
		return t
	}
	l.names[s] = s
	return s
}

// merge takes in what a line tells of a job.
func (l *Log) merge(x *steer.JobLine, at time.Time) *Job {
	j := l.byID[x.ID]
	if j == nil {
		j = &Job{
			ID: x.ID, User: l.one(x.User), VC: l.one(x.VC), GPUs: x.GPUs, Types: x.Types,
			Limit:  time.Duration(x.Limit * float64(time.Second)),
			Submit: x.Submit, first: at, blocked: x.Blocked != "",
		}
		if j.Submit.IsZero() {
			j.Submit = at
		}
		l.byID[x.ID] = j
		l.Jobs = append(l.Jobs, j)
	}
	if !x.Start.IsZero() {
		switch {
		case j.Start.IsZero():
			j.Start, j.Again = x.Start, x.Start
		case x.Start.Sub(j.Again) >= time.Second:
			j.Again = x.Start
			j.Restarts++
		}
	}
	if len(x.Nodes) > 0 {
		nodes := make([]string, len(x.Nodes))
		for i, n := range x.Nodes {
			nodes[i] = l.one(n)
		}
		j.Nodes, j.On = nodes, x.On
	}
	return j
}

func (l *Log) add(name string, x *line) error {
	at := x.Observed
	switch {
	case l.Looks == 0:
		l.From, l.Cluster = at, x.Cluster
	case x.Cluster != l.Cluster:
		return fault.Mistakef("%s tells of cluster %q, and what comes before of %q: want the logs of one cluster", name,
			x.Cluster, l.Cluster)
	}
	if at.Before(l.To) {
		at = l.To // the clock was set back
	}
	l.Looks++
	l.Lost += x.Lost
	l.Policy = x.Policy
	if !slices.Contains(l.Policies, x.Policy) {
		l.Policies = append(l.Policies, x.Policy)
	}
	if !slices.Contains(l.Modes, x.Mode) {
		l.Modes = append(l.Modes, x.Mode)
	}
	l.sum += float64(l.down) * at.Sub(l.To).Seconds() * float64(min(1, l.Looks-1))
	if len(x.Nodes) > 0 {
		l.nodes(x.Nodes)
	}
	all := append(x.Jobs, x.Arrived...)
	begins := l.Looks == 1 || x.Begun != nil || x.Log == "" && len(x.Nodes) > 0 && len(x.Arrived) == x.Waiting+x.Running
	if x.Begun != nil {
		l.Begun = x.Begun
	}
	if begins {
		l.Runs++
	}
	if begins && l.Looks > 1 || len(x.Jobs) > 0 {
		l.missing(append(slices.Clone(all), x.Ended...), at)
	}
	for i := range all {
		j := l.merge(&all[i], at)
		l.inside[j.ID] = j
		j.Asked = j.Asked || j.Start.IsZero()
	}
	for _, id := range x.Unblocked {
		if j := l.byID[id]; j != nil && j.blocked {
			j.blocked, j.Submit = false, at
		}
	}
	for i := range x.Started {
		s := &x.Started[i]
		j := l.merge(s, at)
		l.inside[j.ID] = j
		if j.Restarts > 0 {
			continue
		}
		j.Asked = !s.Start.IsZero() && j.first.Before(at) && !j.blocked
		j.Chosen = s.Chosen && j.Asked
		if where, told := l.starts[j.ID]; told && j.Chosen && x.Lost == 0 {
			j.Placed, j.Same = true, slices.Equal(where, j.Nodes)
		}
	}
	for i := range x.Ended {
		e := &x.Ended[i]
		j := l.merge(e, at)
		delete(l.inside, j.ID)
		l.leaves(j, e.End, at)
	}
	l.starts = make(map[string][]string, len(x.Starts))
	for _, s := range x.Starts {
		l.starts[s.ID] = s.Nodes
		if j := l.byID[s.ID]; j != nil && j.Wanted.IsZero() {
			j.Wanted = at
		}
	}
	l.To = at
	return nil
}

// leaves notes that a job is not there any more.
func (l *Log) leaves(j *Job, end, at time.Time) {
	switch {
	case j.Start.IsZero():
		j.Gone = true
	case end.IsZero():
		j.End = at
		l.Unseen++
	default:
		j.End = end
		if end.Before(j.Again) {
			j.End = j.Again
		}
	}
}

// missing finds the jobs that have left while nobody looked; all are those that are there, or of which the line tells.
func (l *Log) missing(all []steer.JobLine, at time.Time) {
	here := make(map[string]bool, len(all))
	for i := range all {
		here[all[i].ID] = true
	}
	var left []string
	for id := range l.inside {
		if !here[id] {
			left = append(left, id)
		}
	}
	slices.Sort(left)
	for _, id := range left {
		l.leaves(l.inside[id], time.Time{}, at)
		delete(l.inside, id)
	}
}

// nodes takes in the nodes of a line. A node that has ever been there is one of the cluster.
func (l *Log) nodes(now []steer.NodeLine) {
	text := fmt.Sprint(now)
	if text == l.told {
		return
	}
	if l.told != "" {
		l.Changed++
	}
	l.told = text
	l.down = 0
	here := map[string]bool{}
	for _, n := range now {
		here[n.Name] = true
		if n.Down {
			l.down += n.GPUs
		}
		i := slices.IndexFunc(l.Nodes, func(o steer.NodeLine) bool { return o.Name == n.Name })
		n.Down = false
		if i < 0 {
			l.Nodes = append(l.Nodes, n)
		} else if n.GPUs > l.Nodes[i].GPUs {
			l.Nodes[i] = n
		}
	}
	for _, n := range l.Nodes {
		if !here[n.Name] {
			l.down += n.GPUs
		}
	}
}

// end sorts what has been read.
func (l *Log) end() {
	for _, j := range l.Jobs {
		if j.blocked && !j.Start.IsZero() && j.Start.After(j.Submit) { // unblocked between two looks
			j.blocked, j.Submit = false, j.Start
		}
		if !j.Start.IsZero() && j.Start.Before(j.Submit) {
			j.Submit = j.Start
		}
	}
	slices.SortStableFunc(l.Jobs, func(a, b *Job) int { return cmp.Or(a.Submit.Compare(b.Submit), natural(a.ID, b.ID)) })
	slices.SortFunc(l.Nodes, func(a, b steer.NodeLine) int { return cmp.Compare(a.Name, b.Name) })
	l.byID, l.inside, l.starts, l.names = nil, nil, nil, nil
	if t := l.To.Sub(l.From).Seconds() * float64(l.GPUs()); t > 0 {
		l.Down = l.sum / t
	}
}

// GPUs returns how many the cluster has.
func (l *Log) GPUs() (n int) {
	for i := range l.Nodes {
		n += l.Nodes[i].GPUs
	}
	return n
}

// natural compares names as people do: numbers in them by their size.
func natural(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if digit(a[i]) && digit(b[i]) {
			x, y := digits(a[i:]), digits(b[i:])
			if c := cmp.Or(cmp.Compare(x, y), cmp.Compare(a[i:i+x], b[i:i+y])); c != 0 {
				return c
			}
			a, b, i = a[i+x:], b[i+y:], -1
			continue
		}
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func digits(s string) (n int) {
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

// Started counts the jobs that started while steer looked, and Ended those of all that ended.
func (l *Log) Started() (started, ended int) {
	for _, j := range l.Jobs {
		if j.Start.After(l.From) {
			started++
		}
		if !j.End.IsZero() {
			ended++
		}
	}
	return started, ended
}

// check returns why nothing can be said of the log.
func (l *Log) check() error {
	started, ended := l.Started()
	name := l.Files[len(l.Files)-1]
	switch {
	case l.GPUs() == 0:
		return fault.Mistakef("%s does not tell which nodes the cluster has: its first line is missing", name)
	case started == 0:
		return fault.Mistakef("%s tells of no job that has started, in %s and %s: let steer look for longer",
			name, plain.Count(l.Looks, "look", "looks"), fmt.Sprint(l.To.Sub(l.From).Round(time.Second)))
	case ended == 0:
		return fault.Mistakef(
			"%s tells of no job that has ended, so that no run time is known and nothing can be replayed: let steer look for "+
				"longer", name)
	}
	return nil
}
