package workqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/plain"
)

// watch notices workers that have gone and tasks whose messages have gone, and tells the progress.
func (c *Coordinator) watch() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var listed, told time.Time
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		c.notice()
		if time.Since(listed) >= listEvery {
			listed = time.Now()
			c.compare()
		}
		c.mu.Lock()
		tell := c.opt.Progress != nil && (c.changed || len(c.workers) > 0) && time.Since(told) >= time.Second
		c.changed = c.changed && !tell
		c.mu.Unlock()
		if tell {
			told = time.Now()
			c.opt.Progress(c.Status())
		}
	}
}

// goneAfter is how long the connection of a worker must have been closed until its tasks go to others: it may be about
// to connect again.
const goneAfter = 1500 * time.Millisecond

// notice takes the tasks of workers that have gone.
func (c *Coordinator) notice() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names map[string]bool
	for name, w := range c.workers {
		silence := time.Since(w.seen)
		why := ""
		if silence > goneAfter && c.host != nil {
			if names == nil {
				names = c.host.connected()
			}
			if names != nil && !names[name] {
				w.lost++
			} else {
				w.lost = 0
			}
			if w.lost >= 2 {
				why = "it went away"
			}
		}
		if silence > c.opt.AckWait {
			why = fmt.Sprintf("it has been silent for %v", c.opt.AckWait)
		}
		if why == "" {
			continue
		}
		held := c.heldBy(w)
		delete(c.workers, name)
		c.changed = true
		text := ""
		if len(held) > 0 {
			text = fmt.Sprintf("; %s of it goes to others", plain.Count(len(held), "task", "tasks"))
		}
		c.opt.Say("worker %s is lost, %s%s", name, why, text)
		c.remember(name, why, held)
		for _, k := range held {
			c.lost(w, k, why)
		}
	}
}

// remember keeps for Status that a worker was lost.
func (c *Coordinator) remember(name, why string, held []*task) {
	g := gone{LostWorker{Name: name, Why: why, Tasks: []string{}}, time.Now()}
	for _, k := range held {
		g.Tasks = append(g.Tasks, k.Name)
	}
	c.gone = append(c.gone[max(0, len(c.gone)-mostGone+1):], g)
}

// compare publishes the tasks that wait and have no message: an earlier message may have been dropped, and the queue
// may have been away.
func (c *Coordinator) compare() {
	old := time.Now().Add(-listEvery / 2)
	c.mu.Lock()
	var waiting []*task
	for _, k := range c.tasks {
		if k.at != nil && k.published && k.since.Before(old) {
			waiting = append(waiting, k)
		}
	}
	c.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTime)
	defer cancel()
	info, err := c.work.Info(ctx, jetstream.WithSubjectFilter(c.job.work("*")))
	if err != nil {
		return // away; later
	}
	there := info.State.Subjects
	if len(there) > 0 {
		if hands, err := c.hands.Info(ctx); err != nil || hands.NumPending > 0 || hands.NumAckPending > 0 {
			c.orphans = 0
		} else if c.orphans++; c.orphans >= 2 {
			// The server was killed, and took note of what its consumer did but not of what its stream lost.
			if c.work.Purge(ctx) != nil {
				return
			}
			c.orphans, there = 0, nil
		}
	}
	for _, k := range waiting {
		if there[c.job.work(k.Digest)] > 0 {
			continue
		}
		c.mu.Lock()
		waits := k.at != nil
		c.mu.Unlock()
		if waits {
			c.publish(c.ctx, k)
		}
	}
}
