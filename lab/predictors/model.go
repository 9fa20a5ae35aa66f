package predictors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/traces"
)

// MostModelBytes bounds a model file. That of a million jobs has 9 MB.
const MostModelBytes = 256 << 20

// Model is a file of gymctl predict fit.
type Model struct {
	*gbdt.Fitted
	File   string // as the user named it
	SHA256 string
	Bytes  int64
}

// ReadModel reads the model at path, which from opens; nil = any ordinary file. shown is its name in messages. What is
// wrong with the file is a *fault.Mistake.
func ReadModel(ctx context.Context, from *traces.Files, path, shown string) (*Model, error) {
	if from == nil {
		from = traces.OrdinaryFiles()
	}
	st, err := from.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Mistakef("model %s: there is no such file", shown)
	case err != nil:
		return nil, fault.Mistakef("model %s: it cannot be read: %w", shown, reason(err))
	case st.IsDir():
		return nil, fault.Mistakef("model %s: this is a folder; want a file of gymctl predict fit", shown)
	case st.Size() > MostModelBytes:
		return nil, fault.Mistakef("model %s: it has more than %d MiB, which no model has; want a file of gymctl predict fit",
			shown, MostModelBytes>>20)
	}
	f, err := from.Raw(ctx, path)
	if err != nil {
		return nil, fault.Mistakef("model %s: it cannot be read: %w", shown, reason(err))
	}
	defer f.Close()                                                                     //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(workload.NewCtxReader(ctx, f), MostModelBytes)) // it may grow
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Mistakef("model %s: it cannot be read: %w", shown, reason(err))
	case len(b) == 0:
		return nil, fault.Mistakef("model %s: the file is empty; want one of gymctl predict fit", shown)
	}
	fitted, err := gbdt.Parse(b)
	if err != nil {
		return nil, fault.Mistakef("model %s: %w", shown, err)
	}
	sum := sha256.Sum256(b)
	return &Model{Fitted: fitted, File: shown, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(b))}, nil
}

// reason returns err without the path that it names.
func reason(err error) error {
	e, ok := errors.AsType[*traces.OpenError](err)
	switch {
	case ok && e.Err == nil:
		return errors.New(e.Why)
	case ok:
		err = e.Err
	}
	return ordinary.Reason(err)
}

// Maker returns what makes predictors that begin with the model. archive is that of the function Maker.
func (m *Model) Maker(archive []traces.Job) predict.Maker {
	return gbdt.NewFitted(m.Fitted, archive, runtime.GOMAXPROCS(0))
}

// Known returns how many of jobs the model has been fitted to, and when the last of them ended if each had started when
// it was submitted.
func (m *Model) Known(jobs []traces.Job) (n int, end time.Duration) {
	for i := range jobs {
		if j := &jobs[i]; m.Knows(j) {
			n++
			end = max(end, j.Submit+j.Work)
		}
	}
	return n, end
}

// Unseen returns a mistake if forecasts of the model for the jobs of all that are submitted at from or later know what
// no cluster could have known: the model has been fitted to some of these jobs, or to others that ended later than
// from.
func (m *Model) Unseen(all []traces.Job, from time.Duration) error {
	n, end := m.Known(all)
	if n == 0 || end <= from {
		return nil
	}
	return fault.Mistakef(
		"model %s has been fitted to %s of this trace, of which the last ended at %s; the jobs that are measured are "+
			"submitted from %s on: want %s %s or later, or a model of predict fit %s %s", m.File, plain.Count(n, "job", "jobs"),
		Clock(end), Clock(from), fault.Key("from"), Clock(end+time.Second-1), fault.Key("until"), Clock(from))
}

// Clock writes a time on a trace's clock in whole seconds, rounded down, as flags take it.
func Clock(t time.Duration) string { return t.Truncate(time.Second).String() }
