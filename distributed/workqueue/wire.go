package workqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"clustergym/internal/plain"
)

// protocol is the version of the messages between workers and coordinators. Builds must be equal anyhow; this is for a
// sentence in place of a puzzle where the messages themselves have changed.
const protocol = 1

// Subjects that are not of one job.
const (
	helloSubject  = "gymctl.hello"
	statusSubject = "gymctl.status"
)

// job makes the names of a job's subjects and streams.
type job string

var jobName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (j job) subject(of string) string     { return "gymctl." + string(j) + "." + of }
func (j job) work(digest string) string    { return j.subject("work." + digest) }
func (j job) done(digest string) string    { return j.subject("done." + digest) }
func (j job) workStream() string           { return "gymctl-" + string(j) + "-work" }
func (j job) doneStream() string           { return "gymctl-" + string(j) + "-done" }
func (j job) bucket() string               { return "gymctl-" + string(j) }
func digestOf(subject string) string       { return subject[strings.LastIndexByte(subject, '.')+1:] }
func stateName(digest string) string       { return "state/" + digest }
func inputName(digest string) string       { return "input/" + digest }
func valueName(digest, name string) string { return "value/" + digest + "/" + name }

// consumer is the name of the durable consumer of the stream of work, which all workers share.
const consumer = "workers"

// JobName makes a job's name out of any text, such as the name of a run's folder.
func JobName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && jobName.MatchString(string(r)) {
			return r
		}
		return '-'
	}, text)
	if name == "" {
		return "run"
	}
	return name[:min(len(name), 64)]
}

// hello is a worker's request to take part.
type hello struct {
	Protocol int      `json:"protocol"`
	Job      string   `json:"job,omitempty"` // "" = any
	Worker   string   `json:"worker"`
	Slots    int      `json:"slots"`
	Build    string   `json:"build"`
	Arch     string   `json:"arch"`
	Kernels  []string `json:"kernels"`
}

// welcome answers a hello.
type welcome struct {
	Job   string `json:"job"`
	Other bool   `json:"other,omitempty"` // another job was asked for
	// the server is the coordinator's own, so that there is no other job
	Own       bool          `json:"own,omitempty"`
	Refusal   string        `json:"refusal,omitempty"` // one sentence; "" = welcome
	Kernels   string        `json:"kernels,omitempty"` // the set to compute with; "" = any
	AckWait   time.Duration `json:"ack_wait_ns,omitempty"`
	SaveEvery time.Duration `json:"save_every_ns,omitempty"`
}

// inWork is a task in the hands of a worker.
type inWork struct {
	Digest string `json:"digest"`
	Ack    string `json:"ack"` // subject of the acknowledgement of its message
	Done   int64  `json:"done,omitempty"`
	All    int64  `json:"all,omitempty"`
}

// The kinds of call.
const (
	callBeat   = "beat"   // a worker is alive, and does Tasks
	callBegin  = "begin"  // a worker has fetched Tasks[0] and asks whether to do it
	callFailed = "failed" // Tasks[0] failed with Text
	callBack   = "back"   // a worker that leaves hands Tasks[0] back
	callSaved  = "saved"  // the folder of Tasks[0] was uploaded
	callLeave  = "leave"  // a worker leaves, without tasks
)

// call is a request of a worker. All are on one subject, so that the coordinator reads them in the order in which a
// worker sent them.
type call struct {
	Kind    string   `json:"kind"`
	Worker  string   `json:"worker"`
	Tasks   []inWork `json:"tasks,omitempty"`
	Text    string   `json:"text,omitempty"`
	Mistake bool     `json:"mistake,omitempty"`
}

// The answers to a call.
const (
	answerGo    = "go"    // do it; also: heard
	answerDrop  = "drop"  // nobody wants it any more
	answerLater = "later" // another worker does it
	answerYield = "yield" // another worker should do it
	answerHello = "hello" // the coordinator does not know the worker
)

type reply struct {
	Answer string `json:"answer"`
	Try    int    `json:"try,omitempty"`
}

// stored is a message of the stream of results.
type stored struct {
	Result
	ValueIn string `json:"value_in,omitempty"` // name in the store of a value that is too large for a message
	Saved   bool   `json:"saved,omitempty"`    // the store has a saved folder of the task
}

// queued is a message of the stream of work.
type queued struct {
	Task
	InputIn string `json:"input_in,omitempty"` // likewise
}

// bye is what a coordinator tells the workers when all is done.
type bye struct {
	Job string `json:"job"`
}

// largest is how long a value or an input may be to travel inside a message.
func largest(nc *nats.Conn) int { return int(min(nc.MaxPayload()/4, 256<<10)) }

// textLimit bounds what a worker's error may say, in bytes.
const textLimit = 16 << 10

// clipText cuts a text for a message.
func clipText(s string) string {
	if len(s) > textLimit {
		s = strings.ToValidUTF8(s[:textLimit], "") + " …"
	}
	return s
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check returns what is wrong with a task that a caller or a message brings.
func (t *Task) check() error {
	switch {
	case !hexDigest.MatchString(t.Digest):
		return fmt.Errorf("workqueue: task %q has the digest %q, want 64 hexadecimal digits", t.Name, t.Digest)
	case t.Kind == "":
		return fmt.Errorf("workqueue: task %q has no kind", t.Name)
	}
	for name, d := range t.Needs {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("workqueue: task %q needs something called %q, which is no path of words between slashes", t.Name,
				name)
		}
		if !hexDigest.MatchString(d) {
			return fmt.Errorf("workqueue: task %q needs %s with the digest %q, want 64 hexadecimal digits", t.Name, name, d)
		}
	}
	return nil
}

// same returns an error unless the task has the digest of its content.
func (t *Task) same() error {
	if err := t.check(); err != nil {
		return err
	}
	if sum, err := t.sum(); err != nil || sum != t.Digest {
		return fmt.Errorf(
			"workqueue: the task has the digest %.12s… and not that of its kind, name, input and needs; it has been changed "+
				"on its way", t.Digest)
	}
	return nil
}

// mostName is the longest name of a task that a worker shows, in characters.
const mostName = 200

// belongs returns an error if a result names objects of the store that are not its own: they would be removed with it.
func (s *stored) belongs() error {
	if s.Files != "" {
		if task, _, err := splitFiles(s.Files); err != nil || task != s.Digest {
			return fmt.Errorf("its folder is called %q", plain.Clip(s.Files, 80))
		}
	}
	if s.ValueIn != "" && s.ValueIn != valueName(s.Digest, s.Worker) {
		return fmt.Errorf("its value is called %q", plain.Clip(s.ValueIn, 80))
	}
	return nil
}

// ackPrefix begins the subjects of acknowledgements.
const ackPrefix = "$JS.ACK."

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("workqueue: message %T: %v", v, err)) // messages have no value that cannot be encoded
	}
	return data
}

// silentErr reports whether nobody answered a request.
func silentErr(err error) bool {
	return errors.Is(err,
		nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err,
			nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrStaleConnection) ||
		errors.Is(err, nats.ErrReconnectBufExceeded)
}
