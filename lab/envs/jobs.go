package envs

import (
	"context"
	"errors"
	"fmt"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// DecodeKwargs sets cfg to the arguments that a client gives, keys with dots and nested maps alike; nil keeps a
// default. A cluster that the client describes by the keys of a cluster file is returned; cfg then keeps its own.
// Errors are *wire.Errors of code bad_kwargs.
func DecodeKwargs(kwargs wire.Map, cfg configs.Validator) (given *cluster.Spec, err error) {
	tree := map[string]any{}
	for _, p := range kwargs {
		if m, ok := p.Value.(wire.Map); ok && p.Key == "cluster" {
			if given, err = describedCluster(m); err != nil {
				return nil, badKwargs(err)
			}
			continue
		}
		if err := graft(tree, "", p.Key, p.Value); err != nil {
			return nil, badKwargs(err)
		}
	}
	text, err := configs.Encode(tree)
	if err != nil {
		return nil, badKwargs(err)
	}
	return given, badKwargs(configs.DecodeBytes("", text, cfg))
}

// Jobs loads the jobs of t for a client, who can name the files that Make lets it name. Their memory is reserved in
// room and stays so. Errors are those of Make.
func (r *Registry) Jobs(ctx context.Context, t workload.TraceConfig, room *budget.Account) ([]traces.Job, workload.Info,
	error) {
	named := t
	if _, err := r.Open(ctx, &t, false); err != nil {
		return nil, workload.Info{}, badKwargs(err)
	}
	ctx, err := inRoom(ctx, room, &t, nil)
	if err != nil {
		return nil, workload.Info{}, err
	}
	select {
	case r.workloads.loads <- struct{}{}:
	case <-ctx.Done():
		return nil, workload.Info{}, ctx.Err()
	}
	jobs, info, err := workload.LoadTraceContext(ctx, t)
	<-r.workloads.loads
	switch {
	case ended(err):
		return nil, info, err
	case err != nil:
		return nil, info, r.Mistake(err, t, named)
	case len(jobs) > r.cfg.MaxJobs:
		return nil, info, badKwargs(fault.New("trace.jobs", 0,
			fmt.Sprintf("1 to %d, for the file has more jobs than this server takes", r.cfg.MaxJobs)))
	}
	bytes := int64(0)
	for i := range jobs {
		bytes += 360 + int64(len(jobs[i].ID)) // as Workload.weigh counts them
	}
	return jobs, shownAs(info, &named), reserve(room, bytes)
}

// Own reports whether all clients are the server's owner.
func (r *Registry) Own() bool { return r.cfg.OwnFiles }

// Mistake returns an error about a client's workload in words that the client may read, if it is the client's mistake.
// here has the paths of files, named the client's names for them.
func (r *Registry) Mistake(err error, here, named workload.TraceConfig) error {
	if _, input := errors.AsType[*fault.Mistake](err); input {
		return r.mistake(err, &here, &named)
	}
	return err
}
