package ddppo

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/traces"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

// Files of cells: the log, and its jobs as records of equal size, of which any window can be read.
const (
	logFile   = "log.swf.zst"
	indexFile = "jobs.bin"
)

// dataFiles are the names under which a recorded log is looked for in the folder of --data.
var dataFiles = []string{"ddppo.swf", "ddppo.swf.gz", "ddppo.swf.zst"}

// recorded returns the log in p's folder, "" if there is no --data.
func recorded(p study.Plan) (string, error) {
	if p.Data == "" {
		return "", nil
	}
	for _, name := range dataFiles {
		if st, err := os.Stat(filepath.Join(p.Data, name)); err == nil && st.Mode().IsRegular() {
			return filepath.Join(p.Data, name), nil
		}
	}
	return "", fault.Mistakef("data folder %s: it has none of %s, %s and %s", p.Data, dataFiles[0], dataFiles[1],
		dataFiles[2])
}

// write generates the log into path.
func (s *settings) write(ctx context.Context, b *study.Bench, path string) error {
	jobs, err := synth.NewHPC(s.Log, s.Seed)
	if err != nil {
		return err
	}
	o, err := workload.CreateFile(path)
	if err != nil {
		return err
	}
	defer o.Discard()
	done := 0
	header := swf.Header{"MaxProcs": strconv.Itoa(s.Log.Procs)}
	_, err = swf.Write(o, next(func(j *traces.Job) error {
		if done++; done%65536 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.Progress(int64(done), int64(s.Log.Jobs))
		}
		return jobs.Next(j)
	}), header)
	if err != nil {
		return err
	}
	return o.Commit()
}

// next is a stream of the jobs that a function gives.
type next func(j *traces.Job) error

// Next implements traces.Stream.
func (f next) Next(j *traces.Job) error { return f(j) }

// log is an SWF log that is read from its file while it is played. Jobs without a requested time ask for their run
// time.
type log struct {
	*workload.Trace
	procs int
}

// openLog opens the log at path. Errors name the file, and of a broken line its number.
func openLog(ctx context.Context, path string) (*log, error) {
	c := workload.DefaultTraceConfig()
	c.File, c.Format = path, workload.FormatSWF
	t, err := workload.OpenTrace(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &log{t, t.Info().Procs}
	if l.procs < 2 {
		_ = t.Close() // it was read only
		return nil,
			fault.Mistakef("log %s: its header has no MaxProcs of 2 or more, and the machine's size is not known without", path)
	}
	return l, nil
}

// Next implements traces.Stream.
func (l *log) Next(j *traces.Job) error {
	err := l.Trace.Next(j)
	if err == nil && j.Estimate == 0 {
		j.Estimate, j.Assumed = j.Work, true
	}
	return err
}
