package workload

import (
	"context"
	"strings"

	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// noRunTime is the reason for which jobs of traces that count steps are left out.
const noRunTime = "no run time: the throughput table does not have the model on so many GPUs"

// profiled completes jobs from a throughput table and a mix of models.
type profiled struct {
	table     *profile.Table // nil = none
	reference string
	mix       *profile.Mix // nil = none
	seed      uint64
	needs     bool // jobs without run time are left out
	unknown   int  // jobs left out for noRunTime
}

// profile makes the stream complete jobs from the table and the mix of cfg.
func (t *Trace) profile(ctx context.Context, cfg TraceConfig) error {
	if cfg.Profiles == "" && cfg.Mix == "" {
		if f := format(t.info.Format); f != nil && f.Profiles {
			t.info.Timeless = true
		}
		return nil
	}
	p := &profiled{reference: cfg.Reference, seed: cfg.Seed}
	if cfg.Profiles != "" {
		path, from := cfg.Profiles, cfg.ProfilesFrom
		if cfg.ProfilesFrom == nil {
			var err error
			if path, err = Located(path); err != nil {
				return err
			}
			from = traces.OrdinaryFiles()
		}
		table, err := profile.LoadIn(ctx, from, path)
		if err != nil {
			return Quoting(err)
		}
		own, ok := table.Type(cfg.Reference)
		if types := table.Types(); !ok && len(types) > 0 {
			return fault.Errorf("reference %q: profiles %s have the GPU types %s, want one of them (%s, trace.reference)",
				cfg.Reference, cfg.Profiles, strings.Join(types, ", "), fault.Key("reference"))
		}
		f := format(t.info.Format)
		p.table, p.needs = table, f != nil && f.Profiles
		t.info.Profiles, t.info.Reference = cfg.Profiles, own
	}
	if cfg.Mix != "" {
		mix, err := profile.Named(cfg.Mix)
		if err != nil {
			return err
		}
		p.mix = &mix
		t.info.Mix, t.info.Seed = cfg.Mix, cfg.Seed
	}
	if f := format(t.info.Format); f != nil && f.Profiles && p.table == nil {
		t.info.Timeless = true
	}
	t.profiled = p
	return nil
}

// complete gives j its profile, and its run time if it has none. keep is false if the job is to be left out.
func (p *profiled) complete(j *traces.Job) (keep bool) {
	if p.table != nil {
		p.table.Assign(j, p.reference)
		if j.Work == 0 && p.needs {
			p.unknown++
			return false
		}
	}
	if p.mix != nil && j.Profile == nil {
		j.Profile = p.mix.Profile(p.seed, j.ID, j.Model)
	}
	return true
}
