package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"clustergym/agents/imitate"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// recall gives the lessons what the run has recorded, and has them keep what they record. An episode that a crash cut
// off is removed from the file and recorded again. A run that has no recording yet begins with that of
// train.imitate_from.
func (t *training) recall() error {
	name := filepath.Join(t.opt.RunDir, rundir.RecordingFile)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && len(t.borrowed) > 0 {
		if err := safefile.Write(name, t.borrowed); err != nil {
			return err
		}
	}
	plays, size, err := t.recording(name)
	if err != nil {
		return err
	}
	if i, err := os.Stat(name); err == nil && i.Size() > size {
		if err := os.Truncate(name, size); err != nil {
			return err
		}
	}
	t.lessons.Recall(plays)
	var buf []byte
	t.lessons.Keep = func(p *imitate.Play) error {
		var f *os.File
		err := t.wait.Do(name, func() (err error) {
			f, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			return err
		})
		if err != nil {
			return err
		}
		buf = p.Append(buf[:0])
		_, err = t.wait.Writer(name, f).Write(buf)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		return nil
	}
	return nil
}

// mostRecording bounds a file of a run: more does not fit into memory.
const mostRecording = 64 << 30

// recording returns the whole episodes of a file, none if there is no file, and their size.
func (t *training) recording(name string) (plays []imitate.Play, size int64, err error) {
	data, err := ordinary.Read(name, mostRecording)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	at := 0
	for at < len(data) {
		p, n, err := imitate.Read(data[at:], t.spec)
		if errors.Is(err, imitate.ErrCut) {
			break
		}
		if err != nil {
			return nil, 0, fault.Mistakef("%s: %w; remove the file to record anew", name, err)
		}
		plays, at = append(plays, p), at+n
	}
	return plays, int64(at), nil
}

// borrow reads the episodes in which the policy itself played from the recording of train.imitate_from, if there is
// such a run.
func (t *training) borrow() error {
	const key = "train.imitate_from"
	from := t.cfg.Train.ImitateFrom
	if from == "" {
		return nil
	}
	var other config.Config
	var err error
	recording := filepath.Join(from, rundir.RecordingFile)
	if lent := t.opt.Lent; lent == nil {
		other, err = rundir.ReadConfig(from)
	} else {
		recording = lent.Recording
		other, err = readLent(lent.Config)
	}
	if err != nil {
		return fault.Mistakef("%s: %w", key, err)
	}
	for _, k := range []struct {
		key  string
		a, b any
	}{
		{"train.imitate", other.Train.Imitate, t.cfg.Train.Imitate}, {"trace", other.Trace, t.cfg.Trace},
		{"cluster", other.Cluster, t.cfg.Cluster},
		{"env", other.Env, t.cfg.Env}, {"eval.rollout", other.Eval.Rollout, t.cfg.Eval.Rollout},
		{"eval.hold", other.Eval.Hold, t.cfg.Eval.Hold},
		{"eval.index", other.Eval.Index, t.cfg.Eval.Index}, {"the discount", other.Gamma(), t.cfg.Gamma()},
	} {
		if !reflect.DeepEqual(k.a, k.b) {
			return fault.Mistakef("%s: got %q, want a run that imitates the same policy in the same environment: %s differs",
				key, from, k.key)
		}
	}
	plays, _, err := t.recording(recording)
	if err != nil {
		return err
	}
	if len(plays) == 0 {
		return fault.Mistakef("%s: got %q, want a run that has recorded something", key, from)
	}
	for i := range plays {
		if plays[i].Taught() {
			t.borrowed = plays[i].Append(t.borrowed)
		}
	}
	return nil
}

// readLent reads the configuration of a run from a copy of its file.
func readLent(name string) (c config.Config, err error) {
	b, err := ordinary.Read(name, ordinary.Settings)
	if err != nil {
		return c, err
	}
	return config.Decode(rundir.ConfigFile, b)
}
