package workqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Do has a task done, by a worker or by here on this machine, and returns when its result is kept. here runs when one
// of Options.Here slots is free, and gets the goroutines that it may use; nil = on workers alone. keep writes down the
// result of a worker, and is not called if here did the task; only when it has returned nil is the result forgotten by
// the queue, so that nothing is lost if this process is killed in between.
//
// The error is a *TaskError if workers failed with the task, a *fault.Mistake if that was the user's mistake, and
// otherwise what here, keep or the context returned. Do is called once for each task that is ready; a digest may be
// done again after its Do has returned.
func (c *Coordinator) Do(ctx context.Context, t Task, here func(ctx context.Context, workers int) error,
	keep func(*Result) error) error {
	if err := t.same(); err != nil {
		return err
	}
	k, publish, err := c.enter(t, here != nil)
	if err != nil {
		return err
	}
	if publish {
		c.publish(ctx, k)
	}
	select {
	case <-k.ready:
	case slot := <-k.turn:
		return c.doHere(ctx, k, slot, here)
	case <-ctx.Done():
		c.mu.Lock()
		local := k.local
		if k.result == nil && k.err == nil && !local {
			c.leave(k)
			c.stopped = true
			c.mu.Unlock()
			return ctx.Err()
		}
		c.mu.Unlock()
		if local {
			return c.doHere(ctx, k, <-k.turn, here)
		}
	}
	return c.finish(ctx, k, keep)
}

// enter begins to wait for a task. publish is true if workers must be told.
func (c *Coordinator) enter(t Task, here bool) (k *task, publish bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, false, errors.New("workqueue: the coordinator is closed")
	case c.tasks[t.Digest] != nil:
		return nil, false, fmt.Errorf("workqueue: tasks %q and %q have one digest, and both are asked for",
			c.tasks[t.Digest].Name, t.Name)
	}
	k = &task{Task: t, here: here, turn: make(chan int, 1), ready: make(chan struct{}), holders: map[string]*holder{},
		silent: true}
	c.tasks[t.Digest] = k
	c.changed = true
	if e, ok := c.early[t.Digest]; ok {
		delete(c.early, t.Digest)
		k.result = &e
		close(k.ready)
		return k, false, nil
	}
	for _, w := range c.workers {
		for _, in := range w.beat {
			if in.Digest == t.Digest {
				k.holders[w.Worker] = &holder{inWork: in, since: time.Now(), try: 1}
				k.tries = 1
			}
		}
	}
	if len(k.holders) > 0 {
		return k, false, nil
	}
	c.wait(k, false)
	c.pump()
	return k, !k.local, nil
}

// leave ends the wait for a task.
func (c *Coordinator) leave(k *task) {
	if c.tasks[k.Digest] == k {
		delete(c.tasks, k.Digest)
	}
	c.unqueue(k)
	c.changed = true
}

// wait puts a task into the queue, before all others if it was begun already.
func (c *Coordinator) wait(k *task, first bool) {
	if k.at != nil || k.local || k.result != nil || k.err != nil {
		return
	}
	k.since = time.Now()
	if first {
		k.at = c.queue.PushFront(k)
	} else {
		k.at = c.queue.PushBack(k)
	}
}

func (c *Coordinator) unqueue(k *task) {
	if k.at != nil {
		c.queue.Remove(k.at)
		k.at = nil
	}
}

// pump gives the slots that are free to the tasks that have waited longest.
func (c *Coordinator) pump() {
	if c.paused > 0 {
		return
	}
	for at := c.queue.Front(); at != nil && len(c.slots) > 0; {
		k := at.Value.(*task)
		at = at.Next()
		if !k.here {
			continue
		}
		c.unqueue(k)
		slot := c.slots[len(c.slots)-1]
		c.slots = c.slots[:len(c.slots)-1]
		k.local, k.since, c.changed = true, time.Now(), true
		c.counts.here++
		k.turn <- slot
	}
}

// doHere does a task in a slot of this machine.
func (c *Coordinator) doHere(ctx context.Context, k *task, slot int,
	here func(ctx context.Context, workers int) error) error {
	c.mu.Lock()
	published, seq := k.published, k.seq
	c.mu.Unlock()
	if published {
		c.unpublish(k.Digest, seq)
	}
	workers := c.opt.Workers / c.opt.Here
	if slot < c.opt.Workers%c.opt.Here {
		workers++
	}
	err := ctx.Err()
	if err == nil {
		err = here(ctx, max(1, workers))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(k)
	c.counts.here--
	switch {
	case err == nil:
		c.counts.done++
		c.taken[k.Digest] = Result{Digest: k.Digest}
	case ctx.Err() != nil:
		c.stopped = true
	default:
		c.counts.failed++
	}
	c.slots = append(c.slots, slot)
	close(c.idle)
	c.idle = make(chan struct{})
	c.pump()
	return err
}

// finish hands the result of a worker over, and makes the queue forget it.
func (c *Coordinator) finish(ctx context.Context, k *task, keep func(*Result) error) error {
	if k.err != nil {
		c.mu.Lock()
		c.leave(k)
		c.counts.failed++
		c.mu.Unlock()
		c.unpublish(k.Digest, 0)
		return k.err
	}
	var err error
	if keep != nil {
		err = keep(&k.result.Result)
	}
	c.mu.Lock()
	c.leave(k)
	r := k.result.Result
	if err == nil {
		c.counts.done++
		c.taken[k.Digest] = Result{Digest: r.Digest, Proof: r.Proof, Worker: r.Worker}
	} else {
		c.early[k.Digest] = *k.result // it is in the stream still
		c.stopped = c.stopped || ctx.Err() != nil
		c.counts.failed++
	}
	again := k.tries != 1
	c.mu.Unlock()
	if err == nil {
		c.forget(k.result)
		if again {
			c.unpublish(k.Digest, 0) // another delivery of its message may wait
		}
	}
	return err
}

// publish tells the workers of a task. Whatever goes wrong is made good by watch, which compares the stream with the
// tasks that wait.
func (c *Coordinator) publish(ctx context.Context, k *task) {
	c.mu.Lock()
	k.published = true
	c.mu.Unlock()
	q := queued{Task: k.Task}
	if len(q.Input) > largest(c.nc) {
		q.InputIn = inputName(k.Digest)
		if err := c.store.putBytes(ctx, q.InputIn, q.Input); err != nil {
			c.cannot(err)
			return
		}
		q.Input = nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	ack, err := c.js.Publish(ctx, c.job.work(k.Digest), encode(q), jetstream.WithRetryAttempts(0))
	if err == nil {
		c.mu.Lock()
		k.seq = ack.Sequence
		c.away = false
		c.mu.Unlock()
	} else if !there(err) {
		c.cannot(err)
	}
}

// there reports whether a message was refused because the task is in the stream already.
func there(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == 10077 // maximum messages per subject exceeded
}

// cannot says, once until it is over, that the queue does not take tasks.
func (c *Coordinator) cannot(err error) {
	c.mu.Lock()
	first := !c.away
	c.away = true
	c.mu.Unlock()
	if first && c.ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		c.opt.Say("the queue at %s does not take tasks: %v; trying again", c.url, err)
	}
}

// unpublish takes a task's message out of the stream, by its number if that is known. An error leaves a message for
// which nobody asks, and begin drops it.
func (c *Coordinator) unpublish(digest string, seq uint64) {
	ctx, cancel := context.WithTimeout(c.ctx, requestTime)
	defer cancel()
	if seq != 0 {
		_ = c.work.DeleteMsg(ctx, seq)
		return
	}
	_ = c.work.Purge(ctx, jetstream.WithPurgeSubject(c.job.work(digest)))
}

// forget removes a result from the queue, and what belongs to its task. What an error leaves is removed with the queue.
func (c *Coordinator) forget(e *early) {
	ctx, cancel := context.WithTimeout(c.ctx, requestTime)
	defer cancel()
	_ = c.done.DeleteMsg(ctx, e.seq)
	if e.Files != "" {
		_ = c.store.remove(ctx, e.Files)
	}
	if e.ValueIn != "" {
		_ = c.store.remove(ctx, e.ValueIn)
	}
	if e.Saved {
		_ = c.store.remove(ctx, stateName(e.Digest))
	}
}

// Pause stops giving tasks to here, waits until none runs, and returns what lets them go on. Workers go on meanwhile.
// It is for a piece of work that measures time on this machine.
func (c *Coordinator) Pause(ctx context.Context) (resume func(), err error) {
	c.mu.Lock()
	c.paused++
	for c.counts.here > 0 && err == nil {
		idle := c.idle
		c.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			err = ctx.Err()
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	end := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paused--
		c.pump()
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}
