package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/plain"
	"clustergym/traces"
	"clustergym/traces/csv"
	"clustergym/traces/profile"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

// TraceConfig says where jobs come from: a file in one of Formats or, without a file, a generator.
type TraceConfig struct {
	File   string `yaml:"file"`   // plain, or packed with gzip, zstd, bzip2 or zip; "" = generate jobs according to Synth
	Format string `yaml:"format"` // auto (recognised by content) or one of Formats
	// Columns maps columns of the native format to those of File, which then is in that format. Delimiter is what stands
	// between fields, for the formats csv and sacct; "" = what the header shows. It is a character or one of comma,
	// semicolon, tab and bar.
	Columns   map[string]string `yaml:"columns,omitempty"`
	Delimiter string            `yaml:"delimiter,omitempty"`
	// Limit stands for the time limit, which is the estimate, of jobs that have none; 0 = they have none, which estimates:
	// trace refuses.
	Limit time.Duration `yaml:"limit,omitempty"`
	// AcceptLeftOut takes a file even if more than 5 % of its GPU time (MostLeftOut) can never run on the cluster and is
	// left out. Without it gymctl sim and environments of version 2 refuse such a file.
	AcceptLeftOut bool `yaml:"accept_left_out,omitempty"`
	// Unended reads also jobs that were running or waiting when the file was written (traces.Job.Open), from formats that
	// have them: sacct and csv. It is the caller's and no setting.
	Unended bool `yaml:"-"`
	// Runs reads what each run of jobs that were requeued has done, from sacct (traces.Job.Stops). Likewise.
	Runs bool `yaml:"-"`
	// put jobs in order of submit; without it an unsorted file of a sorted format is refused
	Sort bool `yaml:"sort"`
	Skip int  `yaml:"skip"` // leave out this many first jobs; jobs that the reader drops do not count
	Jobs int  `yaml:"jobs"` // take at most this many jobs; 0 = all
	// Seed is the generator's. It is separate from the seed of a training run, so that runs with different seeds see
	// the same workload.
	Seed  uint64       `yaml:"seed"`
	Synth synth.Config `yaml:"synth"` // the generator
	// Profiles is the path of a throughput table (profile.Load). It gives jobs their profiles, and run times to jobs of
	// traces that count steps. Reference is the type of GPU whose run time becomes Job.Work, for tables and traces with
	// several types; "" if there is only one. Mix names a mix of models (profile.Named). Each job that still has no
	// profile gets one from the mix, drawn from Seed.
	Profiles  string `yaml:"profiles"`
	Reference string `yaml:"reference"`
	Mix       string `yaml:"mix"`
	// FileFrom and ProfilesFrom open File and what Profiles names; nil = any path, or "get:NAME".
	FileFrom     *traces.Files `yaml:"-"`
	ProfilesFrom *traces.Files `yaml:"-"`
}

// DefaultTraceConfig returns the configuration of the generator's default workload.
func DefaultTraceConfig() TraceConfig {
	return TraceConfig{Format: FormatAuto, Seed: 1, Synth: synth.DefaultConfig()}
}

// Validate returns an error that names every fault of c, or nil. It does not look for the file.
func (c *TraceConfig) Validate() error {
	var l fault.List
	l.Add(knownFormat(c.Format), "format", c.Format, nearest.OneOf(c.Format, FormatNames()))
	c.checkColumns(&l)
	_, ok := delimiters[c.Delimiter]
	l.Add(ok, "delimiter", c.Delimiter,
		"comma, semicolon, tab, bar or the character itself, or nothing for what the header shows")
	if ok && c.Delimiter != "" {
		l.Add(slices.Contains([]string{FormatAuto, FormatCSV, formatSacct}, c.Format), "delimiter", c.Delimiter,
			"nothing with format "+c.Format)
	}
	l.Add(c.Limit >= 0 && c.Limit <= traces.MaxTime, "limit", c.Limit,
		"a time such as 24h, up to 146 years, or 0s for none")
	l.Add(c.Skip >= 0, "skip", c.Skip, "a number of jobs, 0 or more")
	l.Add(c.Jobs >= 0, "jobs", c.Jobs, "a number of jobs, or 0 for all")
	l.Add(c.Mix == "" || slices.Contains(profile.Names(), c.Mix), "mix", c.Mix,
		"one of "+strings.Join(profile.Names(), ", ")+", or nothing"+nearest.Meant(c.Mix, profile.Names()))
	l.Join("synth", c.Synth.Validate())
	return l.Err()
}

// delimiters are the values of TraceConfig.Delimiter.
var delimiters = map[string]byte{"": 0, ",": ',', "comma": ',', ";": ';', "semicolon": ';', "\t": '\t', `\t`: '\t',
	"tab": '\t', "|": '|', "bar": '|'}

func (c *TraceConfig) delimiter() byte { return delimiters[c.Delimiter] }

func (c *TraceConfig) csvOptions() csv.Options {
	return csv.Options{Unsorted: c.Sort, Delimiter: c.delimiter(), Columns: c.Columns, Unended: c.Unended}
}

// checkColumns adds the faults of Columns; the file's columns are checked when it is read.
func (c *TraceConfig) checkColumns(l *fault.List) {
	known := csv.Columns()
	for _, name := range slices.Sorted(maps.Keys(c.Columns)) {
		want := "NAME=COLUMN with one of the format's names: " + strings.Join(known, ", ") + nearest.Meant(name, known)
		l.Add(slices.Contains(known, name), "columns", name+"="+c.Columns[name], want)
		l.Add(c.Columns[name] != "", "columns", name+"=", "NAME=COLUMN with the name of a column of the file")
	}
	if len(c.Columns) > 0 && knownFormat(c.Format) {
		l.Add(c.Format == FormatAuto || c.Format == FormatCSV, "format", c.Format,
			"auto or csv: columns of other formats have their own names")
	}
}

// Info describes a workload in the record of a result.
type Info struct {
	File   string `json:"file"`   // as the user named it; "synth:PROFILE" for generated jobs
	Format string `json:"format"` // the format found; FormatSynth for generated jobs
	Read   int    `json:"read"`   // jobs read so far: the sum of Jobs, Passed and Dropped
	// jobs returned so far: after the configuration's Skip, and at most its Jobs
	Jobs     int    `json:"jobs"`
	Passed   int    `json:"passed,omitempty"`  // jobs passed over by the configuration's Skip
	Dropped  int    `json:"dropped"`           // left out for the reasons in Skipped
	Skipped  []Skip `json:"skipped,omitempty"` // counts by reason
	Moved    int    `json:"moved"`             // jobs that followed one with a later submit and were put in order
	Repeated int    `json:"repeated"`          // jobs that the file repeats, kept
	Limited  int    `json:"limited,omitempty"` // missing estimates that were set to the configuration's Limit
	Assumed  int    `json:"assumed"`           // missing estimates that were set to the run time (LoadTrace, swf)
	// the file has no run times: they are 0 without a throughput table, or assumed by the reader
	Timeless  bool   `json:"timeless,omitempty"`
	Procs     int    `json:"procs,omitempty"`     // size of the machine according to the file's header, 0 = unknown
	SHA256    string `json:"sha256,omitempty"`    // of the file as stored; "" if it is not a regular file
	Seed      uint64 `json:"seed,omitempty"`      // of the generator or of a mix
	Profiles  string `json:"profiles,omitempty"`  // path of the throughput table
	Reference string `json:"reference,omitempty"` // the table's type of GPU
	Mix       string `json:"mix,omitempty"`
	// Columns and Delimiter are the configuration's, which together with the file decide the jobs.
	Columns   map[string]string `json:"columns,omitempty"`
	Delimiter string            `json:"delimiter,omitempty"`
	// Until is the latest time that the file mentions, on the clock of the jobs' Submit; 0 = the format does not say. Of
	// accountings it is shortly before they were written, if jobs ran or came then.
	Until time.Duration `json:"-"`
	// Notes are sentences about what the file has that its user should look at, although it can be read.
	Notes []string `json:"notes,omitempty"`
}

// Skip counts the jobs left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// String describes the workload in one line.
func (i Info) String() string {
	var b strings.Builder
	if i.Format == FormatSynth {
		fmt.Fprintf(&b, "%s (seed %d): %s", i.File, i.Seed, plain.Count(i.Jobs, "job", "jobs"))
	} else {
		fmt.Fprintf(&b, "%s (%s): %s", i.File, i.Format, plain.Count(i.Jobs, "job", "jobs"))
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{i.Moved, "put in order of submit"}, {i.Repeated, "repeated (kept)"},
		{i.Limited, "estimates missing, for which trace.limit stands"}, {i.Assumed, "estimates taken from the run time"},
	} {
		if n.count > 0 {
			fmt.Fprintf(&b, ", %d %s", n.count, n.what)
		}
	}
	for _, k := range i.Skipped {
		fmt.Fprintf(&b, ", %d left out (%s)", k.Count, k.Reason)
	}
	if i.Timeless {
		b.WriteString(", run times not in the file")
	}
	if i.Profiles != "" {
		fmt.Fprintf(&b, ", profiles %s", i.Profiles)
		if i.Reference != "" {
			fmt.Fprintf(&b, " on %s", i.Reference)
		}
	}
	if i.Mix != "" {
		fmt.Fprintf(&b, ", models of %s", i.Mix)
	}
	for k, name := range slices.Sorted(maps.Keys(i.Columns)) {
		fmt.Fprintf(&b, "%s%s=%s", [...]string{", columns ", ","}[min(k, 1)], name, i.Columns[name])
	}
	if i.SHA256 != "" {
		fmt.Fprintf(&b, ", sha256 %.12s…", i.SHA256)
	}
	return b.String()
}

// Trace is an open workload: a traces.Stream that counts what it reads. Not safe for concurrent use.
type Trace struct {
	stream   traces.Stream
	file     io.Closer // nil if no file is open
	info     Info
	source   any // the format's reader, which counts what it dropped or moved
	profiled *profiled
	limit    time.Duration // stands for a missing estimate; 0 = none does
	passing  int           // jobs still to pass over
	left     int           // jobs still to return, -1 = no limit
	room     roomFunc      // see WithRoom; nil = whatever there is
	hash     func() error  // fills info.SHA256
	reading  readingFunc   // see WithReading; nil = nobody is told
	urgent   urgency       // see Playing
	stopped  func() error  // the context's error
	tell     noteFunc      // see WithNotes; nil = nobody is told, or was already
}

var _ traces.Stream = (*Trace)(nil)

// OpenTrace opens a workload to be read once. It returns a *fault.Mistake for a faulty configuration, for a file that
// is missing, damaged or of no known format, and for a format whose run times need a throughput table that cfg does not
// name. When ctx is done, this and later reading fails. The caller closes the result.
func OpenTrace(ctx context.Context, cfg TraceConfig) (*Trace, error) {
	t, err := OpenUntimed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if f := format(t.info.Format); f != nil && f.Profiles && cfg.Profiles == "" {
		_ = t.Close() // the mistake matters more
		return nil, fault.Mistakef("trace %s: jobs of format %s tell their steps, not their run times; want %s "+
			"(trace.profiles), the path of a throughput table from which they follow", cfg.File, f.Name, fault.Key("profiles"))
	}
	return t, nil
}

// OpenUntimed is like OpenTrace, for callers that inspect jobs without running them. If a throughput table is needed
// and cfg names none, jobs have a run time of 0 and Info.Timeless is true.
func OpenUntimed(ctx context.Context, cfg TraceConfig) (*Trace, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	t := &Trace{
		limit: cfg.Limit, passing: cfg.Skip, left: -1, room: of[roomFunc](ctx), reading: of[readingFunc](ctx),
		stopped: ctx.Err, tell: of[noteFunc](ctx), urgent: urgency{on: bool(of[playing](ctx))},
	}
	if cfg.Jobs > 0 {
		t.left = cfg.Jobs
	}
	if cfg.File == "" {
		stream, err := synth.New(cfg.Synth, cfg.Seed)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		t.info = Info{File: "synth:" + cfg.Synth.Profile, Format: FormatSynth, Seed: cfg.Seed}
		t.stream = stream
		if err := t.profile(ctx, cfg); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		return t, nil
	}
	named := cfg.File
	var err error
	if cfg.FileFrom == nil {
		if cfg.File, err = Located(named); err != nil {
			return nil, err
		}
	}
	f, err := cfg.FileFrom.Open(ctx, cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mistakef("trace %s: there is no such file", cfg.File)
	} else if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	t.file, t.info.File = f, named
	t.info.Columns, t.info.Delimiter = cfg.Columns, cfg.Delimiter
	if err = t.open(f, cfg); err != nil {
		err = Quoting(err)
	} else {
		err = t.profile(ctx, cfg)
	}
	if err != nil {
		_ = f.Close() // the first fault matters more
		return nil, &fault.Mistake{Err: err}
	}
	t.hash = func() (err error) {
		if t.info.SHA256, err = HashFile(ctx, cfg.FileFrom, cfg.File); err != nil {
			return fmt.Errorf("trace %s: %w", cfg.File, err)
		}
		return nil
	}
	if cfg.FileFrom != nil { // load calls it, so that no time is lost on a large file that cannot be read
		return t, nil
	}
	if err := t.hash(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return t, nil
}

// open finds the format of r and makes its reader the stream of t.
func (t *Trace) open(r io.Reader, cfg TraceConfig) error {
	b := bufio.NewReaderSize(r, sniffed)
	t.info.Format = cfg.Format
	if cfg.Format == FormatAuto {
		head, err := b.Peek(sniffed)
		if err != nil && err != io.EOF {
			return err
		}
		if t.info.Format = sniff(head); len(cfg.Columns) > 0 {
			t.info.Format = FormatCSV // whose names they map
		}
		if t.info.Format == "" {
			return unknownFormat(&cfg, head)
		}
		if f := t.info.Format; cfg.Delimiter != "" && f != FormatCSV && f != formatSacct {
			return fault.New("delimiter", cfg.Delimiter, "nothing: the file is of format "+f)
		}
	}
	f := format(t.info.Format)
	stream, err := f.open(b, &cfg)
	if err != nil {
		return err
	}
	t.stream, t.source = stream, stream
	if d, ok := stream.(*swf.Reader); ok {
		t.info.Procs = d.Header().Procs()
	}
	if d, ok := stream.(interface{ Repeated() int }); ok {
		t.info.Repeated = d.Repeated()
	}
	if d, ok := stream.(interface{ Timeless() bool }); ok {
		t.info.Timeless = d.Timeless()
	}
	if _, sorts := stream.(interface{ Moved() int }); f.Sorted && cfg.Sort && !sorts {
		jobs, err := traces.ReadAll(&measured{Stream: stream, ask: t.room})
		if err != nil {
			return err
		}
		t.info.Moved = traces.SortStable(jobs)
		if d, ok := stream.(*csv.Reader); ok {
			d.Rebase(jobs)
		}
		t.stream = &traces.Slice{Jobs: jobs}
	}
	return nil
}

// Next implements traces.Stream. For a broken row it returns a *fault.Mistake that wraps a *traces.RowError.
func (t *Trace) Next(j *traces.Job) error {
	for t.left != 0 {
		if err := t.stream.Next(j); err == io.EOF {
			t.note()
			return err
		} else if err != nil {
			return &fault.Mistake{Err: Quoting(err)}
		}
		if n := t.info.Jobs + t.info.Passed; n%readings == readings-1 {
			if err := t.stopped(); err != nil {
				return err
			}
			if t.reading != nil {
				t.reading(n + 1)
			}
		}
		if t.profiled != nil && !t.profiled.complete(j) {
			continue
		}
		if err := j.CheckTimes(); err != nil {
			return fault.Mistakef("trace %s: %w", t.info.File, err)
		}
		if t.passing > 0 {
			t.passing--
			t.info.Passed++
			continue
		}
		t.left = max(-1, t.left-1)
		t.info.Jobs++
		if j.Estimate == 0 && t.limit > 0 {
			j.Estimate, j.Assumed = t.limit, true
			t.info.Limited++
		}
		t.urgent.see(j)
		return nil
	}
	return io.EOF
}

// Info returns a description of the workload. Its counts cover the jobs read so far.
func (t *Trace) Info() Info {
	var skips traces.Skips
	if d, ok := t.source.(interface{ Skipped() []traces.Skip }); ok {
		for _, k := range d.Skipped() {
			skips.AddN(k.Reason, k.Count)
		}
	}
	if t.profiled != nil {
		skips.AddN(noRunTime, t.profiled.unknown)
	}
	if d, ok := t.source.(interface{ Moved() int }); ok {
		t.info.Moved = d.Moved()
	}
	if d, ok := t.source.(interface{ Until() time.Duration }); ok {
		t.info.Until = d.Until()
	}
	i := t.info
	for _, k := range skips.All() {
		i.Skipped = append(i.Skipped, Skip{k.Reason, k.Count})
	}
	i.Dropped, i.Notes = skips.Total(), t.notes()
	i.Read = i.Jobs + i.Passed + i.Dropped
	return i
}

// Header returns the header of an SWF log, nil for other formats. The caller must not change it.
func (t *Trace) Header() swf.Header {
	if d, ok := t.source.(*swf.Reader); ok {
		return d.Header()
	}
	return nil
}

// Named reports whether jobs can have a name, and a group.
func (t *Trace) Named() (name, group bool) {
	if d, ok := t.source.(interface{ Named() (name, group bool) }); ok {
		return d.Named()
	}
	return false, false
}

// Close closes the file. Closing twice is harmless.
func (t *Trace) Close() error {
	if t.file == nil {
		return nil
	}
	t.note()
	err := t.file.Close()
	t.file = nil
	return err
}

// LoadTrace reads a workload into memory, in order of submit. Unlike OpenTrace's stream it completes SWF logs: a job
// whose requested time is unknown (-1) gets its run time as estimate, as is customary with these logs, and Info.Assumed
// counts it. A workload without jobs is a *fault.Mistake.
func LoadTrace(cfg TraceConfig) ([]traces.Job, Info, error) {
	return LoadTraceContext(context.Background(), cfg)
}

// LoadTraceContext is LoadTrace with a context that ends the reading.
func LoadTraceContext(ctx context.Context, cfg TraceConfig) ([]traces.Job, Info, error) {
	t, err := OpenTrace(ctx, cfg)
	if err != nil {
		return nil, Info{}, err
	}
	return t.load(cfg)
}

// LoadUntimed is like LoadTraceContext, for callers that get run times from elsewhere: it reads the stream of
// OpenUntimed.
func LoadUntimed(ctx context.Context, cfg TraceConfig) ([]traces.Job, Info, error) {
	t, err := OpenUntimed(ctx, cfg)
	if err != nil {
		return nil, Info{}, err
	}
	return t.load(cfg)
}

// load reads the whole workload and closes it. A workload without jobs is a *fault.Mistake.
func (t *Trace) load(cfg TraceConfig) ([]traces.Job, Info, error) {
	jobs, err := traces.ReadAll(&measured{Stream: t, ask: t.room})
	if err == nil && cfg.FileFrom != nil {
		err = t.hash()
	}
	if cerr := t.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, Info{}, err
	}
	if t.info.Format == FormatSWF {
		for i := range jobs {
			if jobs[i].Estimate == 0 {
				jobs[i].Estimate, jobs[i].Assumed = jobs[i].Work, true
				t.info.Assumed++
			}
		}
	}
	info := t.Info()
	untilNow(jobs, info.Until)
	if len(jobs) == 0 {
		return nil, info, fault.Mistakef("trace %s: there are no jobs to read%s%s", info.File, AfterSkip(cfg.Skip),
			leftOut(info.Skipped))
	}
	return jobs, info, nil
}

// untilNow sets how long jobs had run that were still running and whose rows do not say it: until the file was written.
func untilNow(jobs []traces.Job, now time.Duration) {
	for i := range jobs {
		if j := &jobs[i]; j.Open == traces.StillRunning && j.Work == 0 && j.Started {
			j.Work = max(0, now-j.Submit-j.Waited)
		}
	}
}

// AfterSkip returns words for messages on an empty workload: " after the first N" if jobs were skipped, otherwise "".
func AfterSkip(skip int) string {
	if skip > 0 {
		return fmt.Sprintf(" after the first %d", skip)
	}
	return ""
}

// leftOut returns words for the jobs that were left out, for messages on an empty workload.
func leftOut(skipped []Skip) string {
	var b strings.Builder
	for _, k := range skipped {
		fmt.Fprintf(&b, "; %d left out (%s)", k.Count, k.Reason)
	}
	return b.String()
}
