// Package mlflow sends what a training reports to a tracking server of MLflow, over its REST interface. It follows the
// run's progress.jsonl, so that a training never waits for the server, and a server that was away gets what it missed.
// What was sent is noted in the run directory: a run that is resumed goes on in the same run of the server.
package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/jsonl"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/secret"
	"clustergym/lab/rundir"
)

// StateFile is the file in a run directory that says what was sent where.
const StateFile = "mlflow.json"

// The bounds that MLflow has for one request.
const (
	maxMetrics = 1000
	maxParams  = 100
	maxValue   = 500 // characters of a parameter, in the oldest servers
)

// Options says what is sent where.
type Options struct {
	URL        string // of the server: http://HOST:PORT or https://…; user and password in it are sent
	Token      string // sent as a bearer token; "" = none
	Experiment string // name; made if it does not exist
	RunDir     string
	Name       string // of the run
	Params     [][2]string
	Tags       map[string]string
	Say        func(format string, args ...any) // one line for people; nil = silent
	Now        func() time.Time                 // nil = time.Now
	Every      time.Duration                    // how often the run is looked at; 0 = 2 s
	Patience   time.Duration                    // how long Close waits for the server; 0 = 10 s
}

// Status is how a training ended.
type Status string

// The statuses.
const (
	Finished Status = "FINISHED"
	Failed   Status = "FAILED"
	Killed   Status = "KILLED" // interrupted, to be resumed
)

// Check returns the user's mistake if the options' URL is none.
func (o *Options) Check() error {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return fault.Mistakef("%s: got %q, want the address of a tracking server, as http://127.0.0.1:5000",
			fault.Key("mlflow"), secret.Without(o.URL))
	}
	return nil
}

// state is the contents of StateFile.
type state struct {
	URL        string `json:"url"`
	Experiment string `json:"experiment_id"`
	Run        string `json:"run_id"`
	// The last steps that were sent. A resumed run cuts its lines back to its checkpoint and then repeats what it has
	// said, which the server has.
	Step      int64 `json:"step"`
	Validated int64 `json:"validated"`
	Params    bool  `json:"params"`
}

// Sender sends a run. Close ends it.
type Sender struct {
	opt    Options
	client *http.Client
	tail   *jsonl.Tail
	st     state

	ready   bool // the run exists at the server and is running
	pending []metric
	upTo    state // what st is when pending has been sent
	away    bool  // the server did not answer last time, and it was said
	dead    error // it refused, for good
	unkept  bool  // it was said that state cannot be written

	stop   context.CancelFunc
	ending chan Status
	done   chan struct{}
}

type metric struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Time  int64   `json:"timestamp"`
	Step  int64   `json:"step"`
}

// Start begins to send a run. It does not wait for the server.
func Start(opt Options) (*Sender, error) {
	if err := opt.Check(); err != nil {
		return nil, err
	}
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Every, opt.Patience = cmp.Or(opt.Every, 2*time.Second), cmp.Or(opt.Patience, 10*time.Second)
	opt.URL = strings.TrimRight(opt.URL, "/")
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{
		opt: opt, client: &http.Client{Timeout: 20 * time.Second}, tail: jsonl.New(filepath.Join(opt.RunDir,
			rundir.ProgressFile)),
		st: state{URL: secret.Without(opt.URL), Step: -1, Validated: -1}, stop: stop, ending: make(chan Status,
			1), done: make(chan struct{}),
	}
	b, err := ordinary.Read(filepath.Join(opt.RunDir, StateFile), ordinary.Settings)
	var had state
	if err == nil && json.Unmarshal(b, &had) == nil && had.URL == s.st.URL && had.Run != "" {
		s.st = had
	}
	go s.loop(ctx)
	return s, nil
}

// Close sends what is left, for at most Options.Patience, and the run's status.
func (s *Sender) Close(status Status) {
	s.ending <- status
	select {
	case <-s.done:
	case <-time.After(s.opt.Patience):
		s.stop()
		<-s.done
	}
}

func (s *Sender) loop(ctx context.Context) {
	defer close(s.done)
	wait := s.opt.Every
	var status Status
	for {
		err := s.send(ctx)
		if err == nil && status != "" && s.dead == nil {
			err = s.update(ctx, status)
			if err == nil {
				return
			}
		}
		if s.dead != nil {
			return
		}
		if err != nil {
			if ctx.Err() != nil {
				s.opt.Say(
					"mlflow: the last lines are not sent, because %s does not answer; the same command with --resume sends them",
					s.st.URL)
				return
			}
			if !s.away {
				s.away = true
				s.opt.Say(
					"mlflow: %s does not answer (%v); the training goes on, and what the server misses is sent when it is back",
					s.st.URL, short(err))
			}
			wait = min(2*wait, 30*s.opt.Every)
			if status != "" {
				wait = s.opt.Every / 4
			}
		} else {
			if s.away {
				s.away = false
				s.opt.Say("mlflow: %s is back and has everything up to step %d", s.st.URL, max(0, s.st.Step))
			}
			wait = s.opt.Every
		}
		select {
		case status = <-s.ending:
		case <-time.After(wait):
		case <-ctx.Done():
		}
		if ctx.Err() != nil && err == nil {
			return
		}
	}
}

// short is an error without the address, which the sentence has.
func short(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// errFull ends the reading of a batch.
var errFull = errors.New("full")

// send sends all that is new.
func (s *Sender) send(ctx context.Context) error {
	if !s.ready {
		if _, err := os.Stat(s.opt.RunDir); err != nil {
			return nil //nolint:nilerr // the training has not made it yet
		}
		if err := s.open(ctx); err != nil {
			return s.judge(err)
		}
		s.ready = true
	}
	for {
		if len(s.pending) == 0 {
			s.upTo = s.st
			_, err := s.tail.Next(func(_ int, line []byte) error {
				s.take(line)
				if len(s.pending) > maxMetrics/2 {
					return errFull
				}
				return nil
			})
			if err != nil && !errors.Is(err, errFull) {
				return nil //nolint:nilerr // a file that cannot be read now is read next time
			}
		}
		if len(s.pending) == 0 {
			return nil
		}
		n := min(len(s.pending), maxMetrics)
		if err := s.post(ctx, "runs/log-batch", map[string]any{"run_id": s.st.Run, "metrics": s.pending[:n]}, nil); err !=
			nil {
			return s.judge(err)
		}
		if s.pending = s.pending[n:]; len(s.pending) > 0 {
			continue
		}
		s.st = s.upTo
		s.keep()
	}
}

// judge decides whether an error is for good.
func (s *Sender) judge(err error) error {
	var r *refusal
	if errors.As(err, &r) && r.status/100 == 4 && r.status != http.StatusTooManyRequests &&
		r.status != http.StatusRequestTimeout {
		s.dead = err
		s.opt.Say("mlflow: %s refuses: %v; nothing more is sent, and the training goes on", s.st.URL, err)
	}
	return err
}

// take adds the numbers of a line that the server does not have.
func (s *Sender) take(line []byte) {
	var l rundir.Line
	if json.Unmarshal(line, &l) != nil {
		return
	}
	now := s.opt.Now().UnixMilli()
	add := func(key string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.pending = append(s.pending, metric{key, v, now, l.Step})
		}
	}
	if l.Eval != nil {
		if l.Step > s.upTo.Validated {
			s.upTo.Validated = l.Step
			at := l.Eval.At(l.Step)
			add(strings.ReplaceAll(at.Metric, " ", "_"), at.Value) // MLflow takes no blanks
		}
		return
	}
	if l.Step <= s.upTo.Step {
		return
	}
	s.upTo.Step = l.Step
	for key, v := range map[string]*float64{"rollout/ep_rew_mean": l.Return, "rollout/ep_len_mean": l.Length} {
		if v != nil {
			add(key, *v)
		}
	}
	add("time/iterations", float64(l.Updates))
	add("rollout/episodes", float64(l.Episodes))
	for k, v := range l.Info {
		add("rollout/"+k, v)
	}
	for k, v := range l.Learn {
		if !strings.Contains(k, "/") {
			k = "train/" + k
		}
		add(k, v)
	}
	if l.Timing != nil {
		add("time/fps", l.Timing.PerSecond)
		add("time/time_elapsed", l.Timing.Wall)
	}
	slices.SortFunc(s.pending, func(a, b metric) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), strings.Compare(a.Key, b.Key))
	})
}

// open finds or makes the experiment and the run.
func (s *Sender) open(ctx context.Context) error {
	if s.st.Run != "" {
		err := s.post(ctx, "runs/update", map[string]any{"run_id": s.st.Run, "status": "RUNNING"}, nil)
		var r *refusal
		if errors.As(err, &r) && r.code == "RESOURCE_DOES_NOT_EXIST" {
			s.st = state{URL: s.st.URL, Step: -1, Validated: -1} // it was removed there: all is sent again
			s.tail = jsonl.New(s.tail.Path())
		} else if err != nil {
			return err
		}
	}
	if s.st.Run == "" {
		if err := s.create(ctx); err != nil {
			return err
		}
	}
	return s.params(ctx)
}

// create makes the run.
func (s *Sender) create(ctx context.Context) error {
	id, err := s.experiment(ctx)
	if err != nil {
		return err
	}
	tags := []map[string]string{{"key": "mlflow.source.name", "value": "gymctl train"},
		{"key": "mlflow.source.type", "value": "LOCAL"}}
	for _, k := range slices.Sorted(maps.Keys(s.opt.Tags)) {
		tags = append(tags, map[string]string{"key": k, "value": s.opt.Tags[k]})
	}
	var made struct {
		Run struct {
			Info struct {
				ID string `json:"run_id"`
			} `json:"info"`
		} `json:"run"`
	}
	if err := s.post(ctx, "runs/create",
		map[string]any{"experiment_id": id, "run_name": s.opt.Name, "start_time": s.opt.Now().UnixMilli(), "tags": tags},
		&made); err != nil {
		return err
	}
	if made.Run.Info.ID == "" {
		return &refusal{status: http.StatusBadRequest,
			text: "its answer to runs/create has no run_id: it is no tracking server of MLflow"}
	}
	s.st.Experiment, s.st.Run = id, made.Run.Info.ID
	s.keep()
	return nil
}

// params sends the configuration, once.
func (s *Sender) params(ctx context.Context) error {
	if s.st.Params {
		return nil
	}
	for params := range slices.Chunk(s.opt.Params, maxParams) {
		var list []map[string]string
		for _, p := range params {
			v := p[1]
			if r := []rune(v); len(r) > maxValue {
				v = string(r[:maxValue])
			}
			list = append(list, map[string]string{"key": p[0], "value": v})
		}
		if err := s.post(ctx, "runs/log-batch", map[string]any{"run_id": s.st.Run, "params": list}, nil); err != nil {
			return err
		}
	}
	s.st.Params = true
	s.keep()
	return nil
}

// experiment returns the id of the experiment, and makes it if need be.
func (s *Sender) experiment(ctx context.Context) (string, error) {
	var made struct {
		ID string `json:"experiment_id"`
	}
	err := s.post(ctx, "experiments/create", map[string]any{"name": s.opt.Experiment}, &made)
	var r *refusal
	if errors.As(err, &r) && r.code == "RESOURCE_ALREADY_EXISTS" {
		var have struct {
			Experiment struct {
				ID    string `json:"experiment_id"`
				Stage string `json:"lifecycle_stage"`
			} `json:"experiment"`
		}
		if err := s.get(ctx, "experiments/get-by-name?experiment_name="+url.QueryEscape(s.opt.Experiment), &have); err !=
			nil {
			return "", err
		}
		if have.Experiment.Stage == "deleted" {
			return "", &refusal{status: http.StatusBadRequest,
				text: fmt.Sprintf("experiment %q is deleted; restore it there, or name another", s.opt.Experiment)}
		}
		return have.Experiment.ID, nil
	}
	if err == nil && made.ID == "" {
		return "", &refusal{status: http.StatusBadRequest,
			text: "its answer to experiments/create has no experiment_id: it is no tracking server of MLflow"}
	}
	return made.ID, err
}

func (s *Sender) update(ctx context.Context, status Status) error {
	if !s.ready {
		return nil // nothing was trained
	}
	return s.judge(s.post(ctx, "runs/update",
		map[string]any{"run_id": s.st.Run, "status": status, "end_time": s.opt.Now().UnixMilli()}, nil))
}

// keep notes what the server has. A disk that is full does not end the sending: a run that is resumed may then send
// some lines again.
func (s *Sender) keep() {
	b, err := json.Marshal(s.st)
	if err == nil {
		err = safefile.Write(filepath.Join(s.opt.RunDir, StateFile), append(b, '\n'))
	}
	if err != nil && !s.unkept {
		s.unkept = true
		s.opt.Say("mlflow: what was sent cannot be noted: %v", err)
	}
}

// refusal is an answer that is not 200.
type refusal struct {
	status     int
	code, text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func (s *Sender) post(ctx context.Context, path string, body, reply any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.do(ctx, http.MethodPost, path, bytes.NewReader(b), reply)
}

func (s *Sender) get(ctx context.Context, path string, reply any) error {
	return s.do(ctx, http.MethodGet, path, nil, reply)
}

func (s *Sender) do(ctx context.Context, method, path string, body io.Reader, reply any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.opt.URL+"/api/2.0/mlflow/"+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.opt.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.opt.Token)
	}
	a, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		out := &refusal{status: a.StatusCode, text: a.Status}
		var said struct {
			Code    string `json:"error_code"`
			Message string `json:"message"`
		}
		if json.Unmarshal(b, &said) == nil && said.Message != "" {
			out.code, out.text = said.Code, fmt.Sprintf("%s: %s", a.Status, said.Message)
		}
		return out
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(b, reply); err != nil {
		return &refusal{status: http.StatusBadRequest, text: "its answer is no JSON: it is no tracking server of MLflow"}
	}
	return nil
}
