package envs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/predictors"
	"clustergym/traces"
)

// modelFile is where the file of estimates gbdt:FILE is.
type modelFile struct {
	path  string
	from  *traces.Files
	bytes int64
}

// loadModel reads the model of estimates gbdt:FILE.
func (w *World) loadModel(ctx context.Context, cut sched.Taken, at *modelFile) (err error) {
	name := cut.Estimates.File
	if name == "" {
		return nil
	}
	if at == nil {
		at = &modelFile{path: name}
	}
	if w.Model, err = predictors.ReadModel(ctx, at.from, at.path, name); err == nil {
		w.bytes += 2 * w.Model.Bytes
	}
	return err
}

// unseen returns a mistake if the model knows jobs on which policies are compared or checkpoints chosen.
func (w *World) unseen() error {
	if w.Model == nil {
		return nil
	}
	all := w.Workload.Windows
	for _, part := range []traces.Part{traces.Validation, traces.Test} {
		n, _ := w.Model.Known(all.Jobs(part))
		if n == 0 {
			continue
		}
		first := all.Jobs(traces.Validation)[0].Submit
		return fault.Mistakef("model %s has been fitted to %s of the %s part of %s, on which it would know what no cluster "+
			"can know; want a model of gymctl predict fit %s %s or earlier", w.Model.File, plain.Count(n, "job", "jobs"), part,
			w.Info.File, fault.Key("until"), predictors.Clock(first))
	}
	return nil
}

// withModel returns a hash of the jobs' and of the model.
func (w *World) withModel(jobs [sha256.Size]byte) [sha256.Size]byte {
	if w.Model == nil {
		return jobs
	}
	return sha256.Sum256(append(jobs[:], w.Model.SHA256...))
}

// unnamed returns the text of settings without the name of a model, whose contents count (World.Jobs).
func unnamed(text string, d *Descriptor, s Settings) string {
	if !d.Simulated() {
		return text
	}
	name := d.Cut(s).Estimates.File
	if name == "" {
		return text
	}
	return strings.Replace(text, "gbdt:"+name, "gbdt:", 1)
}

// modelKey is the key with which clients name a model.
const modelKey = "estimates"

// openModel finds the model that a client names, by the rules for traces, nil if there is none. stamp is that of the file, as
// in Open.
func (r *Registry) openModel(ctx context.Context, d *Descriptor, s Settings) (m *modelFile, state string, err error) {
	if !d.Simulated() {
		return nil, "", nil
	}
	name := d.Cut(s).Estimates.File
	if name == "" {
		return nil, "", nil
	}
	refused := func(err error) error { // with the value as the client gave it, and "gbdt:" before what it could be
		f, ok := errors.AsType[*fault.Fault](err)
		if !ok {
			return err
		}
		return fault.New(modelKey, "gbdt:"+name, "gbdt: and "+strings.TrimPrefix(f.Want, "get:NAME, or "))
	}
	at, from, err := r.allowed(modelKey, name)
	if err != nil {
		return nil, "", refused(err)
	}
	st, err := from.Stat(at)
	if open, ok := errors.AsType[*traces.OpenError](err); ok && open.Err != nil {
		return nil, "", refused(r.refusal(modelKey, name, err))
	}
	if err != nil || !st.Mode().IsRegular() {
		return nil, "", refused(fault.New(modelKey, name, "the name of an ordinary file"))
	}
	if state, err = stamp(ctx, from, at); err != nil {
		return nil, "", refused(r.refusal(modelKey, name, err))
	}
	return &modelFile{path: at, from: from, bytes: st.Size()}, fmt.Sprintln(modelKey, state), nil
}
