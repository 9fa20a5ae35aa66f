package experiments

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/csv"
	"clustergym/traces/philly"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

// TraceConfig says where jobs come from: a file in one of Formats, or, without a file, a generator.
type TraceConfig struct {
	File   string `yaml:"file"`   // plain, gzip or zstd; "" = generate jobs as synth says
	Format string `yaml:"format"` // auto (by content), csv, swf or philly
	Sort   bool   `yaml:"sort"`   // put csv and swf jobs in order of submit, instead of refusing a file that is not
	Skip   int    `yaml:"skip"`   // leave out the first jobs, counted after what the reader itself drops
	Jobs   int    `yaml:"jobs"`   // take so many jobs; 0 = all
	// Seed is of the generator. It is apart from the seed of a training run, so that runs with several seeds
	// see one workload.
	Seed  uint64       `yaml:"seed"`
	Synth synth.Config `yaml:"synth"` // the generator
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
	l.Join("synth", c.Synth.Validate())
	return l.Err()
}

// Info says what a workload is, for the record of a result.
type Info struct {
	File     string `json:"file"`   // as the user named it; "synth:PROFILE" where jobs were generated
	Format   string `json:"format"` // as found; FormatSynth where jobs were generated
	Jobs     int    `json:"jobs"`   // given so far: after Skip and up to Jobs of the configuration
	Moved    int    `json:"moved"`  // rows that stood after one of later submit and were put in order
	Repeated int    `json:"repeated"`
	Dropped  int    `json:"dropped"`          // rows that the reader left out: no run time, or no size
	Assumed  int    `json:"assumed"`          // estimates that the log does not give and that were set to the run time (LoadTrace, swf)
	Procs    int    `json:"procs,omitempty"`  // size of the machine according to the file's header, 0 = not said
	SHA256   string `json:"sha256,omitempty"` // of the file as it lies on disk; "" for what is no ordinary file
	Seed     uint64 `json:"seed,omitempty"`   // of the generator
}

// String describes the workload in one line.
func (i Info) String() string {
	var b strings.Builder
	if i.Format == FormatSynth {
		fmt.Fprintf(&b, "%s (seed %d): %s", i.File, i.Seed, plural(i.Jobs, "job", "jobs"))
	} else {
		fmt.Fprintf(&b, "%s (%s): %s", i.File, i.Format, plural(i.Jobs, "job", "jobs"))
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{i.Moved, "put in order of submit"}, {i.Repeated, "repeated (kept)"},
		{i.Dropped, "dropped by the reader"}, {i.Assumed, "estimates taken from the run time"},
	} {
		if n.count > 0 {
			fmt.Fprintf(&b, ", %d %s", n.count, n.what)
		}
	}
	if i.SHA256 != "" {
		fmt.Fprintf(&b, ", sha256 %.12s…", i.SHA256)
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Trace is an open workload: a traces.Stream that counts. Not safe for concurrent use.
type Trace struct {
	stream traces.Stream
	file   io.Closer // nil when nothing is open
	info   Info
	source any // the format's reader, which knows what it dropped or moved
}

var _ traces.Stream = (*Trace)(nil)

// OpenTrace opens a workload for one reading. A file that is missing, damaged or of no known format, and a fault
// in the configuration, are *InputErrors. ctx ends the reading, now and later. The caller closes the result.
func OpenTrace(ctx context.Context, cfg TraceConfig) (*Trace, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &InputError{err}
	}
	t := &Trace{}
	if cfg.File == "" {
		jobs, err := synth.Generate(cfg.Synth, cfg.Seed)
		if err != nil {
			return nil, &InputError{err}
		}
		t.info = Info{File: "synth:" + cfg.Synth.Profile, Format: FormatSynth, Seed: cfg.Seed}
		t.stream = traces.Clip(&traces.Slice{Jobs: jobs}, cfg.Skip, cfg.Jobs)
		return t, nil
	}
	f, err := traces.OpenFile(cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mistake("trace %s: there is no such file", cfg.File)
	} else if err != nil {
		return nil, &InputError{err}
	}
	t.file, t.info.File = f, cfg.File
	if err := t.open(&ctxReader{ctx, f}, cfg); err != nil {
		_ = f.Close() // the first fault is the one to tell
		return nil, &InputError{err}
	}
	if t.info.SHA256, err = hashFile(ctx, cfg.File); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("trace %s: %w", cfg.File, err)
	}
	t.stream = traces.Clip(t.stream, cfg.Skip, cfg.Jobs)
	return t, nil
}

// open finds the format and puts its reader over r.
func (t *Trace) open(r io.Reader, cfg TraceConfig) error {
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
	switch t.info.Format {
	case FormatCSV:
		d, err := csv.NewReader(b, cfg.File, csv.Options{Unsorted: cfg.Sort})
		if err != nil {
			return err
		}
		t.stream = d
	case FormatSWF:
		d, err := swf.NewReader(b, cfg.File, swf.Options{Unsorted: cfg.Sort})
		if err != nil {
			return err
		}
		t.stream, t.source, t.info.Procs = d, d, d.Header().Procs()
	case FormatPhilly:
		d, err := philly.NewReader(b, cfg.File)
		if err != nil {
			return err
		}
		t.stream, t.info.Moved, t.info.Repeated = d, d.Moved(), d.Repeated()
		return nil
	}
	if cfg.Sort {
		jobs, err := traces.ReadAll(t.stream)
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
	err := t.stream.Next(j)
	switch {
	case err == nil:
		t.info.Jobs++
		return nil
	case err == io.EOF:
		return err
	}
	return &InputError{err}
}

// Info says what the workload is; counts are as of the jobs given so far.
func (t *Trace) Info() Info {
	if d, ok := t.source.(*swf.Reader); ok {
		t.info.Dropped = d.Dropped()
	}
	return t.info
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
	return loadTrace(context.Background(), cfg)
}

func loadTrace(ctx context.Context, cfg TraceConfig) ([]traces.Job, Info, error) {
	t, err := OpenTrace(ctx, cfg)
	if err != nil {
		return nil, Info{}, err
	}
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
		return nil, info, mistake("trace %s: there are no jobs to read%s", info.File, afterSkip(cfg.Skip))
	}
	return jobs, info, nil
}

func afterSkip(skip int) string {
	if skip > 0 {
		return fmt.Sprintf(" after the first %d", skip)
	}
	return ""
}

// ctxReader reads until ctx is done.
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
func hashFile(ctx context.Context, path string) (string, error) {
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

// The names of formats.
const (
	FormatAuto   = "auto"
	FormatCSV    = "csv"
	FormatSWF    = "swf"
	FormatPhilly = "philly"
	FormatSynth  = "synth" // of a generated workload; no file has it
)

// Format is one trace format that can be read.
type Format struct {
	Name    string `json:"name"`
	What    string `json:"what"`     // one line
	KnownBy string `json:"known_by"` // how auto recognises it
	Sorted  bool   `json:"sorted"`   // rows must be in order of submit, unless --sort
	Columns string `json:"columns"`
}

// Formats are the trace formats that can be read.
func Formats() []Format {
	return []Format{
		{FormatCSV, "the native format: a CSV file with a header; other columns are kept as labels",
			"a header with submit_time, duration and num_gpu", true,
			"submit_time, duration (seconds), num_gpu (below 1: a share of one GPU); optional job_id, user, vc, gpu_type (alternatives joined by |), " +
				"num_cpu, mem_gb, estimate, model, iterations, deadline, priority, min_gpu, max_gpu, status"},
		{FormatSWF, "Standard Workload Format 2.2 of the Parallel Workloads Archive; processors are counted where GPUs are",
			"; comments, or lines of 18 numbers between blanks", true,
			"18 fields in fixed order, -1 where unknown; rows without run time or size are dropped and counted"},
		{FormatPhilly, "the job table of Microsoft's Philly trace (ATC 2019)",
			"a header with timestamp, duration, num_gpus and cluster", false,
			"timestamp (as 2017-10-09 07:01:55), duration (seconds), num_gpus, gpu_time, cluster; any order of rows"},
	}
}

// FormatNames are the values of TraceConfig.Format.
func FormatNames() []string {
	names := []string{FormatAuto}
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

func knownFormat(name string) bool {
	for _, n := range FormatNames() {
		if n == name {
			return true
		}
	}
	return false
}

// sniffed is how many bytes from the beginning of a file may tell its format.
const sniffed = 1 << 16

// sniff tells the format of a file by its first line with anything on it, "" where it is none that is known. A
// header with only some of a format's columns counts for that format, whose reader then names what is missing.
func sniff(head []byte) string {
	line := firstLine(head)
	if len(line) == 0 {
		return ""
	}
	if line[0] == ';' {
		return FormatSWF
	}
	if f := bytes.Fields(line); len(f) >= 18 && allNumbers(f[:18]) {
		return FormatSWF
	}
	has := map[string]bool{}
	for _, c := range bytes.Split(line, []byte{','}) {
		has[strings.Trim(string(c), " \t\"\r")] = true
	}
	count := func(names ...string) (n int) {
		for _, name := range names {
			if has[name] {
				n++
			}
		}
		return n
	}
	native, table := count("submit_time", "duration", "num_gpu"), count("timestamp", "duration", "num_gpus", "cluster")
	switch {
	case native >= 2 && native >= table:
		return FormatCSV
	case table >= 2:
		return FormatPhilly
	}
	return ""
}

// firstLine is the first line that is not blank, without a byte order mark and blanks around it.
func firstLine(head []byte) []byte {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line
		}
		head = rest
	}
	return nil
}

func allNumbers(fields [][]byte) bool {
	for _, f := range fields {
		if _, _, err := traces.Decimal(string(f), 9); err != nil {
			return false
		}
	}
	return true
}

func unknownFormat(file string, head []byte) error {
	line := firstLine(head)
	if len(line) == 0 {
		return fmt.Errorf("trace %s: the file is empty", file)
	}
	const most = 60
	shown := string(line)
	if len(shown) > most {
		shown = shown[:most] + "…"
	}
	var known []string
	for _, f := range Formats() {
		known = append(known, fmt.Sprintf("%s (%s)", f.Name, f.KnownBy))
	}
	return fmt.Errorf("trace %s: its first line, %q, is of no known format; known are %s", file, shown, strings.Join(known, ", "))
}
