package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"clustergym/agents/checkpoint"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/arena"
	"clustergym/lab/brought"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// TrainKind is the kind of the tasks that are trainings of one run.
const TrainKind = "train"

// trainFormat is the version of such tasks.
const trainFormat = 1

// trainTask is the input of such a task. Its needs are the files of brought.Files by their keys, and where there are
// any "run", the run directory to go on from, and "recording", what train.imitate_from has recorded.
type trainTask struct {
	Format int               `json:"format"`
	Run    string            `json:"run"`    // name of the run directory, by which tables call its checkpoints
	Config string            `json:"config"` // effective, YAML
	Files  map[string]string `json:"files,omitempty"`
	Until  int64             `json:"until,omitempty"`
	NoEval bool              `json:"no_eval,omitempty"`
	Tags   string            `json:"tags"`
}

// trainValue is the value of its result.
type trainValue struct {
	Result TrainResult           `json:"result"` // without Eval, which is a file of the run directory
	Best   rundir.BestCheckpoint `json:"best"`
}

// TrainOn is Train on whichever machine of q takes it first, this one included; nil q = this one. The run directory
// comes back complete. name is what people read of it. Of opt's hooks only those that are called at the end are heeded
// for trainings on other machines.
func TrainOn(ctx context.Context, q *workqueue.Coordinator, name string, cfg config.Config,
	opt TrainOptions) (*TrainResult, error) {
	if q == nil {
		return Train(ctx, cfg, opt)
	}
	t, err := trainTaskOf(ctx, q, name, &cfg, &opt)
	if err != nil {
		return nil, err
	}
	var r *TrainResult
	err = q.Do(ctx, t, func(ctx context.Context, workers int) (err error) {
		here := opt
		here.Workers = workers
		if here.Resume, err = saved(ctx, q, t.Digest, &opt); err != nil {
			return err
		}
		r, err = Train(ctx, cfg, here)
		return err
	}, func(res *workqueue.Result) error {
		r, err = arrived(ctx, q, res, &cfg, &opt)
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; what was trained is saved", fault.ErrInterrupted)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// saved puts what another machine has saved of a task into the run directory, if there is anything. It returns whether
// the directory holds a run to go on with.
func saved(ctx context.Context, q *workqueue.Coordinator, digest string, opt *TrainOptions) (resume bool, err error) {
	ok, err := arriving(opt.RunDir, func(aside string) (bool, error) { return q.Restore(ctx, digest, aside) })
	return ok || opt.Resume, err
}

// arriving puts the run directory dir, which fetch makes in a folder aside, in its place, whole or not at all; ok is
// what fetch returns, false = there is none.
func arriving(dir string, fetch func(aside string) (ok bool, err error)) (ok bool, err error) {
	aside := dir + ".arriving"
	if err := errors.Join(os.RemoveAll(aside), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if ok, err = fetch(aside); err != nil || !ok {
		return false, err
	}
	return true, errors.Join(os.RemoveAll(dir), os.Rename(filepath.Join(aside, filepath.Base(dir)), dir))
}

// trainTaskOf returns a training as a task.
func trainTaskOf(ctx context.Context, q *workqueue.Coordinator, name string, cfg *config.Config,
	opt *TrainOptions) (t workqueue.Task, err error) {
	text, err := configs.Encode(cfg)
	if err != nil {
		return t, err
	}
	needs := map[string]string{}
	in := trainTask{Format: trainFormat, Run: filepath.Base(opt.RunDir), Config: string(text), Until: opt.Until,
		NoEval: opt.NoEval, Tags: opt.Tags}
	files, err := brought.Files(cfg)
	if err != nil {
		return t, err
	}
	if in.Files, err = brought.Put(ctx, q, files, needs); err != nil {
		return t, err
	}
	if from := cfg.Train.ImitateFrom; from != "" {
		for need, path := range map[string]string{"recording": rundir.RecordingFile, "recorded": rundir.ConfigFile} {
			if needs[need], err = q.Put(ctx, filepath.Join(from, path)); err != nil {
				return t, fault.Mistakef("train.imitate_from: %v", ordinary.Reason(err))
			}
		}
	}
	if opt.Resume {
		if needs["run"], err = q.Put(ctx, opt.RunDir); err != nil {
			return t, err
		}
	}
	return workqueue.NewTask(TrainKind, name, in, needs)
}

// arrived takes over the run directory of a training on another machine.
func arrived(ctx context.Context, q *workqueue.Coordinator, res *workqueue.Result, cfg *config.Config,
	opt *TrainOptions) (*TrainResult, error) {
	var v trainValue
	if err := json.Unmarshal(res.Value, &v); err != nil {
		return nil, fmt.Errorf("the result of worker %s cannot be read: %w", res.Worker, err)
	}
	_, err := arriving(opt.RunDir, func(aside string) (bool, error) {
		if err := q.Unpack(ctx, res.Files, aside); err != nil {
			return false, err
		}
		if err := asAsked(filepath.Join(aside, filepath.Base(opt.RunDir)), cfg); err != nil {
			return false, fmt.Errorf("the run of worker %s: %w", res.Worker, err)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	r := v.Result
	r.Best = v.Best
	if r.Checkpoint, _, err = rundir.CheckpointDir(opt.RunDir); err != nil || opt.NoEval || opt.Until > 0 {
		return &r, err
	}
	b, err := ordinary.Read(filepath.Join(opt.RunDir, filepath.FromSlash(rundir.EvalFile)), ordinary.Document)
	if err != nil {
		return nil, fmt.Errorf("the run of worker %s has no evaluation: %w", res.Worker, err)
	}
	r.Eval, err = report.Read(b)
	return &r, err
}

// asAsked returns an error unless the run directory dir has the configuration cfg. Later commands take from it which
// files to open.
func asAsked(dir string, cfg *config.Config) error {
	asked, err := configs.Encode(cfg)
	if err != nil {
		return err
	}
	got, err := ordinary.Read(filepath.Join(dir, rundir.ConfigFile), ordinary.Settings)
	if err == nil && !bytes.Equal(got, asked) {
		err = fmt.Errorf("its %s is not the configuration that was asked for", rundir.ConfigFile)
	}
	return err
}

// TrainHandler returns what a worker does with trainings.
func TrainHandler() workqueue.Handler {
	h := &trainHandler{}
	return h.do
}

// trainHandler trains. It keeps the last scenario, which the seeds of a run and most trials of a sweep have in common.
type trainHandler struct {
	mu       sync.Mutex
	key      string
	scenario *arena.Scenario
}

func (h *trainHandler) do(ctx context.Context, j *workqueue.Job) (out workqueue.Outcome, err error) {
	var in trainTask
	if err := json.Unmarshal(j.Task.Input, &in); err != nil {
		return out, fmt.Errorf("the task cannot be read: %w", err)
	}
	if in.Format != trainFormat {
		return out, fmt.Errorf("the task has the format %d, want %d", in.Format, trainFormat)
	}
	cfg, err := config.Decode(rundir.ConfigFile, []byte(in.Config))
	if err != nil {
		return out, err
	}
	if err := cfg.Validate(); err != nil { // the coordinator has checked its own
		return out, &fault.Mistake{Err: err}
	}
	scenario, err := h.scenarioOf(ctx, j, &in, &cfg)
	if err != nil {
		return out, err
	}
	if in.Run != filepath.Base(in.Run) || !filepath.IsLocal(in.Run) || in.Run == "." || strings.ContainsAny(in.Run, `/\`) {
		return out, fmt.Errorf("the task calls the run directory %q", in.Run)
	}
	dir := filepath.Join(j.Dir, in.Run)
	if _, err := os.Stat(filepath.Join(dir, rundir.ConfigFile)); errors.Is(err, fs.ErrNotExist) {
		// Nobody has saved anything of this task: it begins, or goes on from where the coordinator was.
		if err := os.RemoveAll(dir); err != nil {
			return out, err
		}
		if from := j.Needs["run"]; from != "" {
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				return out, err
			}
		}
	}
	_, err = os.Stat(filepath.Join(dir, rundir.ConfigFile))
	opt := TrainOptions{
		RunDir: dir, Resume: err == nil, Workers: j.Workers, Scenario: scenario, Tags: in.Tags, NoEval: in.NoEval,
		Until: in.Until,
		Saved: j.Save,
		Tick:  func(p train.Progress) { j.Progress(p.Step, p.Steps) },
	}
	if cfg.Train.ImitateFrom != "" {
		opt.Lent = &Lent{Config: j.Needs["recorded"], Recording: j.Needs["recording"]}
		if opt.Lent.Config == "" || opt.Lent.Recording == "" {
			return out,
				errors.New(
					"the task names a run for train.imitate_from and has not brought it; a worker opens no file of its own for a task")
		}
	}
	r, err := Train(ctx, cfg, opt)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // it is saved
		}
		return out, err
	}
	v := trainValue{Result: *r, Best: r.Best}
	v.Result.Eval, v.Result.Checkpoint = nil, ""
	out.Value, out.Keep, out.Proof = v, true, []byte(cfg.Note())
	if cfg.Note() == "" { // else it cannot be repeated, and nothing proves that it was done well
		out.Proof, err = Fingerprint(dir)
	}
	return out, err
}

// scenarioOf returns the scenario of cfg, with the files that the job brought.
func (h *trainHandler) scenarioOf(ctx context.Context, j *workqueue.Job, in *trainTask,
	cfg *config.Config) (*arena.Scenario, error) {
	needs := map[string]string{}
	for key := range in.Files {
		needs[key] = j.Task.Needs[key]
	}
	key, err := json.Marshal([]any{cfg.Trace, cfg.Cluster, cfg.Env.ID, cfg.Env.Args, cfg.Env.Settings, needs})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scenario != nil && h.key == string(key) {
		return h.scenario, nil
	}
	w, err := arena.NewScenarioOf(ctx, cfg, j, in.Files)
	if err == nil {
		h.key, h.scenario = string(key), w
	}
	return w, err
}

// Fingerprint returns a SHA-256 of everything in a run directory that is the same whenever the run is repeated,
// interrupted or not: not of event files, what progress.jsonl says of time, and checkpoints other than the best and the
// last one, as an interruption adds one.
func Fingerprint(dir string) ([]byte, error) {
	keep := map[string]bool{}
	last, err := checkpoint.Latest(filepath.Join(dir, rundir.Checkpoints))
	if err != nil {
		return nil, err
	}
	keep[filepath.Base(last)] = true
	if best, ok, err := rundir.ReadBest(dir); err != nil {
		return nil, err
	} else if ok {
		keep[strconv.FormatInt(best.Step, 10)] = true
	}
	h := sha256.New()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "events.out.tfevents.") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if of, in := strings.CutPrefix(name, rundir.Checkpoints+"/"); in {
			if step, _, _ := strings.Cut(of, "/"); !keep[step] {
				return nil
			}
		}
		b, err := ordinary.Read(path, mostRecording)
		if err != nil {
			return err
		}
		if name == rundir.ProgressFile {
			if b, err = timeless(b); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		sum := sha256.Sum256(b)
		_, err = fmt.Fprintf(h, "%s %x\n", name, sum)
		return err
	})
	return h.Sum(nil), err
}

// timeless returns lines of JSON objects without their key timing.
func timeless(lines []byte) ([]byte, error) {
	var out bytes.Buffer
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var l map[string]json.RawMessage
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
		delete(l, "timing")
		b, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		out.Write(append(b, '\n'))
	}
}
