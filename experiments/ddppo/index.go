package ddppo

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/rng"
	"clustergym/lab/predictors"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// recordBytes is the size of a record: submit, run time and request in ns, then processors and user.
const recordBytes = 8 + 8 + 8 + 4 + 4

// noUser is the user of a job without one, and assumed is added to a user whose job has no requested time.
const (
	noUser  = 0
	assumed = 1 << 31
)

// index is the file of a log's records, of which windows are read when they are drawn. It implements sched.Foresight.
// Safe for concurrent use.
type index struct {
	file     *os.File
	jobs     int
	training [2]int        // first and last + 1 of the jobs that training windows are drawn from
	window   int           // jobs of a window
	held     time.Duration // when the held-out weeks begin
	warm     int           // the first job of the weeks before
	procs    int
	maxima   []traces.Job // a job with the greatest values of the training part
	archive  []traces.Job // what predictors of windows have seen

	makers sync.Mutex
	made   map[string]predict.Maker // by estimates; all environments share them
}

var _ sched.Foresight = (*index)(nil)

// makeIndex reads the log at from and writes its records to path. It returns rows that describe it. jobs is how many
// jobs were generated, 0 for a recorded log.
func makeIndex(ctx context.Context, b *study.Bench, from, path string, jobs int) (rows []study.Row, err error) {
	l, err := openLog(ctx, from)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // open for reading only
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	var (
		j           traces.Job
		rec         [recordBytes]byte
		n           int
		area        float64 // processors times seconds
		first, last time.Duration
		known       = users{}
	)
	for {
		err := l.Next(&j)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if j.GPUs > l.procs {
			return nil, fault.Mistakef("log %s: job %s asks for %d processors, and the machine has %d by the header's MaxProcs",
				from, j.ID, j.GPUs, l.procs)
		}
		if n++; n%65536 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			b.Progress(int64(n), int64(jobs))
		}
		if n == 1 {
			first = j.Submit
		}
		last = j.Submit
		area += j.Work.Seconds() * float64(j.GPUs)
		encode(rec[:], &j, known.number(j.User))
		if _, err := w.Write(rec[:]); err != nil {
			return nil, err
		}
	}
	if n < 2 || last <= first {
		return nil, fault.Mistakef("log %s: it has %d jobs that ran, want some weeks of them", from, n)
	}
	span := last - first
	row := study.RowOf("log", map[string]string{"log": logName(jobs)})
	return []study.Row{
		row("jobs", float64(n)), row("procs", float64(l.procs)), row("weeks", float64(span)/float64(week)),
		row("dropped", float64(l.Info().Dropped)), row("load", area/(span.Seconds()*float64(l.procs))),
		row("users", float64(len(known))),
	}, w.Flush()
}

// users are the numbers of users.
type users map[string]uint32

// number returns a user's number: the one of the log, which numbers users, or else the next one.
func (u users) number(name string) uint32 {
	if name == "" {
		return noUser
	}
	n, ok := u[name]
	if !ok {
		n = uint32(len(u) + 1)
		if own, err := strconv.ParseUint(name, 10, 30); err == nil && own > 0 {
			n = uint32(own)
		}
		u[name] = n
	}
	return n
}

// logName is how tables call the log.
func logName(generated int) string {
	if generated == 0 {
		return "recorded"
	}
	return "generated"
}

// open opens the records that makeIndex has written to path, where its cell said rows.
func (s *settings) open(path string, rows []study.Row) (*index, error) {
	f, err := ordinary.Open(path)
	if err != nil {
		return nil, err
	}
	x := &index{file: f, window: s.Window}
	most := traces.Job{ID: "greatest", GPUs: 1, GPUMilli: 1000}
	for _, r := range rows {
		switch r.Metric {
		case "work":
			most.Work = time.Duration(r.Value)
		case "estimate":
			most.Estimate = time.Duration(r.Value)
		case "user":
			most.User = strconv.Itoa(int(r.Value))
		case "jobs":
			x.jobs = int(r.Value)
		case "procs":
			x.procs = int(r.Value)
		}
	}
	x.maxima = []traces.Job{most}
	if err := x.cut(s); err != nil {
		_ = f.Close() // it was read only
		return nil, err
	}
	return x, nil
}

// cut finds the parts of the log.
func (x *index) cut(s *settings) error {
	var failed error
	submit := func(i int) time.Duration {
		var one [1]traces.Job
		if err := x.read(one[:], i); err != nil {
			failed = err
		}
		return one[0].Submit
	}
	last := submit(x.jobs - 1)
	x.held = last - time.Duration(s.Held)*week
	warm := x.held - time.Duration(s.Warm)*week
	x.warm = sort.Search(x.jobs, func(i int) bool { return submit(i) > warm })
	x.training = [2]int{s.Archive, x.warm}
	if failed != nil {
		return failed
	}
	if n := x.warm - s.Archive; n < 10*x.window {
		return fault.Mistakef(
			"the log has %d jobs for training before its last %d weeks and after the first %d jobs, want %d or more: held, "+
				"warm or archive is too much",
			max(0, n), s.Held+s.Warm, s.Archive, 10*x.window)
	}
	x.archive = make([]traces.Job, s.Archive)
	return x.read(x.archive, 0)
}

// greatest returns the greatest values of the training part and the jobs before it, to which observations are scaled.
func (x *index) greatest() ([]study.Row, error) {
	var work, estimate time.Duration
	user := 0
	chunk := make([]traces.Job, 4096)
	for at := 0; at < x.warm; at += len(chunk) {
		part := chunk[:min(len(chunk), x.warm-at)]
		if err := x.read(part, at); err != nil {
			return nil, err
		}
		for i := range part {
			work, estimate = max(work, part[i].Work), max(estimate, part[i].Estimate)
			if u, err := strconv.Atoi(part[i].User); err == nil {
				user = max(user, u)
			}
		}
	}
	row := study.RowOf("greatest", nil)
	return []study.Row{row("work", float64(work)), row("estimate", float64(estimate)), row("user", float64(user))}, nil
}

// Close closes the file.
func (x *index) Close() error { return x.file.Close() }

// read reads the jobs from number at on.
func (x *index) read(dst []traces.Job, at int) error {
	if len(dst) == 0 {
		return nil
	}
	raw := make([]byte, len(dst)*recordBytes)
	if _, err := x.file.ReadAt(raw, int64(at)*recordBytes); err != nil {
		return fmt.Errorf("ddppo: jobs %d to %d: %w", at, at+len(dst)-1, err)
	}
	for i := range dst {
		decode(&dst[i], raw[i*recordBytes:])
	}
	return nil
}

// encode writes the record of a job of the user of that number.
func encode(raw []byte, j *traces.Job, user uint32) {
	if j.Assumed {
		user |= assumed
	}
	binary.LittleEndian.PutUint64(raw[0:], uint64(j.Submit))
	binary.LittleEndian.PutUint64(raw[8:], uint64(j.Work))
	binary.LittleEndian.PutUint64(raw[16:], uint64(j.Estimate))
	binary.LittleEndian.PutUint32(raw[24:], uint32(j.GPUs))
	binary.LittleEndian.PutUint32(raw[28:], user)
}

// decode reads what encode has written.
func decode(j *traces.Job, raw []byte) {
	*j = traces.Job{
		Submit: time.Duration(binary.LittleEndian.Uint64(raw[0:])), Work: time.Duration(binary.LittleEndian.Uint64(raw[8:])),
		Estimate: time.Duration(binary.LittleEndian.Uint64(raw[16:])), GPUs: int(binary.LittleEndian.Uint32(raw[24:])),
		GPUMilli: 1000,
	}
	user := binary.LittleEndian.Uint32(raw[28:])
	j.Assumed = user&assumed != 0
	if user &^= assumed; user != noUser {
		j.User = userName(user)
	}
}

// names are those of the users of most logs.
var names = func() (all [1024]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

func userName(user uint32) string {
	if int(user) < len(names) {
		return names[user]
	}
	return strconv.Itoa(int(user))
}

// At implements sched.Windows: a window anywhere in the training part, drawn from seed. There are no others.
func (x *index) At(p traces.Part, seed uint64, window int) (w traces.Window, err error) {
	if p != traces.Training || window >= 0 {
		return w, fmt.Errorf("ddppo: only training windows that are drawn can be had, not number %d of the %v part",
			window, p)
	}
	var pcg rand.PCG
	rng.Seed(&pcg, seed, "ddppo/window")
	w.First = x.training[0] + rand.New(&pcg).IntN(x.training[1]-x.training[0]-x.window+1)
	w.Jobs, w.Counted = make([]traces.Job, x.window), x.window
	return w, x.read(w.Jobs, w.First)
}

// Predictor implements sched.Foresight.
func (x *index) Predictor(est sim.Estimates) (predict.Maker, error) {
	x.makers.Lock()
	defer x.makers.Unlock()
	if m, ok := x.made[est.String()]; ok {
		return m, nil
	}
	m, err := predictors.Maker(est, x.archive)
	if err != nil {
		return nil, err
	}
	if x.made == nil {
		x.made = map[string]predict.Maker{}
	}
	x.made[est.String()] = m
	return m, nil
}

// stream reads the jobs from number at on, on a clock that begins with the first.
func (x *index) stream(at int) *records {
	from := int64(at) * recordBytes
	return &records{r: bufio.NewReaderSize(io.NewSectionReader(x.file, from, int64(x.jobs)*recordBytes-from), 1<<16)}
}

// records is a stream of an index's jobs.
type records struct {
	r     *bufio.Reader
	first time.Duration
	begun bool
	raw   [recordBytes]byte
}

// Next implements traces.Stream.
func (r *records) Next(j *traces.Job) error {
	if _, err := io.ReadFull(r.r, r.raw[:]); err != nil {
		return err
	}
	decode(j, r.raw[:])
	if !r.begun {
		r.first, r.begun = j.Submit, true
	}
	j.Submit -= r.first
	return nil
}
