package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"clustergym/agents/imitate"
	"clustergym/experiments/rundir"
	"clustergym/experiments/workload"
)

// recall gives the lessons what the run has recorded, and has them keep what they record. An episode that a crash cut off is
// removed from the file and recorded again.
func (t *training) recall() error {
	name := filepath.Join(t.opt.RunDir, rundir.RecordingFile)
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var plays []imitate.Play
	size := 0
	for size < len(data) {
		p, n, err := imitate.Read(data[size:], t.spec)
		if errors.Is(err, imitate.ErrCut) {
			break
		}
		if err != nil {
			return workload.Mistake("%s: %w; remove the file to record anew", name, err)
		}
		plays, size = append(plays, p), size+n
	}
	if size < len(data) {
		if err := os.Truncate(name, int64(size)); err != nil {
			return err
		}
	}
	t.lessons.Recall(plays)
	var buf []byte
	t.lessons.Keep = func(p *imitate.Play) error {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		buf = p.Append(buf[:0])
		_, err = f.Write(buf)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		return nil
	}
	return nil
}
