package envs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"clustergym/bridge/budget"
	"clustergym/configs"
	"clustergym/env/dagplace"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/catalog"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/dag/graphs"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// Workload is the source of the episodes of an environment: jobs on a cluster, task graphs or workers. It is immutable
// and any number of environments can share it.
type Workload struct {
	Source *Source
	GPUs   int // of the cluster
	Info   workload.Info
	// Taken is the jobs cut into windows, nil for an environment that does not use the cluster simulator.
	Taken *sched.Workload
	Jobs  [sha256.Size]byte // hash of the jobs' contents, and of Model's
	Model *predictors.Model // of estimates gbdt:FILE, else nil

	trace workload.TraceConfig // as asked for
	pace  func() paced         // of a generator, which takes a moment to find
	cut   sched.Taken
	sha   string // of recorded graphs or workers, "" if they are generated
	bytes int64
}

// LoadWorkload loads the cluster and trace for the environment of d with settings s. It reads files with the user's
// rights. Faults are *fault.Mistakes.
func LoadWorkload(ctx context.Context, d *Descriptor, s Settings, clusterName string,
	t workload.TraceConfig) (*Workload, error) {
	var spec cluster.Spec
	if d.Takes.Cluster {
		var err error
		if spec, err = workload.ClusterSpec(clusterName); err != nil {
			return nil, err
		}
	}
	w, err := d.load(ctx, s, spec, t, t, nil)
	if err == nil {
		err = d.check(s, w)
	}
	return w, d.WithFlags(err)
}

// check reports the first job of w whose model lacks what the settings require. It checks every job, so that a training
// does not fail later.
func (d *Descriptor) check(s Settings, w *Workload) error {
	if d.lacks == nil {
		return nil
	}
	for part := range SplitNames {
		for _, j := range w.Taken.Windows.Jobs(traces.Part(part)) {
			if what := d.lacks(s, &j); what != "" {
				return fault.Mistakef(
					"%s: job %s wants %d GPUs and has %s; %s needs the compute time and gradient bytes of every job with several "+
						"GPUs: set trace.mix to a mix of models (%s), or env.comm to tree or none",
					w.Info.File, j.ID, max(j.GPUs, j.MaxGPUs), what, d.ID, strings.Join(profile.Names(), ", "))
			}
		}
	}
	return nil
}

// load makes the workload of an environment. t has the paths of files, shown their names in messages; model is where
// the file of estimates gbdt:FILE is, nil = at the path that the settings name.
func (d *Descriptor) load(ctx context.Context, s Settings, spec cluster.Spec, t, shown workload.TraceConfig,
	model *namedFile) (*Workload, error) {
	spec.Literal = !d.Ongoing
	w := &Workload{Source: &Source{Cluster: spec}}
	w.GPUs, _ = sizeOf(&spec)
	switch {
	case d.Simulated():
		return w, w.loadJobs(ctx, d.Cut(s), t, shown, model)
	case d.record != nil && t.File != "":
		return w, d.record(ctx, w, s, t, shown)
	}
	return w, nil
}

// loadJobs cuts a workload into windows.
func (w *Workload) loadJobs(ctx context.Context, cut sched.Taken, t, shown workload.TraceConfig,
	model *namedFile) error {
	if err := w.loadModel(ctx, cut, model); err != nil { // before the jobs, which may take longer
		return err
	}
	w.setPace(t, cut)
	if cut.Mode == sched.Ongoing {
		t = w.pace().trace
	}
	jobs, info, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return err
	}
	return w.cutJobs(cut, jobs, shownAs(info, &shown))
}

// setPace says which jobs are drawn.
func (w *Workload) setPace(t workload.TraceConfig, cut sched.Taken) {
	w.trace, w.pace = t, sync.OnceValue(func() paced { return w.paceOf(t, cut) })
}

// cutJobs leaves out the jobs that are not taken and cuts the rest into windows. The model has been loaded.
func (w *Workload) cutJobs(cut sched.Taken, jobs []traces.Job, info workload.Info) (err error) {
	w.Info = info
	if w.Taken, err = sched.Take(cut, w.Source.Cluster, jobs); err != nil {
		return &fault.Mistake{Err: fmt.Errorf("%s: %w", w.Info.File, err)}
	}
	if err := w.unseen(); err != nil {
		return err
	}
	if cut.Mode == sched.Ongoing {
		if err := w.refuse(cut, jobs); err != nil {
			return err
		}
	}
	w.cut = cut
	w.Source.Windows = &predictors.Foresight{Windows: w.Taken.Windows, Model: w.Model, Load: sync.OnceValue(w.offered)}
	w.Jobs = w.withModel(JobsHash(w.Taken.Windows, cut.Estimates.Causal(), !w.Source.Cluster.Literal))
	w.weigh(w.Taken.Windows)
	if cut.Remembers() {
		w.bytes += int64(len(w.Taken.Windows.All())) * predictors.ArchiveBytes
	}
	return nil
}

// refuse returns a mistake if too much of the GPU time of a trace is left out.
func (w *Workload) refuse(cut sched.Taken, jobs []traces.Job) error {
	if l := &w.Taken.Left; w.trace.File == "" || l.LargeShare+l.NeverShare <= workload.MostLeftOut {
		return nil
	}
	c, err := cluster.New(w.Source.Cluster)
	if err != nil {
		return err
	}
	left := workload.CountLeft(c, jobs, cut.MaxGPUs)
	return left.Mistake(&w.trace, &w.Info, c, w.Source.Cluster.Name)
}

// shownAs returns info with the names of files for messages.
func shownAs(info workload.Info, shown *workload.TraceConfig) workload.Info {
	if shown.File != "" {
		info.File = shown.File
	}
	if shown.Profiles != "" {
		info.Profiles = shown.Profiles
	}
	return info
}

// weigh counts the memory of the jobs.
func (w *Workload) weigh(jobs *traces.Windows) {
	for part := range SplitNames {
		for _, j := range jobs.Jobs(traces.Part(part)) {
			// a job is 256 bytes, and a slice that grew has some left; strings but the ID are mostly shared
			w.bytes += 360 + int64(len(j.ID))
		}
	}
}

// loadGraphs reads recorded task graphs.
func (w *Workload) loadGraphs(ctx context.Context, cfg *dagplace.Config, t, shown workload.TraceConfig) error {
	path, err := located(t.FileFrom, t.File)
	if err != nil {
		return err
	}
	set, err := graphs.Load(ctx, path, graphs.Options{For: dagplace.ID, From: t.FileFrom})
	_, jobs := errors.AsType[*graphs.NoGraphsError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Mistakef("task graphs %s: there is no such file or folder", shown.File)
	case jobs: // says no more than that
		return &fault.Mistake{Err: err}
	case err != nil:
		return &fault.Mistake{Err: workload.Quoting(err)}
	}
	for _, n := range set.Notes() {
		workload.Note(ctx, n)
	}
	if w.Source.Graphs, err = dagplace.NewWorkload(*cfg, nil, set); err != nil {
		return &fault.Mistake{Err: err}
	}
	w.sha = w.Source.Graphs.SHA256()
	w.Info = workload.Info{File: shown.File, Format: "graphs", SHA256: w.sha}
	for part := range SplitNames {
		w.Info.Jobs += set.Count(traces.Part(part))
	}
	tasks, _ := w.Source.Graphs.Largest()
	w.bytes = int64(w.Info.Jobs) * int64(tasks) * 64
	return nil
}

// located returns the path of the file that a user names; a registry has looked it up already.
func located(from *traces.Files, name string) (string, error) {
	if from != nil {
		return name, nil
	}
	return workload.Located(name)
}

// loadWorkers reads recorded jobs with their models and the speeds of the models.
func (w *Workload) loadWorkers(ctx context.Context, cfg *workerplace.Config, t, shown workload.TraceConfig) error {
	var o workerplace.WorkloadOptions
	if t.Profiles != "" {
		path, err := located(t.ProfilesFrom, t.Profiles)
		if err != nil {
			return err
		}
		if o.Profiles, err = workerplace.LoadProfiles(ctx, t.ProfilesFrom, path, t.Reference); err != nil {
			return &fault.Mistake{Err: workload.Quoting(err)}
		}
	}
	if t.Mix != "" {
		mix, err := profile.Named(t.Mix)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		o.Mix = &mix
	}
	plain := t
	plain.Profiles, plain.Mix, plain.Reference = "", "", ""
	jobs, info, err := workload.LoadUntimed(ctx, plain)
	if err != nil {
		return err
	}
	w.Info = shownAs(info, &shown)
	w.Info.Profiles, w.Info.Mix = shown.Profiles, t.Mix
	var kept []traces.Job
	for i := range jobs {
		if j := &jobs[i]; j.GPUs >= 1 && j.GPUs <= cfg.Servers*cfg.GPUs && (j.Work > 0 || j.Iterations > 0) {
			kept = append(kept, *j)
		}
	}
	windows, err := traces.NewWindows(kept, cfg.Jobs, 0)
	if err == nil && windows.Count(traces.Test) == 0 {
		_, err = windows.At(traces.Test, 0, 0) // its error says how many jobs are enough
	}
	if err == nil {
		w.Source.Workers, err = workerplace.NewWorkload(*cfg, windows, o)
	}
	if err != nil {
		return &fault.Mistake{Err: fmt.Errorf("%s: %w", w.Info.File, err)}
	}
	w.sha = w.Source.Workers.SHA256()
	w.weigh(windows)
	return nil
}

// Recorded returns whether the episodes of an environment without a simulator come from a file.
func (w *Workload) Recorded() bool { return w.sha != "" }

// Count returns the number of windows of part p that can be named, 0 if episodes are generated.
func (w *Workload) Count(p traces.Part) int {
	switch {
	case w.Taken != nil:
		return w.Taken.Windows.Count(p)
	case w.Source.Graphs != nil:
		return w.Source.Graphs.Count(p)
	case w.Source.Workers != nil:
		return w.Source.Workers.Count(p)
	}
	return 0
}

// has returns an error if part p of a workload has no window.
func (w *Workload) has(p traces.Part) (err error) {
	switch {
	case w.Count(p) > 0:
	case w.Taken != nil:
		_, err = w.Taken.Windows.At(p, 0, 0) // its error says how many jobs are enough
	case w.Recorded():
		err = fault.New("split", SplitNames[p], "a part of the workload with an episode; the "+p.String()+" part has none")
	}
	return err
}

// borrow returns the workload that args name, from the cache or new. Its memory stays reserved until leave is called.
// Faults of args are *wire.Errors.
func (r *Registry) borrow(ctx context.Context, args *Args) (w *Workload, leave func(), err error) {
	d := args.d
	var spec cluster.Spec
	if d.Takes.Cluster {
		if spec, err = r.Cluster(args.Cluster, args.given); err != nil {
			return nil, nil, err
		}
	}
	if !d.Simulated() && args.Trace.File == "" {
		w, err = d.load(ctx, args.Settings, spec, args.Trace, args.Trace, nil)
		return w, func() {}, err
	}
	t := args.Trace
	files, err := r.Open(ctx, &t, d.Takes.Graphs)
	if err != nil {
		return nil, nil, badKwargs(err)
	}
	model, err := r.openModel(ctx, d, args.Settings)
	if err != nil {
		return nil, nil, badKwargs(err)
	}
	if model != nil {
		files += model.stamp
	}
	key, err := args.workloadKey(t, spec, files)
	if err != nil {
		return nil, nil, err
	}
	w, leave, err = r.workloads.use(ctx, string(key), func(ctx context.Context, room *budget.Account) (*Workload, error) {
		ctx, err := inRoom(ctx, room, &t, model)
		if err != nil {
			return nil, err
		}
		w, err := d.load(ctx, args.Settings, spec, t, args.Trace, model)
		if err != nil {
			return nil, err
		}
		if w.Info.Jobs > r.cfg.MaxJobs {
			return nil, &fault.Mistake{Err: fault.New("trace.jobs", 0,
				fmt.Sprintf("1 to %d, for the file has more jobs than this server takes", r.cfg.MaxJobs))}
		}
		return w, nil
	})
	if err == nil && d.lacks != nil {
		if err = d.check(args.Settings, w); err != nil {
			leave()
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil, err // nothing is wrong with the arguments
	}
	if _, input := errors.AsType[*fault.Mistake](err); input {
		return nil, nil, r.mistake(err, &t, &args.Trace)
	}
	return w, leave, err
}

// mistake returns a client's mistake about a workload in words that the client may read. here has the paths of files,
// named the client's names.
func (r *Registry) mistake(err error, here, named *workload.TraceConfig) error {
	if r.cfg.OwnFiles {
		return ownMistake(err)
	}
	return badKwargs(shown(workload.Unquoted(err, cmp.Or(named.File, named.Profiles)), here, named))
}

// workloadKey returns a text of everything that the workload of a depends on, including the modification times of
// files. t has the paths of files.
func (a *Args) workloadKey(t workload.TraceConfig, spec cluster.Spec, files string) ([]byte, error) {
	d := a.d
	of := struct {
		ID      string
		Trace   workload.TraceConfig `yaml:"trace"`
		Cluster cluster.Spec         `yaml:"cluster"`
		Cut     sched.Taken
		Of      Settings
		Files   string
		Ongoing bool // how jobs are read: see cluster.Spec.Literal
	}{Trace: t, Cluster: spec, Files: files, Ongoing: d.Ongoing}
	if d.Simulated() {
		of.Cut = d.Cut(a.Settings)
		if of.Cut.Mode != sched.Ongoing || t.File != "" {
			of.Cut.Load = 0 // the jobs are the same
		}
		if est := of.Cut.Estimates; est.Mode != sim.EstimateTrace && !est.Causal() {
			of.Cut.Estimates = sim.Estimates{} // it changes nothing but what the jobs weigh
			if !d.Cut(a.Settings).Forecast.Remembers(est) {
				of.Cut.Forecast = ""
			}
		} else {
			of.Cut.Forecast = ""
		}
	} else {
		of.ID, of.Of = d.ID, a.Settings
	}
	return configs.Encode(of)
}

// sizeOf returns the numbers of GPUs and nodes of a cluster without building it.
func sizeOf(s *cluster.Spec) (gpus, nodes int) {
	gpus = s.Pool
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			nodes += r.Count.N() * n.Count.N()
			gpus += r.Count.N() * n.Count.N() * n.GPUs
		}
	}
	return gpus, nodes
}

// shown returns err with the client's names of files, because clients must not see the paths.
func shown(err error, here, named *workload.TraceConfig) error {
	text := err.Error()
	for _, f := range [][2]string{{here.File, named.File}, {here.Profiles, named.Profiles}} {
		if f[0] != "" {
			text = strings.ReplaceAll(text, f[0], f[1])
		}
	}
	return errors.New(text)
}

// strangersCluster is workload.ClusterSpec without files, for untrusted clients.
func strangersCluster(name string) (cluster.Spec, error) {
	_, short, _ := cluster.Parse(name)
	_, err := fs.Stat(configs.Presets, path.Join(workload.ClusterDir, name+".yaml"))
	if !short && (err != nil || strings.ContainsAny(name, `/\`)) {
		return cluster.Spec{}, fault.New("cluster", name,
			"pool:N, swf-N, NxG, dally:RxM, the keys of a cluster file as a map, or one of "+
				strings.Join(workload.ClusterPresets(), ", "))
	}
	spec, err := workload.ClusterSpec(name)
	if err == nil {
		err = spec.Validate()
	}
	if faults := fault.All(err); len(faults) > 0 {
		return spec, fault.New("cluster", name, "a cluster without faults: "+faults[0].Error())
	}
	return spec, err
}

// traceRoot opens the folder below which clients may name files, nil for "".
func traceRoot(dir string) (*traces.Files, error) {
	if dir == "" {
		return nil, nil
	}
	if st, err := os.Stat(dir); err != nil {
		return nil, fault.Mistakef("trace root %s: %w", dir, ordinary.Reason(err))
	} else if !st.IsDir() {
		return nil, fault.Mistakef("trace root %s: this is no folder", dir)
	}
	dir, err := filepath.Abs(dir) // the server may change its folder
	if err != nil {
		return nil, fault.Mistakef("trace root: %w", err)
	}
	root, err := traces.FilesIn(dir)
	if err != nil {
		return nil, fault.Mistakef("trace root %s: %w", dir, err)
	}
	return root, nil
}

// Open replaces the names of files in t by their paths, and refuses files that a client may not name. stamps contains
// their sizes, modification times and, if they have just changed, hashes.
func (r *Registry) Open(ctx context.Context, t *workload.TraceConfig, folder bool) (stamps string, err error) {
	switch most := fmt.Sprintf("at most %d jobs on this server", r.cfg.MaxJobs); {
	case t.Jobs > r.cfg.MaxJobs:
		return "", fault.New("trace.jobs", t.Jobs, most)
	case t.File == "" && t.Jobs == 0 && t.Synth.Jobs > r.cfg.MaxJobs:
		return "", fault.New("trace.synth.jobs", t.Synth.Jobs, most)
	case t.File != "" && t.Jobs == 0 && !folder:
		t.Jobs = r.cfg.MaxJobs + 1 // so that a file with too many jobs is refused and not cut
	}
	for _, f := range []struct {
		key    string
		name   *string
		from   **traces.Files
		folder bool
	}{{"trace.file", &t.File, &t.FileFrom, folder}, {"trace.profiles", &t.Profiles, &t.ProfilesFrom, true}} {
		if *f.name == "" {
			continue
		}
		named, err := r.named(ctx, f.key, *f.name, f.folder)
		if err != nil {
			return "", err
		}
		*f.name, *f.from = named.path, named.from
		stamps += named.stamp
	}
	return stamps, nil
}

// namedFile is a file that a client names, or a folder.
type namedFile struct {
	path  string
	from  *traces.Files // opens it
	bytes int64
	stamp string // a line with its key and state
}

// named finds the file that a client names for key.
func (r *Registry) named(ctx context.Context, key, name string, folder bool) (f *namedFile, err error) {
	f = &namedFile{}
	if f.path, f.from, err = r.allowed(key, name); err != nil {
		return nil, err
	}
	st, err := f.from.Stat(f.path)
	if open, ok := errors.AsType[*traces.OpenError](err); ok && open.Err != nil {
		return nil, r.refusal(key, name, err)
	}
	if err != nil || !st.Mode().IsRegular() && !(folder && st.IsDir()) {
		return nil, fault.New(key, name, "the name of an ordinary file")
	}
	state, err := stamp(ctx, f.from, f.path)
	if err != nil {
		return nil, r.refusal(key, name, err)
	}
	f.bytes, f.stamp = st.Size(), fmt.Sprintln(key, state)
	return f, nil
}

// allowed returns the path of a file that a client names and what opens it: a public trace in the cache, or a file
// below the trace root.
func (r *Registry) allowed(key, name string) (path string, from *traces.Files, err error) {
	if strings.HasPrefix(name, catalog.Prefix) {
		at, err := catalog.Path(name)
		var missing *catalog.MissingError
		if errors.As(err, &missing) {
			return "", nil, fault.New(key, name,
				"a public trace that this server has; gymctl trace get "+missing.Name+" fetches it there")
		}
		if err != nil {
			return "", nil, fault.New(key, name, "a public trace of gymctl trace get --list: "+err.Error())
		}
		return at, traces.OrdinaryFiles(), nil
	}
	if r.cfg.OwnFiles {
		if !filepath.IsAbs(name) {
			return "", nil, ownRefusal(key, name, nil)
		}
		return filepath.Clean(name), traces.OrdinaryFiles(), nil
	}
	if r.root == nil {
		return "", nil, fault.New(key, name,
			"get:NAME, or nothing: this server reads no files; gymctl serve --trace-root DIR allows those below DIR")
	}
	if !filepath.IsLocal(name) {
		return "", nil, r.refusal(key, name, nil)
	}
	return filepath.Clean(name), r.root, nil
}

// refusal says what is wrong with a name that cannot be opened, and nothing of the server's folders. That a request has
// ended is not the name's fault.
func (r *Registry) refusal(key, name string, err error) error {
	if ended(err) {
		return err
	}
	if r.cfg.OwnFiles {
		return ownRefusal(key, name, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(key, name,
			"a file that exists below the server's --trace-root; copy it there, and name it relative to that folder")
	}
	return fault.New(key, name, "a path below the server's --trace-root, relative to it")
}

// JobsHash returns a hash of every field of w's jobs that an episode can depend on: not of their recorded starts. Name,
// Group and Assumed, on which an episode depends only with causal estimates, are left out unless named is set, and
// Nodes unless shaped is: where the cluster reads jobs to the letter, no episode depends on it.
func JobsHash(w *traces.Windows, named, shaped bool) (sum [sha256.Size]byte) {
	h := sha256.New()
	for part := range SplitNames {
		hashJobs(h, w.Jobs(traces.Part(part)), named, shaped)
	}
	h.Sum(sum[:0])
	return sum
}

// hashJobs adds every field of jobs to h, Name, Group and Assumed only if named is set, Nodes only if shaped is.
func hashJobs(h hash.Hash, jobs []traces.Job, named, shaped bool) {
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	profiles := map[*traces.Profile][]byte{}
	for i := range jobs {
		j := &jobs[i]
		b = b[:0]
		for _, s := range []string{j.ID, j.User, j.VC, j.Model} {
			text(s)
		}
		if named {
			text(j.Name)
			text(j.Group)
			if j.Assumed {
				text("assumed")
			}
		}
		for _, n := range []int64{
			int64(j.Submit), int64(j.Work), int64(j.Estimate), int64(j.GPUs), int64(j.MinGPUs), int64(j.MaxGPUs),
			int64(j.GPUMilli),
			j.CPUMilli, j.MemBytes, j.Iterations, int64(j.Batch), int64(j.Priority), int64(j.Deadline), int64(j.Status),
			int64(math.Float64bits(j.SLO)), int64(len(j.GPUTypes)),
		} {
			b = binary.AppendVarint(b, n)
		}
		for _, s := range j.GPUTypes {
			text(s)
		}
		doc := []byte("null")
		if j.Profile != nil {
			if doc = profiles[j.Profile]; doc == nil {
				doc = inJSON(j.Profile)
				profiles[j.Profile] = doc
			}
		}
		text(string(doc))
		if doc = []byte("null"); j.Graph != nil {
			doc = inJSON(j.Graph)
		}
		text(string(doc))
		if shaped && j.Nodes > 0 {
			text("nodes")
			b = binary.AppendUvarint(b, uint64(j.Nodes))
		}
		h.Write(b)
	}
}

// inJSON returns v, which consists of numbers, texts, lists and maps, as JSON with sorted keys.
func inJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(fmt.Sprintf("%+v", v)) // v contains NaN: this text describes it as well
	}
	return b
}
