package workqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/plain"
)

// slot does one task after the other until ctx ends. It asks for a task only when it is free, so that none waits in a
// busy worker.
func (w *crew) slot(ctx context.Context, n int) {
	inbox, err := w.nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		w.stop(err)
		return
	}
	defer func() {
		_ = inbox.Unsubscribe() // the connection may be closed
		w.giveBack(inbox)
	}()
	for ctx.Err() == nil {
		if m := w.fetch(ctx, inbox); m != nil {
			w.take(ctx, n, m, inbox)
		}
	}
}

// fetch asks for a task and waits for it; nil = none came.
func (w *crew) fetch(ctx context.Context, inbox *nats.Subscription) *nats.Msg {
	wait, cancel := w.briefly(ctx, pullTime+askTime)
	defer cancel()
	next := "$JS.API.CONSUMER.MSG.NEXT." + w.job.workStream() + "." + consumer
	if err := w.nc.PublishRequest(next, inbox.Subject, fmt.Appendf(nil, `{"batch":1,"expires":%d}`, pullTime)); err !=
		nil {
		_ = sleep(wait, againAfter) // away
		return nil
	}
	m, err := inbox.NextMsgWithContext(wait)
	if err != nil {
		return nil
	}
	if status := m.Header.Get("Status"); status != "" {
		if status != "408" && status != "404" { // other than that nothing came in time
			_ = sleep(wait, againAfter)
		}
		return nil
	}
	return m
}

// giveBack returns tasks that came although the slot is not free, as after two wishes around a lost connection.
func (w *crew) giveBack(inbox *nats.Subscription) {
	for {
		m, err := inbox.NextMsg(0)
		if err != nil {
			return
		}
		if m.Header.Get("Status") == "" {
			w.nak(m, 0)
		}
	}
}

// nak returns a message to the queue, to be delivered again after a while. If it does not get there, the queue delivers
// it again when it has heard nothing of it.
func (w *crew) nak(m *nats.Msg, after time.Duration) {
	body := "-NAK"
	if after > 0 {
		body += ` {"delay": ` + strconv.FormatInt(int64(after), 10) + `}`
	}
	_ = w.nc.Publish(m.Reply, []byte(body))
}

// laterAfter is when a task comes again that another worker does, and yieldAfter when one does that another worker
// should do. The slot then waits for yieldTime, so that the other worker gets it.
const (
	laterAfter = time.Second
	yieldAfter = 20 * time.Millisecond
	yieldTime  = 250 * time.Millisecond
)

// take does the task of a message, if the coordinator wants it.
func (w *crew) take(ctx context.Context, n int, m *nats.Msg, inbox *nats.Subscription) {
	var q queued
	if err := q.read(m); err != nil {
		w.opt.Say("%s: a message in the queue is no task of its coordinator, and is removed: %q: %v", w.opt.Name,
			clipText(m.Subject), err)
		_ = w.nc.Publish(m.Reply, []byte("+TERM")) // the coordinator publishes what waits once more
		return
	}
	workers := w.opt.Workers / w.opt.Slots
	if n < w.opt.Workers%w.opt.Slots {
		workers++
	}
	j := &Job{Task: q.Task, Workers: max(1, workers), crew: w, ctx: ctx, ack: m.Reply}
	w.mu.Lock()
	if slices.ContainsFunc(w.running, func(o *Job) bool { return o.Task.Digest == q.Digest }) {
		w.mu.Unlock()
		w.nak(m, laterAfter) // another slot does it
		return
	}
	w.running = append(w.running, j)
	w.mu.Unlock()
	defer w.ended(j)

	r, err := w.ask(&call{Kind: callBegin, Worker: w.opt.Name, Tasks: []inWork{{Digest: q.Digest, Ack: m.Reply}}})
	switch {
	case err != nil: // the coordinator is away; its queue is there, and the task will be wanted when it is back
	case r.Answer == answerHello:
		w.mu.Lock()
		w.unknown = true
		w.mu.Unlock()
		w.nak(m, againAfter)
		return
	case r.Answer == answerLater:
		w.nak(m, laterAfter)
		return
	case r.Answer == answerYield:
		w.nak(m, yieldAfter)
		_ = sleep(ctx, yieldTime)
		return
	case r.Answer != answerGo:
		_ = w.nc.Publish(m.Reply, []byte("+TERM")) // otherwise it comes again, to be dropped
		return
	}
	w.mu.Lock()
	j.held = true
	w.mu.Unlock()
	kept := make(chan struct{})
	hold, release := context.WithCancel(context.Background())
	go func() {
		defer close(kept)
		for sleep(hold, w.welcome.AckWait/4) == nil {
			_ = w.nc.Publish(m.Reply, []byte("+WPI")) // away: the task may go to another worker
			w.giveBack(inbox)
		}
	}()
	w.do(j, &q, m)
	release()
	<-kept
}

// read reads the message of a task. The digest of a task whose input is in the store is compared when that is here.
func (q *queued) read(m *nats.Msg) error {
	if err := json.Unmarshal(m.Data, q); err != nil {
		return err
	}
	defer func() { q.Name = plain.Clip(q.Name, mostName) }() // it is printed
	switch {
	case digestOf(m.Subject) != q.Digest:
		return errors.New("it has another digest than its subject")
	case q.InputIn == "":
		return q.same()
	case q.InputIn != inputName(q.Digest) || q.Input != nil:
		return errors.New("its input is that of another task")
	}
	return q.check()
}

// ended takes a task off the list of those in work.
func (w *crew) ended(j *Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(o *Job) bool { return o == j })
}

// do does a task and reports what came of it.
func (w *crew) do(j *Job, q *queued, m *nats.Msg) {
	defer func() {
		if err := j.clean(); err != nil {
			w.opt.Say("%s: the folder of %s cannot be removed: %v", w.opt.Name, j.Task.Name, err)
		}
	}()
	out, wall, err := w.run(j, q)
	if err == nil {
		// The result is on its way even if the worker leaves.
		ctx, cancel := outlive(j.ctx, leaveTime)
		defer cancel()
		if err = w.deliver(ctx, j, out, wall); err == nil {
			_ = w.nc.Publish(m.Reply, []byte("+ACK")) // otherwise it comes again, to be dropped
			return
		}
	}
	w.ended(j)
	what := call{Kind: callFailed, Worker: w.opt.Name, Tasks: []inWork{{Digest: j.Task.Digest, Ack: m.Reply}},
		Text: clipText(err.Error()), Mistake: w.opt.Mistake(err)}
	if j.ctx.Err() != nil {
		what.Kind, what.Text, what.Mistake = callBack, "", false
		if errors.Is(context.Cause(j.ctx), errBye) {
			return // nobody wants it
		}
	} else {
		w.opt.Say("%s: %s failed: %s", w.opt.Name, j.Task.Name, clipText(err.Error()))
	}
	for range 3 {
		if _, err := w.ask(&what); err == nil {
			return // the coordinator lets it be delivered again
		}
		if sleep(j.ctx, againAfter) != nil {
			break
		}
	}
	w.nak(m, 0)
}

// outlive returns a context that ends a while after ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if sleep(after, by) == nil {
			cancel()
		}
	})
	return after, func() { stop(); cancel() }
}

// run lets the handler do a task, in a folder of its own that is removed when the result is delivered.
func (w *crew) run(j *Job, q *queued) (out Outcome, wall time.Duration, err error) {
	handler := w.opt.Handlers[j.Task.Kind]
	if handler == nil {
		return out, 0, fmt.Errorf("this program does no tasks of kind %q", j.Task.Kind)
	}
	if q.InputIn != "" {
		if err := w.insist(j.ctx, "the input", func(ctx context.Context) (err error) {
			j.Task.Input, err = w.store.bytes(ctx, q.InputIn)
			return err
		}); err != nil {
			return out, 0, err
		}
		if q.Input = j.Task.Input; q.same() != nil {
			return out, 0, q.same()
		}
	}
	j.Dir = filepath.Join(w.dir, "task-"+j.Task.Digest[:16])
	if err := errors.Join(os.RemoveAll(j.Dir), os.MkdirAll(j.Dir, 0o700)); err != nil {
		return out, 0, err
	}
	j.Needs = map[string]string{}
	for name, digest := range j.Task.Needs {
		err := w.insist(j.ctx, "what it needs as "+name, func(ctx context.Context) error {
			path, release, err := w.needs.get(ctx, digest, w.store)
			if err == nil {
				j.Needs[name] = path
				j.release = append(j.release, release)
			}
			return err
		})
		if err != nil {
			return out, 0, err
		}
	}
	if err := w.restore(j); err != nil {
		return out, 0, err
	}
	j.saved = time.Now()
	start := time.Now()
	out, err = guard(j.ctx, handler, j)
	return out, time.Since(start), err
}

// guard turns a handler's panic into an error.
func guard(ctx context.Context, h Handler, j *Job) (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return h(ctx, j)
}

// restore brings what an earlier worker saved of the task.
func (w *crew) restore(j *Job) error {
	return w.insist(j.ctx, "what was saved", func(ctx context.Context) error {
		name := stateName(j.Task.Digest)
		brief, cancel := w.briefly(ctx, requestTime)
		ok, err := w.store.has(brief, name)
		cancel()
		if err != nil || !ok {
			return err
		}
		err = w.store.folder(ctx, name, j.Dir, "")
		if err != nil { // also if it was replaced meanwhile
			return errors.Join(err, os.RemoveAll(j.Dir), os.MkdirAll(j.Dir, 0o700))
		}
		j.inStore = true
		return nil
	})
}

// insist calls get until it succeeds, the context ends or the worker's patience does. What is not there will not come.
func (w *crew) insist(ctx context.Context, what string, get func(ctx context.Context) error) error {
	for start, n := time.Now(), 0; ; n++ {
		err := get(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errGone):
			return fmt.Errorf("%s is not there: %w", what, err)
		case w.nc.IsConnected() && n >= 4 || time.Since(start) > w.opt.Patience:
			return fmt.Errorf("%s does not arrive: %w", what, err)
		}
		if err := sleep(ctx, againAfter); err != nil {
			return err
		}
	}
}

// deliver sends a result until the queue has it.
func (w *crew) deliver(ctx context.Context, j *Job, out Outcome, wall time.Duration) error {
	value, err := json.Marshal(out.Value)
	if err != nil {
		return fmt.Errorf("the value cannot be encoded: %w", err)
	}
	proof := out.Proof
	if proof == nil {
		proof = value
	}
	hash := sha256.Sum256(proof)
	s := stored{Result: Result{Digest: j.Task.Digest, Value: value, Proof: hex.EncodeToString(hash[:]), Worker: w.opt.Name,
		Wall: wall}}
	if out.Keep {
		if _, _, _, err := w.store.digest(ctx, j.Dir); err != nil {
			return fmt.Errorf("the result's folder cannot be sent: %w", err)
		}
	}
	said := false
	for n := 0; ; n++ {
		err := w.send(ctx, j, &s, out.Keep)
		if err == nil {
			return nil
		}
		if !said && ctx.Err() == nil {
			w.opt.Say("%s: the result of %s does not get through yet: %v", w.opt.Name, j.Task.Name, err)
			said = true
		}
		if e := sleep(ctx, againAfter); e != nil {
			return fmt.Errorf("the result could not be sent: %w", err)
		}
	}
}

func (w *crew) send(ctx context.Context, j *Job, s *stored, keep bool) (err error) {
	if keep && s.Files == "" {
		digest, err := w.store.put(ctx, j.Dir, func(d string) string { return filesName(j.Task.Digest, d) })
		if err != nil {
			return err
		}
		s.Files = filesName(j.Task.Digest, digest)
	}
	if len(s.Value) > largest(w.nc) {
		s.ValueIn = valueName(j.Task.Digest, w.opt.Name)
		if err := w.store.putBytes(ctx, s.ValueIn, s.Value); err != nil {
			return err
		}
		s.Value = nil
	}
	j.mu.Lock()
	s.Saved = j.inStore
	j.mu.Unlock()
	ctx, cancel := w.briefly(ctx, requestTime)
	defer cancel()
	_, err = w.js.Publish(ctx, w.job.done(j.Task.Digest), encode(s),
		jetstream.WithMsgID(j.Task.Digest+" "+w.opt.Name+" "+j.ack), jetstream.WithRetryAttempts(0))
	return err
}
