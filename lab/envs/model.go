package envs

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/predictors"
	"clustergym/traces"
)

// loadModel reads the model of estimates gbdt:FILE.
func (w *Workload) loadModel(ctx context.Context, cut sched.Taken, at *namedFile) (err error) {
	name := cut.Estimates.File
	if name == "" {
		return nil
	}
	if at == nil {
		at = &namedFile{path: name}
	}
	if w.Model, err = predictors.ReadModel(ctx, at.from, at.path, name); err == nil {
		w.bytes += 2 * w.Model.Bytes
	}
	return err
}

// unseen returns a mistake if the model knows jobs on which policies are compared or checkpoints chosen.
func (w *Workload) unseen() error {
	if w.Model == nil {
		return nil
	}
	all := w.Taken.Windows
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
func (w *Workload) withModel(jobs [sha256.Size]byte) [sha256.Size]byte {
	if w.Model == nil {
		return jobs
	}
	return sha256.Sum256(append(jobs[:], w.Model.SHA256...))
}

// unnamed returns the text of settings without the name of a model, whose contents count (Workload.Jobs).
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

// openModel finds the model that a client names, by the rules for traces, nil if there is none.
func (r *Registry) openModel(ctx context.Context, d *Descriptor, s Settings) (*namedFile, error) {
	if !d.Simulated() {
		return nil, nil
	}
	name := d.Cut(s).Estimates.File
	if name == "" {
		return nil, nil
	}
	m, err := r.named(ctx, modelKey, name, false)
	// With the value as the client gave it, and "gbdt:" before what it could be.
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return nil, fault.New(modelKey, "gbdt:"+name, "gbdt: and "+strings.TrimPrefix(f.Want, "get:NAME, or "))
	}
	return m, err
}
