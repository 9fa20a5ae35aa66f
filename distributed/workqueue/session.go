package workqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
)

// The times of a worker.
const (
	beatEvery  = time.Second            // between its signs of life
	askTime    = 2 * time.Second        // for an answer of the coordinator
	pullTime   = 5 * time.Second        // that the server keeps a slot's wish for a task
	againAfter = 500 * time.Millisecond // between tries of what failed
	leaveTime  = 20 * time.Second       // for results and saved folders on the way, when the worker leaves
)

// How a session ends, besides by errors and the context.
var (
	errBye   = errors.New("all is done")
	errRenew = errors.New("the coordinator has changed")
)

// crew is a worker with its slots.
type crew struct {
	opt   WorkOptions
	dir   string
	needs *cache
	nc    *nats.Conn
	js    jetstream.JetStream

	// Of the session.
	job     job
	welcome welcome
	store   *store
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	running []*Job
	heard   time.Time      // when the coordinator last answered
	unknown bool           // the coordinator does not know this worker
	wakers  map[int]func() // what waits for an answer, or for the next beat
	waker   int
}

// dial connects to a URL once. The error is a *fault.Mistake if another try would fail as well.
func dial(opt WorkOptions, name string, more ...nats.Option) (*nats.Conn, error) {
	url, err := address(opt.URL)
	if err != nil {
		return nil, err
	}
	o, err := trust(opt.TLSCA)
	if err != nil {
		return nil, err
	}
	o = append(o, nats.Name(name), nats.Timeout(5*time.Second))
	if opt.Token != "" {
		o = append(o, nats.Token(opt.Token))
	}
	nc, err := nats.Connect(url, append(o, more...)...)
	if err != nil {
		return nil, connectErr(url, err)
	}
	return nc, nil
}

// connect connects to the coordinator, as soon as it is there.
func (w *crew) connect(ctx context.Context) error {
	said := false
	for start := time.Now(); ; {
		nc, err := dial(w.opt, w.opt.Name,
			nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond,
				300*time.Millisecond), nats.ReconnectBufSize(-1),
			nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
			nats.ReconnectHandler(func(*nats.Conn) { w.wake() }), nats.ClosedHandler(w.closed),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err == nil {
			w.nc = nc
			w.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(storeTime))
			return err
		}
		if fault.IsMistake(err) {
			return err
		}
		if time.Since(start) > w.opt.Patience {
			return fmt.Errorf("no coordinator within %v: %w", w.opt.Patience, err)
		}
		if !said {
			w.opt.Say("%s: %v; trying for %v", w.opt.Name, err, w.opt.Patience)
			said = true
		}
		if err := sleep(ctx, againAfter); err != nil {
			return err
		}
	}
}

// closed ends the session when the connection is closed for good, as after a wrong token.
func (w *crew) closed(nc *nats.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		return
	}
	err := nc.LastError()
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	w.stop(connectErr(w.opt.URL, err))
}

// wake lets the slots ask for tasks again and the worker introduce itself, since a server that was started again has
// forgotten the wishes of the slots, and its coordinator the worker.
func (w *crew) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown = true // perhaps
	for _, wake := range w.wakers {
		wake()
	}
}

// briefly returns a context for waiting for an answer. It ends when the connection was lost and is there again, since
// the answer was lost with it.
func (w *crew) briefly(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waker++
	n := w.waker
	w.wakers[n] = cancel
	return ctx, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.wakers, n)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// introduce says hello until a coordinator welcomes or refuses the worker.
func (w *crew) introduce(ctx context.Context, patience time.Duration) (*welcome, error) {
	said := false
	for start := time.Now(); ; {
		answer, err := w.hello(ctx)
		if answer != nil || err != nil && !silentErr(err) {
			return answer, err
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case w.nc.IsClosed():
			return nil, connectErr(w.opt.URL, w.nc.LastError())
		case time.Since(start) > patience:
			of := ""
			if w.opt.Job != "" {
				of = " of job " + w.opt.Job
			}
			return nil, fmt.Errorf("%s has had no coordinator%s for %v", w.opt.URL, of, patience)
		}
		if !said && time.Since(start) > askTime {
			w.opt.Say("%s: waiting for a coordinator at %s", w.opt.Name, w.opt.URL)
			said = true
		}
		if err := sleep(ctx, againAfter); err != nil {
			return nil, err
		}
	}
}

// hello says hello once. Without an answer for this worker both results are nil.
func (w *crew) hello(ctx context.Context) (*welcome, error) {
	h := hello{Protocol: protocol, Job: w.opt.Job, Worker: w.opt.Name, Slots: w.opt.Slots, Build: w.opt.Build,
		Arch: runtime.GOARCH, Kernels: w.opt.Kernels}
	inbox, err := w.nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = inbox.Unsubscribe() }() // the connection may be closed
	if err := w.nc.PublishRequest(helloSubject, inbox.Subject, encode(h)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for {
		m, err := inbox.NextMsgWithContext(ctx)
		if err != nil || m.Header.Get("Status") != "" {
			return nil, nil // nobody, or nobody with our job
		}
		var a welcome
		if err := json.Unmarshal(m.Data, &a); err != nil {
			return nil, fault.Mistakef("the coordinator at %s cannot be understood: it is another build", w.opt.URL)
		}
		switch {
		case a.Other && a.Own:
			return nil, fault.Mistakef("%s does the job %s and not %s; want %s %s, or none", w.opt.URL, a.Job, w.opt.Job,
				fault.Key("job"), a.Job)
		case a.Other:
			continue
		case a.Refusal != "":
			return nil, fault.Mistakef("%s", plain.Clip(a.Refusal, 500))
		case !jobName.MatchString(a.Job) || a.AckWait < leastAckWait:
			return nil, fault.Mistakef("the coordinator at %s cannot be understood: it is another build", w.opt.URL)
		}
		return &a, nil
	}
}

// session works for one coordinator, or for those that follow it under the same name. It returns errBye when all is
// done.
func (w *crew) session(ctx context.Context, a *welcome) error {
	if w.opt.UseKernels != nil && a.Kernels != "" {
		if err := w.opt.UseKernels(a.Kernels); err != nil {
			w.job = job(a.Job)
			_, _ = w.ask(&call{Kind: callLeave, Worker: w.opt.Name, Text: clipText(err.Error())}) // otherwise it is missed later
			return fault.Mistakef("worker %s: %w", w.opt.Name, err)
		}
	}
	a.Kernels = plain.Clip(a.Kernels, 40)
	w.job, w.welcome = job(a.Job), *a
	open, cancel := context.WithTimeout(ctx, requestTime)
	objects, err := w.js.ObjectStore(open, w.job.bucket())
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.opt.Say("%s: the store of job %s does not open: %v", w.opt.Name, a.Job, err)
		if err := sleep(ctx, againAfter); err != nil {
			return err
		}
		return errRenew
	}
	w.store = newStore(objects, w.nc)
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.mu.Lock()
	w.heard, w.unknown, w.stop = time.Now(), false, stop
	w.mu.Unlock()
	subject := ""
	if a.Kernels != "" {
		subject = ", kernels " + a.Kernels
	}
	w.opt.Say("%s: works for job %s at %s with %s%s", w.opt.Name, a.Job, w.opt.URL,
		plain.Count(w.opt.Slots, "slot", "slots"), subject)
	ended, err := w.nc.Subscribe(w.job.subject("bye"), func(m *nats.Msg) { stop(errBye) })
	if err != nil {
		return err
	}
	answers, err := w.nc.Subscribe(nats.NewInbox(), w.answered)
	if err != nil {
		return err
	}
	var slots, signs sync.WaitGroup
	for i := range w.opt.Slots {
		slots.Go(func() { w.slot(work, i) })
	}
	// It goes on while the handlers save.
	alive, dead := context.WithCancel(context.Background())
	signs.Go(func() { w.beat(alive, answers.Subject) })
	<-work.Done()
	slots.Wait()
	dead()
	signs.Wait()
	_ = ended.Unsubscribe()
	_ = answers.Unsubscribe()
	why := context.Cause(work)
	if ctx.Err() != nil {
		why = ctx.Err()
	}
	if !errors.Is(why, errRenew) && w.nc.IsConnected() {
		_, _ = w.ask(&call{Kind: callLeave, Worker: w.opt.Name}) // otherwise it is missed later
	}
	return why
}

// beat tells the coordinator every second what the worker does. It ends the session if nobody has answered for too
// long.
func (w *crew) beat(ctx context.Context, answers string) {
	every := min(beatEvery, w.welcome.AckWait/4)
	for {
		w.mu.Lock()
		// Sent under the lock, so that no task is named after the message of its end.
		if data := encode(call{Kind: callBeat, Worker: w.opt.Name, Tasks: w.inWork()}); w.nc.IsConnected() {
			_ = w.nc.PublishRequest(w.job.subject("call"), answers, data) // the next one comes soon
		}
		silence, unknown, stop := time.Since(w.heard), w.unknown, w.stop
		w.unknown = false
		w.mu.Unlock()
		if unknown {
			w.helloAgain(ctx)
		}
		if silence > w.opt.Patience {
			stop(fmt.Errorf("the coordinator at %s has not answered for %v", w.opt.URL, w.opt.Patience))
		}
		pause, end := w.briefly(ctx, every)
		<-pause.Done()
		end()
		if ctx.Err() != nil {
			return
		}
	}
}

// inWork lists the tasks in the slots.
func (w *crew) inWork() []inWork {
	list := []inWork{}
	for _, j := range w.running {
		if !j.held {
			continue // the coordinator has not agreed
		}
		list = append(list, inWork{Digest: j.Task.Digest, Ack: j.ack, Done: j.done.Load(), All: j.all.Load()})
	}
	return list
}

// answered hears the coordinator's answer to a beat.
func (w *crew) answered(m *nats.Msg) {
	var r reply
	if m.Header.Get("Status") != "" || json.Unmarshal(m.Data, &r) != nil {
		return // nobody is there
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = time.Now()
	w.unknown = w.unknown || r.Answer == answerHello
}

// helloAgain introduces the worker to a coordinator that does not know it: it was started again, or took the worker for
// lost.
func (w *crew) helloAgain(ctx context.Context) {
	a, err := w.hello(ctx)
	if err != nil && !silentErr(err) {
		w.stop(err)
	}
	if a == nil {
		return // later
	}
	if a.Job != string(w.job) || a.Kernels != w.welcome.Kernels || a.AckWait != w.welcome.AckWait {
		w.stop(errRenew)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nc.IsConnected() { // at once, so that nobody else gets these tasks
		_ = w.nc.Publish(w.job.subject("call"), encode(call{Kind: callBeat, Worker: w.opt.Name, Tasks: w.inWork()}))
	}
}

// ask sends a call to the coordinator, and waits for its answer.
func (w *crew) ask(q *call) (r reply, err error) {
	for range 2 { // again, if the connection was lost meanwhile
		ctx, cancel := w.briefly(context.Background(), askTime)
		m, err := w.nc.RequestWithContext(ctx, w.job.subject("call"), encode(q))
		cancel()
		if err == nil {
			return r, json.Unmarshal(m.Data, &r)
		}
		if !errors.Is(err, context.Canceled) {
			return r, err
		}
	}
	return r, nats.ErrTimeout
}
