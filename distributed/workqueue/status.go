package workqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"clustergym/internal/plain"
)

// silentAfter is how long nothing was heard of a worker that is shown as silent.
const silentAfter = 3 * time.Second

// Status returns what goes on.
func (c *Coordinator) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Job: string(c.job), Done: c.counts.done, Failed: c.counts.failed, Here: c.counts.here,
		Working: c.counts.here, Equal: c.counts.equal, Differ: len(c.differ), Workers: []WorkerStatus{}, Own: []TaskStatus{},
		Lost: []LostWorker{}}
	for _, g := range slices.Backward(c.gone) {
		g.Ago = time.Since(g.at)
		s.Lost = append(s.Lost, g.LostWorker)
	}
	workers := map[string]*WorkerStatus{}
	for name, w := range c.workers {
		st := &WorkerStatus{Name: name, Slots: w.Slots, Done: w.done, Tasks: []TaskStatus{}}
		if d := time.Since(w.seen); d > silentAfter {
			st.Silent = d
		}
		workers[name] = st
	}
	for _, k := range c.tasks {
		switch {
		case k.local:
			s.Own = append(s.Own, TaskStatus{Name: k.Name, Digest: k.Digest, For: time.Since(k.since), Try: 1})
		case k.err != nil:
		case k.result != nil:
			s.Done++ // being kept
		case len(k.holders) > 0:
			s.Working++
		default:
			s.Waiting++
		}
		for name, h := range k.holders {
			if w := workers[name]; w != nil && k.result == nil {
				w.Tasks = append(w.Tasks, TaskStatus{
					Name: k.Name, Digest: k.Digest, Done: h.Done, All: h.All, For: time.Since(h.since), Try: h.try,
				})
			}
		}
	}
	byName := func(a, b TaskStatus) int { return strings.Compare(a.Name+a.Digest, b.Name+b.Digest) }
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		slices.SortFunc(workers[name].Tasks, byName)
		s.Workers = append(s.Workers, *workers[name])
	}
	slices.SortFunc(s.Own, byName)
	return s
}

// statusQuery asks for the status of a job; "" = of all.
type statusQuery struct {
	Job string `json:"job,omitempty"`
}

func (c *Coordinator) tellStatus(m *nats.Msg) {
	var q statusQuery
	if m.Reply == "" || len(m.Data) > 0 && json.Unmarshal(m.Data, &q) != nil || q.Job != "" && q.Job != string(c.job) {
		return
	}
	_ = m.Respond(encode(c.Status())) // who asked asks again
}

// clean makes what another machine wrote safe to print.
func (s *Status) clean() {
	line := func(text *string) { *text = plain.Clip(*text, mostName) }
	line(&s.Job)
	tasks := func(list []TaskStatus) {
		for i := range list {
			line(&list[i].Name)
			line(&list[i].Digest)
		}
	}
	tasks(s.Own)
	for i := range s.Workers {
		line(&s.Workers[i].Name)
		tasks(s.Workers[i].Tasks)
	}
	for i := range s.Lost {
		l := &s.Lost[i]
		line(&l.Name)
		line(&l.Why)
		for k := range l.Tasks {
			line(&l.Tasks[k])
		}
	}
}

// statusTime is how long the first answer may take, and moreTime how long others may come after it.
const (
	statusTime = 5 * time.Second
	moreTime   = 300 * time.Millisecond
)

// AskStatus asks the coordinators at a URL what goes on; of opt it reads URL, Token, TLSCA and Job. Without a job it
// returns those of all, sorted by job.
func AskStatus(ctx context.Context, opt WorkOptions) ([]Status, error) {
	nc, err := dial(opt, "gymctl worker --status")
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		return nil, err
	}
	if err := nc.PublishRequest(statusSubject, inbox.Subject, encode(statusQuery{opt.Job})); err != nil {
		return nil, err
	}
	list := []Status{}
	for wait := statusTime; ; wait = moreTime {
		ctx, cancel := context.WithTimeout(ctx, wait)
		m, err := inbox.NextMsgWithContext(ctx)
		cancel()
		if err != nil || m.Header.Get("Status") != "" {
			if len(list) == 0 {
				of := ""
				if opt.Job != "" {
					of = " of job " + plain.Clip(opt.Job, 80)
				}
				return nil, fmt.Errorf("%s has no coordinator%s now", opt.URL, of)
			}
			break
		}
		var s Status
		if err := json.Unmarshal(m.Data, &s); err != nil {
			return nil, errors.New("the coordinator's status cannot be read: it is another build")
		}
		s.clean()
		list = append(list, s)
		if opt.Job != "" {
			break
		}
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Job, b.Job) })
	return list, nil
}
