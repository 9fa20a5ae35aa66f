package workqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
)

// call answers a request of a worker.
func (c *Coordinator) call(m *nats.Msg) {
	var q call
	if json.Unmarshal(m.Data, &q) != nil || len(q.Tasks) > 1<<16 {
		return
	}
	c.mu.Lock()
	r := c.called(&q)
	c.mu.Unlock()
	if m.Reply != "" {
		_ = m.Respond(encode(r)) // a worker that hears nothing asks again
	}
}

func (c *Coordinator) called(q *call) reply {
	w := c.workers[q.Worker]
	if w == nil {
		return reply{Answer: answerHello}
	}
	w.seen, w.lost = time.Now(), 0
	if q.Kind == callBeat {
		c.heard(w, q.Tasks)
		return reply{Answer: answerGo}
	}
	if q.Kind == callLeave {
		for _, k := range c.heldBy(w) {
			c.handBack(w, k)
		}
		delete(c.workers, q.Worker)
		c.changed = true
		if text := plain.Clip(firstLine(q.Text), 500); text != "" {
			c.opt.Say("worker %s has left: %s", q.Worker, text)
		} else {
			c.opt.Say("worker %s has left", q.Worker)
		}
		return reply{Answer: answerGo}
	}
	if len(q.Tasks) != 1 {
		return reply{Answer: answerDrop}
	}
	in := q.Tasks[0]
	if !strings.HasPrefix(in.Ack, ackPrefix) { // the coordinator publishes to it
		return reply{Answer: answerDrop}
	}
	if q.Kind == callBegin {
		return c.begin(w, in)
	}
	w.beat = slices.DeleteFunc(w.beat, func(b inWork) bool { return b.Digest == in.Digest && q.Kind != callSaved })
	k := c.tasks[in.Digest]
	if k == nil || k.holders[w.Worker] == nil {
		return reply{Answer: answerGo} // nobody waits for it, or it counts as lost already
	}
	switch q.Kind {
	case callSaved:
		// What failed before was not in vain: the next worker goes on from here.
		k.tries, k.causes, k.losers, k.silent = 1, nil, nil, true
		k.holders[w.Worker].try = 1
	case callBack:
		c.handBack(w, k)
	case callFailed:
		c.failed(w, k, plain.Clip(firstLine(q.Text), 2000), q.Mistake)
	}
	return reply{Answer: answerGo}
}

func firstLine(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\n", "; ")) }

// heldBy returns the tasks that a worker does.
func (c *Coordinator) heldBy(w *worker) []*task {
	var held []*task
	for _, k := range c.tasks {
		if k.holders[w.Worker] != nil {
			held = append(held, k)
		}
	}
	slices.SortFunc(held, func(a, b *task) int { return strings.Compare(a.Digest, b.Digest) })
	return held
}

// begin decides whether a worker does the task whose message it has.
func (c *Coordinator) begin(w *worker, in inWork) reply {
	k := c.tasks[in.Digest]
	switch {
	case k == nil && c.doneBy(in.Digest):
		return reply{Answer: answerLater} // a worker has it, for a Do to come
	case k == nil || k.local || k.result != nil || k.err != nil:
		return reply{Answer: answerDrop}
	case c.heldByOther(w, k):
		return reply{Answer: answerLater}
	case slices.Contains(k.losers, w.Worker) && c.hope(k):
		return reply{Answer: answerYield}
	}
	c.unqueue(k)
	k.tries++
	k.holders[w.Worker] = &holder{inWork: in, since: time.Now(), try: k.tries}
	c.changed = true
	return reply{Answer: answerGo, Try: k.tries}
}

// doneBy reports whether a worker does a task for which nobody waits yet.
func (c *Coordinator) doneBy(digest string) bool {
	for _, w := range c.workers {
		if slices.ContainsFunc(w.beat, func(in inWork) bool { return in.Digest == digest }) {
			return true
		}
	}
	return false
}

func (c *Coordinator) heldByOther(w *worker, k *task) bool {
	for name := range k.holders {
		if name != w.Worker {
			return true
		}
	}
	return false
}

// hopeTime is how long a task that failed waits for a worker with which it has not failed.
const hopeTime = 5 * time.Second

// hope reports whether such a worker may come soon.
func (c *Coordinator) hope(k *task) bool {
	if time.Since(k.since) > hopeTime {
		return false
	}
	for name := range c.workers {
		if !slices.Contains(k.losers, name) {
			return true
		}
	}
	return false
}

// heard compares what a worker does with what we believe that it does.
func (c *Coordinator) heard(w *worker, tasks []inWork) {
	tasks = slices.DeleteFunc(tasks, func(in inWork) bool { return !strings.HasPrefix(in.Ack, ackPrefix) })
	w.beat = tasks
	for _, in := range tasks {
		k := c.tasks[in.Digest]
		if k == nil || k.local || k.result != nil || k.err != nil {
			continue
		}
		h := k.holders[w.Worker]
		if h == nil { // it was silent, or an earlier coordinator gave it the task
			if k.tries == 0 {
				k.tries = 1
			}
			h = &holder{since: time.Now(), try: k.tries}
			k.holders[w.Worker] = h
			c.unqueue(k)
		}
		if h.Done != in.Done || h.All != in.All {
			c.changed = true
		}
		h.inWork, h.missed = in, 0
	}
	for _, k := range c.heldBy(w) {
		if slices.ContainsFunc(tasks, func(in inWork) bool { return in.Digest == k.Digest }) {
			continue
		}
		if h := k.holders[w.Worker]; h.missed >= missedBeats {
			c.lost(w, k, "it lost the task")
		} else {
			h.missed++
		}
	}
}

// failed counts a failure of a task with a worker that said why.
func (c *Coordinator) failed(w *worker, k *task, text string, byUser bool) {
	if text == "" {
		text = "it gave no reason"
	}
	if byUser {
		delete(k.holders, w.Worker)
		c.fail(k,
			&fault.Mistake{Err: &TaskError{k.Name, w.Worker, k.tries,
				fmt.Sprintf("%s on worker %s: %s", k.Name, w.Worker, text)}})
		return
	}
	k.silent = false
	c.opt.Say("%s failed on worker %s, try %d of %d: %s", k.Name, w.Worker, k.tries, c.opt.Tries, text)
	c.lost(w, k, text)
}

// lost takes a task from a worker that failed or fell silent. It goes to another one, or has failed.
func (c *Coordinator) lost(w *worker, k *task, why string) {
	h := k.holders[w.Worker]
	delete(k.holders, w.Worker)
	k.causes = append(k.causes, fmt.Sprintf("worker %s: %s", w.Worker, why))
	k.losers = append(k.losers, w.Worker)
	c.changed = true
	if len(k.holders) > 0 {
		return
	}
	if k.tries < c.opt.Tries {
		c.again(k, h)
		return
	}
	e := &TaskError{Task: k.Name, Worker: w.Worker, Tries: k.tries}
	if k.silent {
		e.Text = fmt.Sprintf("%s was begun %s and its workers went away or fell silent each time: %s", k.Name,
			plain.Count(k.tries, "time", "times"), strings.Join(k.losers, ", "))
	} else {
		e.Text = fmt.Sprintf("%s failed %s: %s", k.Name, plain.Count(k.tries, "time", "times"),
			strings.Join(slices.Compact(k.causes), "; "))
	}
	c.fail(k, e)
}

// again lets a task be delivered once more, at once.
func (c *Coordinator) again(k *task, h *holder) {
	c.wait(k, true)
	k.published = true // or compare does it
	if h != nil && h.Ack != "" {
		_ = c.nc.Publish(h.Ack, []byte("-NAK")) // otherwise it comes when the server has waited
	}
	c.pump()
}

// handBack takes a task from a worker that leaves. That is no failure.
func (c *Coordinator) handBack(w *worker, k *task) {
	h := k.holders[w.Worker]
	delete(k.holders, w.Worker)
	k.tries = max(0, k.tries-1)
	if len(k.holders) == 0 {
		c.again(k, h)
	}
	c.changed = true
}

// fail ends a task with an error.
func (c *Coordinator) fail(k *task, err error) {
	if k.err == nil && k.result == nil && !k.local {
		c.unqueue(k)
		k.err = err
		c.changed = true
		close(k.ready)
	}
}

// arrived takes a message of the stream of results.
func (c *Coordinator) arrived(digest string, data []byte, seq uint64) {
	e := early{seq: seq}
	if err := json.Unmarshal(data, &e.stored); err != nil || e.Digest != digest || !workerName.MatchString(e.Worker) {
		c.opt.Say("a result of task %s cannot be read, and is ignored", plain.Clip(digest, 80))
		c.drop(&early{seq: seq})
		return
	}
	if err := e.belongs(); err != nil {
		c.opt.Say("a result of task %s from worker %s is ignored: %v, which is not of this task and worker",
			plain.Clip(digest, 80), e.Worker, err)
		c.drop(&early{seq: seq})
		return
	}
	if e.ValueIn != "" {
		value, err := c.store.bytes(c.ctx, e.ValueIn)
		if err != nil {
			c.opt.Say("the value of a result of task %s cannot be read, and the task is done again: %v", digest, err)
			c.drop(&e)
			return
		}
		e.Value = value
	}
	c.mu.Lock()
	w := c.workers[e.Worker]
	if w != nil {
		w.seen = time.Now()
		w.beat = slices.DeleteFunc(w.beat, func(in inWork) bool { return in.Digest == digest })
	}
	k := c.tasks[digest]
	first, second := c.first(k, digest)
	var told string
	switch {
	case !second || first.Proof == "": // this machine did it, and says nothing of its own result
	case first.Proof == e.Proof:
		c.counts.equal++
	default:
		d := Dispute{Task: Task{Digest: digest, Name: digest[:12]}, First: first, Second: e.Result}
		if k != nil {
			d.Task = k.Task
		}
		c.differ = append(c.differ, d)
		told = fmt.Sprintf(
			"RESULTS DIFFER: %s has the proof %.12s from worker %s and %.12s from worker %s; the first is kept, and one of "+
				"the two machines computes wrongly or the task is not repeatable",
			d.Task.Name, first.Proof, first.Worker, e.Proof, e.Worker)
	}
	gone := true
	switch {
	case k != nil && k.result == nil && k.err == nil && !k.local:
		if w != nil {
			w.done++
		}
		c.unqueue(k)
		k.holders = map[string]*holder{}
		k.result = &e
		close(k.ready)
		gone = false
	case k == nil && !second:
		c.early[digest] = e
		gone = false
	}
	c.changed = true
	c.mu.Unlock()
	if told != "" {
		c.opt.Say("%s", told)
	}
	if gone {
		c.drop(&e)
	}
}

// first returns the earlier result of a task, if there was one. That one is compared with, whatever came of it.
func (c *Coordinator) first(k *task, digest string) (r Result, ok bool) {
	if k != nil && k.result != nil {
		return k.result.Result, true
	}
	if e, ok := c.early[digest]; ok {
		return e.Result, true
	}
	r, ok = c.taken[digest]
	return r, ok
}

// drop removes a result that is not wanted. It has its files to itself unless they are equal to those of the first
// result, which is perhaps not unpacked yet: these stay until the queue is removed.
func (c *Coordinator) drop(e *early) {
	ctx, cancel := context.WithTimeout(c.ctx, requestTime)
	defer cancel()
	_ = c.done.DeleteMsg(ctx, e.seq) // otherwise it is compared once more by the next coordinator
}
