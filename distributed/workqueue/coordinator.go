package workqueue

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/safefile"
)

// The times of the coordinator.
const (
	requestTime  = 5 * time.Second        // for an answer of the server
	storeTime    = 30 * time.Second       // for the server to take a piece of a file
	tickEvery    = 250 * time.Millisecond // looks for workers that have gone
	listEvery    = 2 * time.Second        // compares the stream of work with the tasks that wait
	returnTime   = 3 * time.Second        // that a coordinator which was started again waits for workers with tasks
	byeTime      = 3 * time.Second        // for workers to hear that all is done
	leastAckWait = 100 * time.Millisecond
	missedBeats  = 5 // of a worker's messages may lack a task that it began, before the task goes to others
)

// Coordinator owns the tasks of one command. Its methods are safe for concurrent use.
type Coordinator struct {
	opt    Options
	job    job
	host   *host // nil if the NATS is not ours
	unlock func()
	url    string
	nc     *nats.Conn
	js     jetstream.JetStream
	work   jetstream.Stream
	hands  jetstream.Consumer // of work, which all workers share
	done   jetstream.Stream
	left   int // tasks that workers had when an earlier coordinator ended
	store  *store
	refuse *refusals
	voice  *speaker

	orphans int // how often in turn the stream of tasks had messages that nobody will get; of watch alone

	ctx     context.Context // of everything that runs beside Do, until Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	workers map[string]*worker
	tasks   map[string]*task // that Do waits for
	queue   *list.List       // of *task: those that wait and nobody does
	early   map[string]early // results for which nobody asked yet
	taken   map[string]Result
	slots   []int // that are free here
	paused  int
	idle    chan struct{} // closed and replaced when a slot becomes free
	counts  struct{ done, failed, here, equal int }
	differ  []Dispute
	gone    []gone // the latest last
	stopped bool   // a Do ended without its result, because its context did
	closed  bool
	away    bool // the store of messages does not answer
	changed bool // since Progress was called
}

// early is a result in the stream of results that was not taken.
type early struct {
	stored
	seq uint64
}

// worker is what the coordinator knows of a worker.
type worker struct {
	hello
	seen time.Time
	lost int // how often in turn its connection was missing
	done int
	beat []inWork // of its last message
}

// gone is a worker that was lost.
type gone struct {
	LostWorker
	at time.Time
}

// mostGone is how many workers that were lost a coordinator remembers.
const mostGone = 100

// task is a task for which a Do waits.
type task struct {
	Task
	here    bool
	at      *list.Element // in the queue; nil = not in it
	since   time.Time     // when it came into the queue, or was begun here
	turn    chan int      // gets the slot in which to do it here
	local   bool          // it was given a slot
	holders map[string]*holder
	tries   int      // since it last saved
	causes  []string // of the failures since then
	losers  []string // workers that failed with it
	silent  bool     // all failures were silence
	ready   chan struct{}
	result  *early // set before ready is closed, unless err is
	err     error
	// published is true once its message was sent, whose number in the stream is seq; 0 = not known.
	published bool
	seq       uint64
}

// holder is a worker that does a task.
type holder struct {
	inWork
	since  time.Time
	try    int
	missed int
}

// Listen starts a coordinator. Where an earlier one of the same job was killed, it goes on: results that were not taken
// are there, and workers keep the tasks that they do.
func Listen(ctx context.Context, opt Options) (_ *Coordinator, err error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	voice := newSpeaker(cleaned(opt.Say))
	opt.Say = voice.say
	c := &Coordinator{
		opt: opt, voice: voice, job: job(opt.Job), workers: map[string]*worker{}, tasks: map[string]*task{},
		queue: list.New(), early: map[string]early{},
		taken: map[string]Result{}, idle: make(chan struct{}), refuse: &refusals{told: map[string]bool{}, say: opt.Say},
	}
	for i := range opt.Here {
		c.slots = append(c.slots, opt.Here-1-i)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			c.end()
		}
	}()
	for _, step := range []func(context.Context) error{c.connect, c.lonely, c.streams, c.results, c.answer} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	c.running.Go(c.watch)
	c.welcomeBack(ctx)
	return c, nil
}

// fill checks the options and fills in the defaults.
func (o *Options) fill() error {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	o.Job, o.Tries = cmp.Or(o.Job, "run"), cmp.Or(o.Tries, 3)
	o.AckWait, o.SaveEvery = cmp.Or(o.AckWait, time.Minute), cmp.Or(o.SaveEvery, 2*time.Minute)
	switch {
	case !jobName.MatchString(o.Job):
		return fault.Mistakef("%s: got %q, want at most 64 letters, digits, - and _", fault.Key("job"), o.Job)
	case (o.Listen == "") == (o.Queue == ""):
		return fault.Mistakef("want one of %s HOST:PORT and %s URL", fault.Key("listen"), fault.Key("queue"))
	case o.Listen != "" && o.Dir == "":
		return errors.New("workqueue: Options.Dir is missing, the folder of the server's files")
	case o.Queue != "" && (o.TLSCert != "" || o.TLSKey != ""):
		return fault.Mistakef("%s and %s are of %s; a NATS of %s has its own", fault.Key("tls-cert"), fault.Key("tls-key"),
			fault.Key("listen"), fault.Key("queue"))
	case o.Tries < 1:
		return fault.Mistakef("%s: got %d, want 1 or more", fault.Key("tries"), o.Tries)
	case o.AckWait < leastAckWait:
		return fault.Mistakef("%s: got %v, want 100ms or more", fault.Key("ack-wait"), o.AckWait)
	case o.Here < 0:
		return fmt.Errorf("workqueue: Options.Here is %d", o.Here)
	}
	return nil
}

// connect starts the server, if it is ours, and connects to it.
func (c *Coordinator) connect(context.Context) error {
	o := []nats.Option{nats.Name("gymctl coordinator"), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1)}
	if c.opt.Listen != "" {
		if err := os.MkdirAll(c.opt.Dir, 0o700); err != nil { // what tasks read and leave is for those with the token
			return err
		}
		unlock, err := safefile.Lock(c.opt.Dir)
		if errors.Is(err, safefile.ErrLocked) {
			return fault.Mistakef("%s is in use by another process: the same command runs already", c.opt.Dir)
		}
		if err != nil {
			return err
		}
		c.unlock = unlock
		if c.host, err = startHost(&c.opt, c.refuse); err != nil {
			return err
		}
		if c.nc, err = nats.Connect("", append(o, nats.InProcessServer(c.host.srv), nats.Token(c.host.own))...); err != nil {
			return fmt.Errorf("the queue's server: %w", err)
		}
		c.url = c.host.url(c.opt.Listen, c.opt.TLSCert != "")
		return nil
	}
	url, err := address(c.opt.Queue)
	if err != nil {
		return fault.Mistakef("%s: %w", fault.Key("queue"), err)
	}
	more, err := trust(c.opt.TLSCA)
	if err != nil {
		return err
	}
	if o = append(o, more...); c.opt.Token != "" {
		o = append(o, nats.Token(c.opt.Token))
	}
	if c.nc, err = nats.Connect(url, o...); err != nil {
		return fault.Mistakef("%s: %w", fault.Key("queue"), connectErr(url, err))
	}
	c.url = url
	return nil
}

// url returns the address for workers.
func (h *host) url(listen string, tls bool) string {
	scheme := "nats"
	if tls {
		scheme = "tls"
	}
	address, _, _ := splitListen(listen)
	if address == "0.0.0.0" || address == "::" {
		if name, err := os.Hostname(); err == nil {
			address = name
		}
	}
	_, port, _ := net.SplitHostPort(h.srv.Addr().String())
	return scheme + "://" + net.JoinHostPort(address, port)
}

// lonely makes sure that the job has no other coordinator.
func (c *Coordinator) lonely(context.Context) error {
	if c.host != nil {
		return nil // its folder is locked
	}
	msg, err := c.nc.Request(c.job.subject("owner"), nil, requestTime)
	switch {
	case err == nil:
		return fault.Mistakef("job %s has a coordinator at %s already (%s); want another %s", c.job, c.url,
			plain.Clip(string(msg.Data), 80), fault.Key("job"))
	case errors.Is(err, nats.ErrNoResponders):
		return nil
	}
	return fmt.Errorf("%s: %w", c.url, err)
}

// streams makes what the job needs, or finds it.
func (c *Coordinator) streams(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(storeTime)); err != nil {
		return err
	}
	made := func(what string, err error) error {
		if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
			errors.Is(err, nats.ErrNoResponders) {
			return fault.Mistakef("%s has no JetStream, which %s needs: start nats-server with --jetstream", c.url,
				fault.Key("queue"))
		}
		return fmt.Errorf("%s: the %s of job %s cannot be made: %w", c.url, what, c.job, err)
	}
	if err := c.clearWork(ctx); err != nil {
		return made("stream of tasks", err)
	}
	if c.work, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: c.job.workStream(), Description: "gymctl: tasks that wait or are in work", Subjects: []string{c.job.work("*")},
		Retention: jetstream.WorkQueuePolicy,
		Storage:   jetstream.FileStorage, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
		AllowDirect: true,
	}); err != nil {
		return made("stream of tasks", err)
	}
	if c.done, err = c.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: c.job.doneStream(), Description: "gymctl: results that were not taken", Subjects: []string{c.job.done("*")},
		Retention: jetstream.LimitsPolicy,
		Storage:   jetstream.FileStorage,
	}); err != nil {
		return made("stream of results", err)
	}
	if c.hands, err = c.work.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.opt.AckWait, MaxDeliver: -1, MaxAckPending: -1,
		MaxWaiting: 1 << 16,
	}); err != nil {
		return made("consumer of tasks", err)
	}
	objects, err := c.js.CreateOrUpdateObjectStore(ctx,
		jetstream.ObjectStoreConfig{Bucket: c.job.bucket(), Description: "gymctl: what tasks read and leave"})
	if err != nil {
		return made("store", err)
	}
	c.store = newStore(objects, c.nc)
	return nil
}

// clearWork removes the messages of an earlier coordinator. The tasks are asked for again, and workers say which of
// them they do. After a server was killed, a message can be in the stream of which the consumer believes that it is
// done.
func (c *Coordinator) clearWork(ctx context.Context) error {
	if old, err := c.js.Consumer(ctx, c.job.workStream(), consumer); err == nil {
		if info, err := old.Info(ctx); err == nil {
			c.left = info.NumAckPending
		}
	}
	if err := c.js.DeleteStream(ctx, c.job.workStream()); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return nil
}

// results reads the stream of results, from now on and what is in it, and returns when the latter is read.
func (c *Coordinator) results(ctx context.Context) error {
	info, err := c.done.Info(ctx)
	if err != nil {
		return err
	}
	left, ready := info.State.Msgs, make(chan struct{})
	if left == 0 {
		close(ready)
	}
	cons, err := c.done.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	reading, err := cons.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return // not a message of a stream
		}
		c.arrived(digestOf(m.Subject()), m.Data(), meta.Sequence.Stream)
		if left > 0 && meta.Sequence.Stream >= last {
			left = 0
			close(ready)
		}
	})
	if err != nil {
		return err
	}
	context.AfterFunc(c.ctx, reading.Stop)
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("%s: the results that an earlier coordinator left cannot be read", c.url)
	}
}

// answer answers the workers from now on.
func (c *Coordinator) answer(context.Context) error {
	for subject, handle := range map[string]nats.MsgHandler{
		helloSubject:          c.hello,
		statusSubject:         c.tellStatus,
		c.job.subject("call"): c.call,
		c.job.subject("owner"): func(m *nats.Msg) {
			name, _ := os.Hostname() // for people; "" will do
			_ = m.Respond(fmt.Appendf(nil, "process %d on %s", os.Getpid(), name))
		},
	} {
		if _, err := c.nc.Subscribe(subject, handle); err != nil {
			return err
		}
	}
	return c.nc.Flush()
}

// welcomeBack waits until the workers that have tasks of an earlier coordinator have said so, so that their tasks are
// not done again meanwhile.
func (c *Coordinator) welcomeBack(ctx context.Context) {
	if c.left == 0 {
		return
	}
	c.opt.Say("an earlier coordinator left %s with workers; waiting for them", plain.Count(c.left, "task", "tasks"))
	for end := time.Now().Add(returnTime); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		c.mu.Lock()
		n := len(c.early)
		for _, w := range c.workers {
			n += len(w.beat)
		}
		c.mu.Unlock()
		if n >= c.left {
			return
		}
	}
}

// URL returns the address for workers.
func (c *Coordinator) URL() string { return c.url }

// Put stores a file, or a folder, for Task.Needs. Equal content has an equal digest.
func (c *Coordinator) Put(ctx context.Context, path string) (digest string, err error) {
	return c.store.put(ctx, path, func(d string) string { return d })
}

// Unpack writes Result.Files into dir, which is made if it does not exist. Files of the same names are replaced.
func (c *Coordinator) Unpack(ctx context.Context, files, dir string) error {
	_, digest, err := splitFiles(files)
	if err != nil {
		return err
	}
	return c.store.folder(ctx, files, dir, digest)
}

// Disputes returns the tasks with results that differ.
func (c *Coordinator) Disputes() []Dispute {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.differ)
}

// Close ends the coordinator. If every Do came to its end, it tells the workers that all is done, and removes the queue
// unless a task failed. If the context of a Do ended first, everything stays, workers wait, and the same command goes
// on.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	over := !c.stopped && len(c.tasks) == 0
	c.mu.Unlock()
	var err error
	if over {
		c.sayBye()
	}
	done := over && c.counts.failed == 0 // a task that failed goes on from what it saved
	if done {
		err = c.clear()
	}
	c.end()
	if done && c.host != nil {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.opt.Dir, "jetstream")), removeEmpty(c.opt.Dir))
	}
	return err
}

// sayBye tells the workers that all is done, and waits until they have left.
func (c *Coordinator) sayBye() {
	for end := time.Now().Add(byeTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := c.nc.Publish(c.job.subject("bye"), encode(bye{Job: string(c.job)})); err != nil ||
			c.nc.FlushTimeout(byeTime) != nil {
			return
		}
		c.mu.Lock()
		n := 0
		for _, w := range c.workers {
			if time.Since(w.seen) < 2*time.Second {
				n++ // a silent one is not waited for
			}
		}
		c.mu.Unlock()
		if n == 0 {
			return
		}
	}
}

// clear removes the job from the NATS.
func (c *Coordinator) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.host != nil {
		return nil // its files are removed
	}
	return errors.Join(c.js.DeleteStream(ctx, c.job.workStream()), c.js.DeleteStream(ctx, c.job.doneStream()),
		c.js.DeleteObjectStore(ctx, c.job.bucket()))
}

// end stops everything that runs.
func (c *Coordinator) end() {
	c.cancel()
	c.running.Wait()
	if c.nc != nil {
		c.nc.Close()
	}
	if c.host != nil {
		c.host.srv.Shutdown()
		c.host.srv.WaitForShutdown()
	}
	if c.unlock != nil {
		c.unlock()
	}
	c.voice.close()
}

// removeEmpty removes a folder if nothing is in it.
func removeEmpty(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > 0 {
		return err
	}
	return os.Remove(dir)
}
