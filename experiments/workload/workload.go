package workload

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/profile"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

// TraceConfig says where jobs come from: a file in one of Formats, or, without a file, a generator.
type TraceConfig struct {
	File   string `yaml:"file"`   // plain, gzip or zstd; "" = generate jobs as synth says
	Format string `yaml:"format"` // auto (by content) or one of Formats
	Sort   bool   `yaml:"sort"`   // put jobs in order of submit, instead of refusing a file of a sorted format that is not
	Skip   int    `yaml:"skip"`   // leave out the first jobs, counted after what the reader itself drops
	Jobs   int    `yaml:"jobs"`   // take so many jobs; 0 = all
	// Seed is of the generator. It is apart from the seed of a training run, so that runs with several seeds
	// see one workload.
	Seed  uint64       `yaml:"seed"`
	Synth synth.Config `yaml:"synth"` // the generator
	// Profiles is the path of a throughput table (profile.Load): it gives jobs their profiles, and run times to those
	// of traces that count steps. Reference is the type of GPU whose run time is Job.Work, for the table and for traces
	// that know several; "" where there is only one. Mix names a mix of models (profile.Named), which gives a profile
	// to each job that then still has none, drawn from Seed.
	Profiles  string `yaml:"profiles"`
	Reference string `yaml:"reference"`
	Mix       string `yaml:"mix"`
}

// DefaultTraceConfig is the generator's default workload.
func DefaultTraceConfig() TraceConfig {
	return TraceConfig{Format: FormatAuto, Seed: 1, Synth: synth.DefaultConfig()}
}

// Validate reports every fault. Whether the file is there is not looked at.
func (c *TraceConfig) Validate() error {
	var l fault.List
	l.Add(knownFormat(c.Format), "format", c.Format, "one of "+strings.Join(FormatNames(), ", "))
	l.Add(c.Skip >= 0, "skip", c.Skip, "a number of jobs, 0 or more")
	l.Add(c.Jobs >= 0, "jobs", c.Jobs, "a number of jobs, or 0 for all")
	l.Add(c.Mix == "" || slices.Contains(profile.Names(), c.Mix), "mix", c.Mix, "one of "+strings.Join(profile.Names(), ", ")+", or nothing")
	l.Join("synth", c.Synth.Validate())
	return l.Err()
}

// Info says what a workload is, for the record of a result.
type Info struct {
	File      string `json:"file"`              // as the user named it; "synth:PROFILE" where jobs were generated
	Format    string `json:"format"`            // as found; FormatSynth where jobs were generated
	Read      int    `json:"read"`              // read so far: Jobs, Passed and Dropped together
	Jobs      int    `json:"jobs"`              // given so far: after Skip and up to Jobs of the configuration
	Passed    int    `json:"passed,omitempty"`  // over by Skip of the configuration
	Dropped   int    `json:"dropped"`           // left out, as Skipped says
	Skipped   []Skip `json:"skipped,omitempty"` // by reason
	Moved     int    `json:"moved"`             // jobs that stood after one of later submit and were put in order
	Repeated  int    `json:"repeated"`
	Assumed   int    `json:"assumed"`             // estimates that the log does not give and that were set to the run time (LoadTrace, swf)
	Timeless  bool   `json:"timeless,omitempty"`  // run times are not in the file: 0 for want of a table, or assumed by the reader
	Procs     int    `json:"procs,omitempty"`     // size of the machine according to the file's header, 0 = not said
	SHA256    string `json:"sha256,omitempty"`    // of the file as it lies on disk; "" for what is no ordinary file
	Seed      uint64 `json:"seed,omitempty"`      // of the generator, and of a mix
	Profiles  string `json:"profiles,omitempty"`  // the throughput table
	Reference string `json:"reference,omitempty"` // its type of GPU
	Mix       string `json:"mix,omitempty"`
}

// Skip counts what was left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// String describes the workload in one line.
func (i Info) String() string {
	var b strings.Builder
	if i.Format == FormatSynth {
		fmt.Fprintf(&b, "%s (seed %d): %s", i.File, i.Seed, Plural(i.Jobs, "job", "jobs"))
	} else {
		fmt.Fprintf(&b, "%s (%s): %s", i.File, i.Format, Plural(i.Jobs, "job", "jobs"))
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{i.Moved, "put in order of submit"}, {i.Repeated, "repeated (kept)"},
		{i.Assumed, "estimates taken from the run time"},
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
	if i.SHA256 != "" {
		fmt.Fprintf(&b, ", sha256 %.12s…", i.SHA256)
	}
	return b.String()
}

func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Trace is an open workload: a traces.Stream that counts. Not safe for concurrent use.
type Trace struct {
	stream   traces.Stream
	file     io.Closer // nil when nothing is open
	info     Info
	source   any // the format's reader, which knows what it dropped or moved
	profiled *profiled
	passing  int // jobs still to be passed over
	left     int // jobs still to be given, -1 = no limit
}

var _ traces.Stream = (*Trace)(nil)

// OpenTrace opens a workload for one reading. A file that is missing, damaged or of no known format, one whose run
// times need a throughput table that is not given, and a fault in the configuration, are *InputErrors. ctx ends the
// reading, now and later. The caller closes the result.
func OpenTrace(ctx context.Context, cfg TraceConfig) (*Trace, error) {
	t, err := OpenUntimed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if f := format(t.info.Format); f != nil && f.Profiles && cfg.Profiles == "" {
		_ = t.Close() // the mistake is the one to tell
		return nil, Mistake("trace %s: jobs of format %s tell their steps, not their run times; want --profiles (trace.profiles), the path of a throughput table from which they follow", cfg.File, f.Name)
	}
	return t, nil
}

// OpenUntimed is OpenTrace for those who look at jobs and do not run them: where a throughput table would be needed
// and is not given, jobs have a run time of 0 and Info.Timeless is set.
func OpenUntimed(ctx context.Context, cfg TraceConfig) (*Trace, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &InputError{err}
	}
	t := &Trace{passing: cfg.Skip, left: -1}
	if cfg.Jobs > 0 {
		t.left = cfg.Jobs
	}
	if cfg.File == "" {
		stream, err := synth.New(cfg.Synth, cfg.Seed)
		if err != nil {
			return nil, &InputError{err}
		}
		t.info = Info{File: "synth:" + cfg.Synth.Profile, Format: FormatSynth, Seed: cfg.Seed}
		t.stream = stream
		if err := t.profile(ctx, cfg); err != nil {
			return nil, &InputError{err}
		}
		return t, nil
	}
	named := cfg.File
	var err error
	if cfg.File, err = Located(named); err != nil {
		return nil, err
	}
	f, err := traces.OpenFile(cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Mistake("trace %s: there is no such file", cfg.File)
	} else if err != nil {
		return nil, &InputError{err}
	}
	t.file, t.info.File = f, named
	if err = t.Open(&ctxReader{ctx, f}, cfg); err == nil {
		err = t.profile(ctx, cfg)
	}
	if err != nil {
		_ = f.Close() // the first fault is the one to tell
		return nil, &InputError{err}
	}
	if t.info.SHA256, err = HashFile(ctx, cfg.File); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("trace %s: %w", cfg.File, err)
	}
	return t, nil
}

// open finds the format and puts its reader over r.
func (t *Trace) Open(r io.Reader, cfg TraceConfig) error {
	b := bufio.NewReaderSize(r, sniffed)
	t.info.Format = cfg.Format
	if cfg.Format == FormatAuto {
		head, err := b.Peek(sniffed)
		if err != nil && err != io.EOF {
			return err
		}
		if t.info.Format = sniff(head); t.info.Format == "" {
			return unknownFormat(cfg.File, head)
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
		jobs, err := traces.ReadAll(stream)
		if err != nil {
			return err
		}
		t.info.Moved = traces.SortStable(jobs)
		t.stream = &traces.Slice{Jobs: jobs}
	}
	return nil
}

// Next implements traces.Stream. A broken row is an *InputError around a *traces.RowError.
func (t *Trace) Next(j *traces.Job) error {
	for t.left != 0 {
		if err := t.stream.Next(j); err == io.EOF {
			return err
		} else if err != nil {
			return &InputError{err}
		}
		if t.profiled != nil && !t.profiled.complete(j) {
			continue
		}
		if t.passing > 0 {
			t.passing--
			t.info.Passed++
			continue
		}
		t.left = max(-1, t.left-1)
		t.info.Jobs++
		return nil
	}
	return io.EOF
}

// Info says what the workload is; counts are as of the jobs given so far.
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
	i := t.info
	for _, k := range skips.All() {
		i.Skipped = append(i.Skipped, Skip{k.Reason, k.Count})
	}
	i.Dropped = skips.Total()
	i.Read = i.Jobs + i.Passed + i.Dropped
	return i
}

// Header is what an SWF log says before its jobs, nil for other formats. The caller must not change it.
func (t *Trace) Header() swf.Header {
	if d, ok := t.source.(*swf.Reader); ok {
		return d.Header()
	}
	return nil
}

// Close closes the file. Closing twice is harmless.
func (t *Trace) Close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// LoadTrace reads a workload into memory, in order of submit. Unlike the stream of OpenTrace it completes swf
// logs: a job whose requested time is unknown (-1) gets its run time as estimate, as is customary with these
// logs, and Info.Assumed counts it. A workload without jobs is an *InputError.
func LoadTrace(cfg TraceConfig) ([]traces.Job, Info, error) {
	return LoadTraceContext(context.Background(), cfg)
}

func LoadTraceContext(ctx context.Context, cfg TraceConfig) ([]traces.Job, Info, error) {
	t, err := OpenTrace(ctx, cfg)
	if err != nil {
		return nil, Info{}, err
	}
	return t.load(cfg)
}

// LoadUntimed is LoadTrace for those who know run times from elsewhere, as OpenUntimed is OpenTrace.
func LoadUntimed(ctx context.Context, cfg TraceConfig) ([]traces.Job, Info, error) {
	t, err := OpenUntimed(ctx, cfg)
	if err != nil {
		return nil, Info{}, err
	}
	return t.load(cfg)
}

// load reads the whole workload and closes it.
func (t *Trace) load(cfg TraceConfig) ([]traces.Job, Info, error) {
	jobs, err := traces.ReadAll(t)
	if cerr := t.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, Info{}, err
	}
	if t.info.Format == FormatSWF {
		for i := range jobs {
			if jobs[i].Estimate == 0 {
				jobs[i].Estimate = jobs[i].Work
				t.info.Assumed++
			}
		}
	}
	info := t.Info()
	if len(jobs) == 0 {
		return nil, info, Mistake("trace %s: there are no jobs to read%s%s", info.File, AfterSkip(cfg.Skip), leftOut(info.Skipped))
	}
	return jobs, info, nil
}

func AfterSkip(skip int) string {
	if skip > 0 {
		return fmt.Sprintf(" after the first %d", skip)
	}
	return ""
}

// leftOut says what was left out, where that may be why there is nothing.
func leftOut(skipped []Skip) string {
	var b strings.Builder
	for _, k := range skipped {
		fmt.Fprintf(&b, "; %d left out (%s)", k.Count, k.Reason)
	}
	return b.String()
}

// NewCtxReader returns a reader of r that fails with ctx's error once ctx is done.
func NewCtxReader(ctx context.Context, r io.Reader) io.Reader { return &ctxReader{ctx, r} }

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// hashFile is the SHA-256 of an ordinary file, "" of anything else (a pipe can be read only once).
func HashFile(ctx context.Context, path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
