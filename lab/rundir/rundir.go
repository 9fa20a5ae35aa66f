package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/shortage"
	"clustergym/internal/tfevents"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
)

// The names in a run directory.
const (
	ConfigFile   = "config.yaml"
	ProgressFile = "progress.jsonl"
	// RecordingFile has the play that the run's agent imitated, if it did.
	RecordingFile = "imitation.bin"
	BestFile      = "best.json"
	EvalFile      = "eval/test.json"
	Checkpoints   = "checkpoints"
)

// BestMetric is the geometric mean over the validation windows of each window's mean JCT. Windows differ by a factor of
// a hundred, so an arithmetic mean over a few of them would depend on the one or two most crowded ones.
const BestMetric = "validation/jct_s geometric mean"

// BestReturn is the mean return over the validation episodes of a problem with a known answer.
const BestReturn = "validation/return mean"

// HigherIsBetter returns whether higher values of a metric of best.json are better.
func HigherIsBetter(metric string) bool {
	m, ok := MetricOf(metric)
	return metric == BestReturn || ok && m.Higher
}

// ShowScore returns a value of a metric of best.json as tables show it.
func ShowScore(metric string, v float64) string {
	if m, ok := MetricOf(metric); ok {
		return m.Show(v)
	}
	return report.Decimals(v)
}

// MetricOf returns the environment's metric that a metric of best.json is a mean of; ok is false for a return.
func MetricOf(metric string) (m envs.Metric, ok bool) {
	for _, id := range envs.IDs() {
		if m := envs.Find(id).Metric; m.Of != nil && strings.HasPrefix(metric, "validation/"+m.Key+" ") {
			return m, true
		}
	}
	return m, false
}

// BestCheckpoint names the best checkpoint so far.
type BestCheckpoint struct {
	Step   int64   `json:"step"`
	Metric string  `json:"metric"` // BestMetric, BestReturn, or validation/METRIC with the mean that it is
	Value  float64 `json:"value"`
}

// Dir is a run directory open for writing.
type Dir struct {
	path     string
	progress *os.File
	events   *tfevents.Writer
	eventsAt *os.File
	wait     *shortage.Wait
	lines    io.Writer // to progress
	now      Clock
	Tags     string
	saved    bool // a checkpoint, since the directory was opened
	Last     Line // the last record of a resumed run, zero without one
	// Validated is the step of the last validation of a resumed run, -1 without one.
	Validated int64
}

// Create makes a new run directory with the effective configuration and locks it. If the directory already holds a run,
// or parts of one, the error is the user's mistake.
func Create(path string, cfg *config.Config) (unlock func(), err error) {
	// Checked before anything is made, and again under the lock.
	if err := Vacant(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(path, Checkpoints), 0o755); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if unlock, err = Lock(path); err != nil {
		return nil, err
	}
	if err = Vacant(path); err == nil {
		err = WriteConfig(path, cfg)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Vacant returns an error if a new run cannot begin in path.
func Vacant(path string) error {
	if i, err := os.Stat(path); err == nil && !i.IsDir() {
		return fault.Mistakef("run directory %s: there is a file of that name", path)
	}
	if _, err := os.Stat(filepath.Join(path, ConfigFile)); err == nil {
		return fault.Mistakef("%s holds a run already; continue it with %s %s, or name another %s", path, fault.Key("resume"),
			path, fault.Key("run-dir"))
	}
	steps, err := checkpoint.List(filepath.Join(path, Checkpoints))
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	if _, err := os.Stat(filepath.Join(path, ProgressFile)); err == nil || len(steps) > 0 {
		return fault.Mistakef("%s holds what is left of a run, without its %s; name another %s", path, ConfigFile,
			fault.Key("run-dir"))
	}
	return nil
}

// WriteConfig writes the effective configuration.
func WriteConfig(path string, cfg *config.Config) error {
	b, err := configs.Encode(cfg)
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(path, ConfigFile), b)
}

// ReadConfig returns the configuration of the run in dir.
func ReadConfig(dir string) (config.Config, error) {
	cfg := config.Default()
	if i, err := os.Stat(dir); err != nil {
		return cfg, fault.Mistakef("run directory %s: %v", dir, ordinary.Reason(err))
	} else if !i.IsDir() {
		return cfg, fault.Mistakef("run directory %s: it is a file", dir)
	}
	data, err := ordinary.Read(filepath.Join(dir, ConfigFile), ordinary.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, fault.Mistakef("%s holds no %s: it is not a run directory", dir, ConfigFile)
	}
	if err == nil {
		cfg, err = config.Decode(ConfigFile, data)
	}
	if err != nil {
		return cfg, &fault.Mistake{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	return cfg, nil
}

// Open opens a run directory for writing from step on. For a resumed run it cuts later steps off progress.jsonl and
// tells TensorBoard to forget them, makes best.json agree with the remaining lines, and removes temporary files that a
// crash left behind. What is written afterwards waits, as wait says, while the disk is full.
func Open(path string, step int64, resumed bool, tags string, now Clock, wait *shortage.Wait) (dir *Dir, err error) {
	r := &Dir{path: path, now: now, Tags: tags, Validated: -1, wait: wait}
	defer func() {
		if err != nil {
			for _, f := range []*os.File{r.progress, r.eventsAt} {
				if f != nil {
					_ = f.Close() // report the first fault only
				}
			}
		}
	}()
	for _, f := range []string{ConfigFile, ProgressFile, BestFile, EvalFile} {
		if err := os.Remove(safefile.Aside(filepath.Join(path, filepath.FromSlash(f)))); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	name := filepath.Join(path, ProgressFile)
	kept, err := cutProgress(name, step)
	if err != nil {
		return nil, err
	}
	if r.progress, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	r.lines = wait.Writer(name, r.progress)
	for _, l := range kept {
		if l.Eval == nil {
			r.Last = l
		} else {
			r.Validated = l.Step
		}
	}
	if err := restoreBest(path, kept); err != nil {
		return nil, err
	}
	if r.eventsAt, err = createEvents(path, now()); err != nil {
		return nil, err
	}
	purge := int64(0)
	if resumed {
		purge = step + 1 // keep what step itself reported
	}
	r.events, err = tfevents.New(wait.Writer(r.eventsAt.Name(), r.eventsAt), now(), purge)
	return r, err
}

// createEvents makes the next event file. TensorBoard reads event files in the order of their names, so the new name
// must sort after all others, even if the clock was set back.
func createEvents(path string, now time.Time) (*os.File, error) {
	const prefix = "events.out.tfevents."
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	at, last := now.Unix(), ""
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), prefix); ok {
			last = max(last, e.Name())
			first, _, _ := strings.Cut(name, ".")
			if t, err := strconv.ParseInt(first, 10, 64); err == nil {
				at = max(at, t)
			}
		}
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s%010d.%s.%04d", prefix, at, host, i)
		if name <= last {
			if i == 9999 {
				i, at = -1, at+1
			}
			continue
		}
		return os.OpenFile(filepath.Join(path, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
}

// mostProgress bounds progress.jsonl: a training of years has less.
const mostProgress = 4 << 30

// ReadProgress returns the whole lines of a run's progress.jsonl, none if it has not begun. The run may be going on.
func ReadProgress(dir string) ([]Line, error) {
	b, err := ordinary.Read(filepath.Join(dir, ProgressFile), mostProgress)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	lines, _ := wholeLines(b, math.MaxInt64)
	return lines, nil
}

// wholeLines returns the lines of b up to the first that is broken or of a later step, and how many bytes they have.
func wholeLines(b []byte, step int64) (lines []Line, size int) {
	for row := range bytes.Lines(b) {
		var l Line
		if row[len(row)-1] != '\n' || json.Unmarshal(row, &l) != nil || l.Step > step {
			break
		}
		lines = append(lines, l)
		size += len(row)
	}
	return lines, size
}

// cutProgress removes the lines of later steps and an incomplete last line, and returns the others.
func cutProgress(name string, step int64) (kept []Line, err error) {
	b, err := ordinary.Read(name, mostProgress)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept, size := wholeLines(b, step)
	if size == len(b) {
		return kept, nil
	}
	return kept, safefile.Write(name, b[:size])
}

// WholeCheckpoints refuses a run in which a checkpoint lacks its manifest. A crash cannot cause that, because
// checkpoints are written elsewhere and renamed, so a person has to look: continuing from an earlier checkpoint would
// overwrite the later ones silently.
func WholeCheckpoints(root string) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 63); err != nil {
			continue
		}
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err != nil {
			return fault.Mistakef("%s has no %s and is no whole checkpoint; remove it to go on without it", dir,
				checkpoint.ManifestName)
		}
	}
	return nil
}

// Reported refuses a run whose progress.jsonl lacks the validation that best.json names: continuing would forget which
// checkpoint was the best.
func Reported(path string, step int64) error {
	b, ok, err := ReadBest(path)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	if !ok || b.Step > step {
		return nil
	}
	data, err := ordinary.Read(filepath.Join(path, ProgressFile), mostProgress)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fault.Mistake{Err: err}
	}
	for row := range bytes.Lines(data) {
		var l Line
		if json.Unmarshal(row, &l) == nil && l.Eval != nil && l.Eval.Best && l.Step == b.Step {
			return nil
		}
	}
	return fault.Mistakef(
		"%s: %s lacks the validation at step %d that %s names: part of the file is lost; put it back, or remove %s to go "+
			"on without a best checkpoint",
		path, ProgressFile, b.Step, BestFile, BestFile)
}

// restoreBest makes best.json agree with the validations of a resumed run: a crash can happen between the writes of
// progress.jsonl, the checkpoint and best.json.
func restoreBest(path string, kept []Line) error {
	var b BestCheckpoint
	found := false
	for _, l := range kept {
		if l.Eval != nil && l.Eval.Best {
			b, found = l.Eval.At(l.Step), true
		}
	}
	if found {
		return WriteBest(path, b)
	}
	if err := os.Remove(filepath.Join(path, BestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close closes the open files.
func (r *Dir) Close() error {
	return errors.Join(r.progress.Close(), r.eventsAt.Close())
}

// Append appends one object to progress.jsonl.
func (r *Dir) Append(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.lines.Write(append(b, '\n'))
	return err
}

// Scalars writes numbers to TensorBoard's event file.
func (r *Dir) Scalars(step int64, s []tfevents.Scalar) error {
	return r.events.Write(r.now(), step, s...)
}

// Params writes the effective configuration to it as hyper-parameters.
func (r *Dir) Params(cfg *config.Config) error {
	params, err := Params(cfg)
	if err != nil {
		return err
	}
	return r.events.Params(r.now(), params)
}

// Ended writes to it that the run has come to its end.
func (r *Dir) Ended() error { return r.events.Ended(r.now()) }

// Text writes text to it.
func (r *Dir) Text(step int64, tag, words string) error {
	return r.events.Text(r.now(), step, tag, words)
}

// SaveCheckpoint writes a checkpoint unless it exists. That of step 0 is written once more in every process, because a
// run that imitates can be interrupted there several times.
func (r *Dir) SaveCheckpoint(m checkpoint.Meta, parts []agents.Part) error {
	dir := checkpoint.Dir(filepath.Join(r.path, Checkpoints), m.Step)
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err == nil && (m.Step > 0 || r.saved) {
		return nil
	}
	r.saved = true
	// Reports up to this step must be as durable as the checkpoint, because a resumed run does not repeat them.
	return r.wait.Do(dir, func() error {
		if err := r.progress.Sync(); err != nil {
			return err
		}
		return checkpoint.Save(dir, m, parts...)
	})
}

// Prune removes all checkpoints but the newest ones and the best one.
func (r *Dir) Prune(keep int) error {
	if keep == 0 {
		return nil
	}
	return r.wait.Do(filepath.Join(r.path, Checkpoints), func() error { return r.prune(keep) })
}

func (r *Dir) prune(keep int) error {
	var spare []string
	if b, ok, err := ReadBest(r.path); err != nil {
		return err
	} else if ok {
		spare = append(spare, checkpoint.Dir(filepath.Join(r.path, Checkpoints), b.Step))
	}
	_, err := checkpoint.Prune(filepath.Join(r.path, Checkpoints), keep, spare...)
	return err
}

// ReadBest reads best.json of a run directory. ok is false if the directory does not have one.
func ReadBest(dir string) (b BestCheckpoint, ok bool, err error) {
	data, err := ordinary.Read(filepath.Join(dir, BestFile), ordinary.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return b, false, nil
	}
	if err != nil {
		return b, false, err
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, false, fmt.Errorf("%s: %w", filepath.Join(dir, BestFile), err)
	}
	return b, true, nil
}

// WriteFile replaces a file below the run directory, and makes its folder if necessary.
func (r *Dir) WriteFile(name string, data []byte) error {
	name = filepath.Join(r.path, filepath.FromSlash(name))
	return r.wait.Do(name, func() error {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return safefile.Write(name, data)
	})
}

// WriteBest replaces best.json.
func (r *Dir) WriteBest(b BestCheckpoint) error {
	return r.wait.Do(filepath.Join(r.path, BestFile), func() error { return WriteBest(r.path, b) })
}

// WriteBest replaces best.json of a run directory.
func WriteBest(dir string, b BestCheckpoint) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(dir, BestFile), append(data, '\n'))
}

// Lock keeps other processes from training in the run directory at path until unlock is called or the process
// ends, even by a crash. On systems without file locks it does nothing.
func Lock(path string) (unlock func(), err error) {
	unlock, err = safefile.Lock(path)
	switch {
	case errors.Is(err, safefile.ErrLocked):
		return nil, fault.Mistakef("another process is training in %s", path)
	case err != nil:
		return nil, &fault.Mistake{Err: err}
	}
	return unlock, nil
}

// CheckpointDir finds a checkpoint: dir itself, or in a run directory the best one, else the newest. run is the run
// directory of the checkpoint.
func CheckpointDir(dir string) (ckpt, run string, err error) {
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err == nil {
		abs, err := filepath.Abs(dir)
		return dir, filepath.Dir(filepath.Dir(abs)), err
	}
	if _, err := os.Stat(filepath.Join(dir, ConfigFile)); err != nil {
		return "", "", fault.Mistakef("%s is neither a checkpoint (no %s) nor a run directory (no %s)", dir,
			checkpoint.ManifestName, ConfigFile)
	}
	if b, ok, err := ReadBest(dir); err != nil {
		return "", "", &fault.Mistake{Err: err}
	} else if ok {
		return checkpoint.Dir(filepath.Join(dir, Checkpoints), b.Step), dir, nil
	}
	ckpt, err = checkpoint.Latest(filepath.Join(dir, Checkpoints))
	if err != nil {
		return "", "", &fault.Mistake{Err: err}
	}
	return ckpt, dir, nil
}

// Default returns the default run directory: runs/NAME-TIME.
func Default(name string, now time.Time) string {
	return filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
}

// Clock returns the wall time; tests replace it.
type Clock func() time.Time
