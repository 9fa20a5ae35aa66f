package steer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/lab/decisionlog"
)

// Format is the value of Line.Log.
const Format = "clustergym-steer/1"

// Line is one cycle in the log.
type Line struct {
	// Log is Format in a line that stands alone: the first of a file, and the first after lines that were lost. It has the
	// nodes, all jobs and the order.
	Log      string    `json:"log,omitempty"`
	At       time.Time `json:"at"`       // by our clock
	Observed time.Time `json:"observed"` // when the cluster said it
	Cluster  string    `json:"cluster"`
	Policy   string    `json:"policy"`
	Mode     string    `json:"mode"`
	Digest   string    `json:"digest"` // of the snapshot
	Waiting  int       `json:"waiting"`
	Running  int       `json:"running"`
	Free     int       `json:"free_gpus"`
	// Begun says how steer was started; it is in the first line of each run.
	Begun *Begun `json:"begun,omitempty"`
	// Nodes are told in lines that stand alone, and where they have changed.
	Nodes []NodeLine `json:"nodes,omitempty"`
	// Jobs are all that wait or run, in a line that stands alone.
	Jobs []JobLine `json:"jobs,omitempty"`
	// Arrived, Started, Requeued and Ended are what has happened since the line before. A job that ran, and has started
	// anew since, is in Requeued and in Started.
	Arrived  []JobLine `json:"arrived,omitempty"`
	Started  []JobLine `json:"started,omitempty"`
	Requeued []JobLine `json:"requeued,omitempty"`
	Ended    []JobLine `json:"ended,omitempty"`
	// Unblocked are the jobs that have arrived blocked, and compete for GPUs since this look.
	Unblocked []string `json:"unblocked,omitempty"`
	// Order are the waiting jobs as the policy orders them, with the scores that they have; where it has not changed it is
	// left out.
	Order []Ranked `json:"order,omitempty"`
	// Starts are the jobs that the policy would start now, or does.
	Starts []StartLine `json:"starts,omitempty"`
	// Decisions are how a policy that acts through an environment has weighed its options, one after the other. Scores
	// says what their scores are, and Rival whose choices stand beside its own.
	Decisions []DecisionLine `json:"decisions,omitempty"`
	Scores    string         `json:"scores,omitempty"`
	Rival     string         `json:"rival,omitempty"`
	// Writes are what was asked of the cluster, and what came of it. With a dry run nothing was asked.
	Writes []WriteLine `json:"writes,omitempty"`
	DryRun bool        `json:"dry_run,omitempty"`
	Note   string      `json:"note,omitempty"`
	Took   float64     `json:"took_s"`
	// Read, Think and Write are what of Took went to asking the cluster, to the policy, and to writing into the cluster.
	Read  float64 `json:"read_s,omitempty"`
	Think float64 `json:"think_s,omitempty"`
	Write float64 `json:"write_s,omitempty"`
	Lost  int64   `json:"lost_lines,omitempty"` // before this one, because the disk was too slow
}

// Begun is how a run of steer was started.
type Begun struct {
	Policy    string `json:"policy,omitempty"`    // as it was asked for; empty for a model
	Model     string `json:"model,omitempty"`     // file of an ONNX model
	Estimates string `json:"estimates,omitempty"` // of rules
	Budget    string `json:"budget,omitempty"`    // of rollouts; empty = the default
	History   string `json:"history,omitempty"`   // file
	// HistoryUntil says, of a history that has more, that what ended later by its clock was not known; 0 = all was.
	HistoryUntil float64 `json:"history_until_s,omitempty"`
	Limit        float64 `json:"limit_s,omitempty"` // of jobs that have none
	Every        float64 `json:"every_s"`
}

// NodeLine is a node in the log.
type NodeLine struct {
	Name string `json:"name"`
	Rack string `json:"rack,omitempty"`
	Type string `json:"type,omitempty"`
	GPUs int    `json:"gpus"`
	Down bool   `json:"down,omitempty"`
}

// JobLine is a job in the log.
type JobLine struct {
	ID     string    `json:"id"`
	User   string    `json:"user,omitempty"`
	VC     string    `json:"vc,omitempty"`
	GPUs   int       `json:"gpus"`
	Limit  float64   `json:"limit_s,omitempty"`
	Submit time.Time `json:"submit"`
	Start  time.Time `json:"start,omitzero"`
	End    time.Time `json:"end,omitzero"`
	Nodes  []string  `json:"nodes,omitempty"`
	// On is how many GPUs the job has on each of several nodes.
	On      []int    `json:"gpus_on,omitempty"`
	Types   []string `json:"types,omitempty"`
	Blocked string   `json:"blocked,omitempty"` // of a waiting job: why it does not compete for GPUs
	// Chosen says whether the policy would have started it when the line before was written.
	Chosen bool `json:"chosen,omitempty"`
}

// StartLine is a start that a policy has chosen.
type StartLine struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes,omitempty"`
}

// DecisionLine is how a policy has weighed its options.
type DecisionLine struct {
	Options []decisionlog.Option `json:"options"`
	Chosen  int                  `json:"chosen"`          // index of Options
	Rival   *int                 `json:"rival,omitempty"` // index of the rival's choice; nil = it has none
}

// WriteLine is an action and what came of it.
type WriteLine struct {
	Action string `json:"action"`
	Error  string `json:"error,omitempty"`
}

// MarshalJSON writes an ID and a score.
func (r Ranked) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID    string `json:"id"`
		Score int64  `json:"score,omitempty"`
	}{r.ID, r.Score})
}

// Log writes lines of JSON to a file. Write never waits for the disk: lines that it cannot keep up with are lost, and
// counted. A file that is full becomes FILE.1, that one FILE.2 and so on. A disk that takes nothing, because it is full
// or away, is tried again with each line; what it did not take counts as lost. Steering does not wait for it: what
// keeps jobs safe is the guard, which needs no log.
type Log struct {
	// Note says to people when the disk begins to take nothing, and when it takes lines again; nil = nothing. It is set
	// before the first line.
	Note  func(text string)
	file  string
	most  int64 // bytes of one file
	keep  int   // files beside the current one
	lines chan entry
	lost  atomic.Int64
	done  sync.WaitGroup

	// Of Write alone:
	told int64 // bytes of the file with the lines that are queued
	last int64 // bytes of the longest line
	full bool  // the next line that stands alone begins a file
	gap  bool  // a line was lost

	out  *os.File
	size int64
	err  error // the first; read after Close
	bad  int64 // lines in a row that the disk has not taken
}

// entry is a line, or the wish to hear that all lines before it are in the file.
type entry struct {
	line    []byte
	lost    int64 // lines lost before it, of which it tells
	alone   bool  // it stands alone
	anew    bool  // it begins a file
	flushed chan<- struct{}
}

// queued is how many lines wait for the disk at most.
const queued = 64

// OpenLog opens a log, behind what the file has already.
func OpenLog(file string, most int64, keep int) (*Log, error) {
	l := &Log{file: file, most: most, keep: keep, lines: make(chan entry, queued)}
	if err := l.open(); err != nil {
		return nil, err
	}
	l.gap = true
	l.told = l.size
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		for e := range l.lines {
			if e.flushed != nil {
				close(e.flushed)
				continue
			}
			l.take(e)
		}
	}()
	return l, nil
}

// take brings a line into the file. After a lost line only one that stands alone can be read.
func (l *Log) take(e entry) {
	if l.bad > 0 && !e.alone {
		l.lost.Add(1 + e.lost)
		l.bad++
		return
	}
	err := l.put(e)
	switch {
	case err != nil:
		l.lost.Add(1 + e.lost)
		if l.bad++; l.bad == 1 && l.Note != nil {
			l.Note(fmt.Sprintf("the log %s takes no lines (%v); steering goes on without, and each look tries again", l.file,
				err))
		}
		if l.err == nil {
			l.err = err
		}
	case l.bad > 0:
		if l.Note != nil {
			l.Note(fmt.Sprintf("the log %s takes lines again; %d are missing", l.file, l.bad))
		}
		l.bad = 0
	}
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // others may read it
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.out, l.size = f, info.Size()
	return nil
}

func (l *Log) put(e entry) error {
	line := e.line
	if l.out == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && (e.anew || l.size+int64(len(line)) > l.most) {
		if err := l.rotate(); err != nil {
			return err
		}
		if err := l.open(); err != nil {
			return err
		}
	}
	n, err := l.out.Write(line)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	if n > 0 { // half a line would spoil the next one, too
		err = errors.Join(err, l.out.Truncate(l.size))
	}
	_ = l.out.Close() // opened again for the next line: the file may be another one then
	l.out = nil
	return err
}

func (l *Log) rotate() error {
	err := l.out.Close()
	l.out, l.size = nil, 0
	name := func(k int) string { return fmt.Sprintf("%s.%d", l.file, k) }
	for k := l.keep; k > 1; k-- {
		if e := os.Rename(name(k-1), name(k)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if l.keep > 0 {
		return errors.Join(err, os.Rename(l.file, name(1)))
	}
	return errors.Join(err, os.Remove(l.file))
}

// Fresh reports whether the next line is to stand alone: it is the first, lines were lost, or it begins a file.
func (l *Log) Fresh() bool {
	if l == nil {
		return false
	}
	if l.told > l.most/2 && l.told+2*l.last > l.most {
		l.full = true
	}
	return l.full || l.gap || l.lost.Load() > 0
}

// Write adds a line. It does not block.
func (l *Log) Write(line *Line) error {
	if l == nil {
		return nil
	}
	lost := l.lost.Load()
	line.Lost = lost
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	e := entry{line: append(b, '\n'), lost: lost, alone: line.Log != "", anew: l.full && line.Log != ""}
	n := int64(len(e.line))
	select {
	case l.lines <- e:
		l.lost.Add(-lost) // they have been told
		if line.Log != "" {
			l.gap = false
		} else {
			l.last, l.gap = max(l.last, n), l.gap || lost > 0
		}
		if l.told += n; e.anew || l.told > l.most {
			l.told, l.full = n, false
		}
	default:
		l.lost.Add(1)
	}
	return nil
}

// Flush waits until what has been added is in the file.
func (l *Log) Flush() {
	if l == nil {
		return
	}
	flushed := make(chan struct{})
	l.lines <- entry{flushed: flushed}
	<-flushed
}

// Lost returns how many lines have been lost since the last one that was not.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.lost.Load()
}

// Close writes what is queued and closes the file. Its error is the first of all writes.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	close(l.lines)
	l.done.Wait()
	if l.out != nil {
		return errors.Join(l.err, l.out.Close())
	}
	return l.err
}
