package experiments

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/internal/tfevents"
)

// The names in a run directory.
const (
	configFile   = "config.yaml"
	progressFile = "progress.jsonl"
	bestFile     = "best.json"
	evalFile     = "eval/test.json"
	checkpoints  = "checkpoints"
)

// bestMetric is the geometric mean over the validation windows of each window's mean JCT. Windows differ by a factor
// of a hundred, so an arithmetic mean over a few of them would choose by the one or two that are crowded most.
const bestMetric = "validation/jct_s geometric mean"

// best names the best checkpoint so far.
type best struct {
	Step   int64   `json:"step"`
	Metric string  `json:"metric"` // bestMetric
	Value  float64 `json:"value"`  // lower is better
}

// runDir is a run directory that is being written.
type runDir struct {
	path     string
	progress *os.File
	events   *tfevents.Writer
	eventsAt *os.File
	now      Clock
	tags     string
}

// createRun makes a new run directory with the effective configuration. A directory that holds a run already is
// the user's mistake.
func createRun(path string, cfg *Config) error {
	if _, err := os.Stat(filepath.Join(path, configFile)); err == nil {
		return mistake("%s holds a run already; continue it with --resume %s, or name another --run-dir", path, path)
	}
	if err := os.MkdirAll(filepath.Join(path, checkpoints), 0o755); err != nil {
		return &InputError{err}
	}
	b, err := configs.Encode(cfg)
	if err != nil {
		return err
	}
	return writeAside(filepath.Join(path, configFile), b)
}

// ReadRunConfig is the configuration of the run in dir.
func ReadRunConfig(dir string) (Config, error) {
	cfg := DefaultConfig()
	if _, err := os.Stat(dir); err != nil {
		return cfg, mistake("run directory %s: %v", dir, reason(err))
	}
	if err := configs.Decode(os.DirFS(dir), configFile, &cfg); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return cfg, mistake("%s holds no %s: it is not a run directory", dir, configFile)
		}
		return cfg, &InputError{fmt.Errorf("%s: %w", dir, err)}
	}
	return cfg, nil
}

// openRun opens a run directory for writing from step on. What progress.jsonl says of later steps is cut off, and
// TensorBoard is told so.
func openRun(path string, step int64, tags string, now Clock) (*runDir, error) {
	r := &runDir{path: path, now: now, tags: tags}
	name := filepath.Join(path, progressFile)
	if err := cutProgress(name, step); err != nil {
		return nil, err
	}
	var err error
	if r.progress, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if err := restoreBest(path, name); err != nil {
		return nil, err
	}
	t := now()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	for i := 0; ; i++ {
		// TensorBoard reads event files in the order of their names.
		n := filepath.Join(path, fmt.Sprintf("events.out.tfevents.%010d.%s.%d", t.Unix(), host, i))
		if r.eventsAt, err = os.OpenFile(n, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			break
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	r.events, err = tfevents.New(r.eventsAt, t, step > 0, step)
	return r, err
}

// cutProgress leaves out the lines of later steps, and half a line at the end.
func cutProgress(name string, step int64) error {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l struct {
			Step int64 `json:"step"`
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Step > step {
			break
		}
		kept.Write(lines.Bytes())
		kept.WriteByte('\n')
	}
	if kept.Len() == len(b) {
		return nil
	}
	return writeAside(name, kept.Bytes())
}

// restoreBest makes best.json agree with the validations that progress.jsonl holds: a crash can come between the
// checkpoint and the file that names it.
func restoreBest(path, progress string) error {
	data, err := os.ReadFile(progress)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b best
	found := false
	for row := range bytes.Lines(data) {
		var l line
		if json.Unmarshal(row, &l) == nil && l.Eval != nil && l.Eval.Best {
			b, found = best{l.Step, bestMetric, l.Eval.JCT}, true
		}
	}
	if found {
		return writeBest(path, b)
	}
	if err := os.Remove(filepath.Join(path, bestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *runDir) Close() error {
	return errors.Join(r.progress.Close(), r.eventsAt.Close())
}

// line appends one object to progress.jsonl.
func (r *runDir) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.progress.Write(append(b, '\n'))
	return err
}

// scalars writes to TensorBoard's event file.
func (r *runDir) scalars(step int64, s []tfevents.Scalar) error {
	return r.events.Write(r.now(), step, s...)
}

// saveCheckpoint writes one checkpoint, unless it is there already.
func (r *runDir) saveCheckpoint(m checkpoint.Meta, parts []agents.Part) (string, error) {
	dir := checkpoint.Dir(filepath.Join(r.path, checkpoints), m.Step)
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err == nil {
		return dir, nil
	}
	return dir, checkpoint.Save(dir, m, parts...)
}

// prune leaves the newest checkpoints and the best one.
func (r *runDir) prune(keep int) error {
	if keep == 0 {
		return nil
	}
	var spare []string
	if b, ok, err := readBest(r.path); err != nil {
		return err
	} else if ok {
		spare = append(spare, checkpoint.Dir(filepath.Join(r.path, checkpoints), b.Step))
	}
	_, err := checkpoint.Prune(filepath.Join(r.path, checkpoints), keep, spare...)
	return err
}

func readBest(dir string) (b best, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, bestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return b, false, nil
	}
	if err != nil {
		return b, false, err
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, false, fmt.Errorf("%s: %w", filepath.Join(dir, bestFile), err)
	}
	return b, true, nil
}

func writeBest(dir string, b best) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return writeAside(filepath.Join(dir, bestFile), append(data, '\n'))
}

// writeAside replaces a file by one written completely beside it, so that a crash leaves the old or the new.
func writeAside(name string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = io.Copy(f, bytes.NewReader(data)); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// CheckpointDir finds a checkpoint: dir itself, or of a run directory the best one, else the newest. run is the
// run directory it belongs to.
func CheckpointDir(dir string) (ckpt, run string, err error) {
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestName)); err == nil {
		abs, err := filepath.Abs(dir)
		return dir, filepath.Dir(filepath.Dir(abs)), err
	}
	if _, err := os.Stat(filepath.Join(dir, configFile)); err != nil {
		return "", "", mistake("%s is neither a checkpoint (no %s) nor a run directory (no %s)", dir, checkpoint.ManifestName, configFile)
	}
	if b, ok, err := readBest(dir); err != nil {
		return "", "", &InputError{err}
	} else if ok {
		return checkpoint.Dir(filepath.Join(dir, checkpoints), b.Step), dir, nil
	}
	ckpt, err = checkpoint.Latest(filepath.Join(dir, checkpoints))
	if err != nil {
		return "", "", &InputError{err}
	}
	return ckpt, dir, nil
}

// DefaultRunDir is where a run goes that is not told: runs/NAME-TIME.
func DefaultRunDir(name string, now time.Time) string {
	return filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
}

// number leaves what JSON cannot hold out.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// tag is the name under which TensorBoard shows a statistic, in the manner of Stable-Baselines3 or CleanRL.
func tag(family, group, name string) string {
	if family == "cleanrl" {
		switch group + "/" + name {
		case "rollout/ep_rew_mean":
			return "charts/episodic_return"
		case "rollout/ep_len_mean":
			return "charts/episodic_length"
		case "time/fps":
			return "charts/SPS"
		case "train/learning_rate":
			return "charts/learning_rate"
		}
		if group == "train" {
			return "losses/" + strings.TrimPrefix(name, "train/")
		}
	}
	return group + "/" + name
}
