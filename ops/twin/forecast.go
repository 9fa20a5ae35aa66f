package twin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
)

// Levels are the levels of a forecast's quantiles: those of intervals of 90, 80 and 50 %, and the median.
var Levels = [levels]float64{0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95}

const (
	levels = 7
	median = 3
)

// Seconds is a time from the forecast on. In JSON it is null if that is beyond the horizon.
type Seconds float64

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(s), 0) || math.IsNaN(float64(s)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(s)*10)/10, 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*s = Seconds(math.Inf(1))
		return nil
	}
	return json.Unmarshal(b, (*float64)(s))
}

// Quantiles are the quantiles at Levels.
type Quantiles [levels]Seconds

// quantiles returns those of sorted values, in seconds; never is infinite.
func quantiles(sorted []float64) (q Quantiles) {
	for i, p := range Levels {
		q[i] = Seconds(quantile(sorted, p))
	}
	return q
}

// quantile returns the quantile at level p of sorted draws: the value that a further draw does not exceed with this
// chance.
func quantile(v []float64, p float64) float64 {
	x := min(max(p*float64(len(v)+1)-1, 0), float64(len(v)-1))
	i := int(x)
	w := x - float64(i)
	if w == 0 || i+1 == len(v) {
		return v[i]
	}
	if math.IsInf(v[i+1], 1) {
		return v[i+1]
	}
	return v[i] + w*(v[i+1]-v[i])
}

// Stretch moves intervals: medians by the factor Median, what lies below and above them by the power Spread of their
// distance.
type Stretch struct {
	Median float64 `json:"median"`
	Spread float64 `json:"spread"`
}

func (s Stretch) valid() bool {
	ok := func(x float64) bool { return x >= 0.1 && x <= 10 }
	return ok(s.Median) && ok(s.Spread)
}

func (s Stretch) String() string { return fmt.Sprintf("%.3g,%.3g", s.Median, s.Spread) }

// ParseStretch reads MEDIAN,SPREAD.
func ParseStretch(text string) (Stretch, error) {
	a, b, _ := strings.Cut(text, ",")
	m, e1 := strconv.ParseFloat(a, 64)
	d, e2 := strconv.ParseFloat(b, 64)
	s := Stretch{m, d}
	if e1 != nil || e2 != nil || !s.valid() {
		return s, fault.Mistakef("%s: got %q, want two factors from 0.1 to 10, as 1.2,1.5", fault.Key("recalibrate"), text)
	}
	return s, nil
}

// of returns q moved.
func (s Stretch) of(q Quantiles) Quantiles {
	m := float64(q[median])
	if s == (Stretch{1, 1}) || s == (Stretch{}) || m <= 0 || math.IsInf(m, 1) {
		return q
	}
	for i := range q {
		if x := float64(q[i]); !math.IsInf(x, 1) {
			q[i] = Seconds(s.Median * m * math.Pow(x/m, s.Spread))
		}
	}
	return q
}

// JobForecast is when a job that waits starts.
type JobForecast struct {
	ID      string    `json:"id"`
	User    string    `json:"user,omitempty"`
	VC      string    `json:"vc,omitempty"`
	GPUs    int       `json:"gpus"`
	Submit  time.Time `json:"submit"`
	Start   Quantiles `json:"start_s"`             // from now on
	Beyond  float64   `json:"beyond,omitempty"`    // share of the draws in which it does not start within the horizon
	Planned Seconds   `json:"planned_s,omitempty"` // when the cluster itself expects it to start
	Note    string    `json:"note,omitempty"`
}

// EndForecast is when a job that runs ends.
type EndForecast struct {
	ID    string    `json:"id"`
	User  string    `json:"user,omitempty"`
	GPUs  int       `json:"gpus"`
	Start time.Time `json:"start"`
	End   Quantiles `json:"end_s"` // from now on
}

// RoomForecast is when so many GPUs are free.
type RoomForecast struct {
	GPUs    int       `json:"gpus"`
	OneNode bool      `json:"one_node"`
	Next    Quantiles `json:"next_s"` // for whoever is next in line: if nothing that waits starts before
	Idle    Quantiles `json:"idle_s"` // beside all that the cluster starts
}

// Effect is what a change makes of a mean, draw by draw.
type Effect struct {
	What   string     `json:"what"`
	GPUs   string     `json:"gpus,omitempty"` // of what sizes
	Jobs   int        `json:"jobs,omitempty"`
	Base   float64    `json:"base"`
	Then   float64    `json:"then"`
	Change float64    `json:"change"`
	CI     [2]float64 `json:"ci95"`  // of the mean change
	Draws  [2]float64 `json:"draws"` // between which 80 % of the draws lie
}

// WhatIf is a change and its effects.
type WhatIf struct {
	Name    string         `json:"name"`
	Effects []Effect       `json:"effects"` // in seconds, or GPU hours
	Jobs    []JobForecast  `json:"jobs,omitempty"`
	Room    []RoomForecast `json:"room,omitempty"`
	Note    string         `json:"note,omitempty"`
}

// Report is a forecast of a cluster.
type Report struct {
	At        time.Time      `json:"at"`
	Cluster   string         `json:"cluster"`
	Scheduler string         `json:"scheduler"`
	Estimates string         `json:"estimates"`
	Arrivals  string         `json:"arrivals"`
	Draws     int            `json:"draws"`
	Seed      uint64         `json:"seed"`
	Horizon   float64        `json:"horizon_s"`
	Interval  int            `json:"interval"`
	Stretch   *Stretch       `json:"recalibrated,omitempty"`
	Waiting   []JobForecast  `json:"waiting"`
	Running   []EndForecast  `json:"running"`
	Blocked   []BlockedJob   `json:"blocked,omitempty"`
	Room      []RoomForecast `json:"room"`
	WhatIfs   []WhatIf       `json:"what_ifs,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	Took      float64        `json:"took_s"`
}

// Forecast plays the draws of a state, and those of the changes.
func Forecast(ctx context.Context, cfg *Config, st *State, changes []Change) (*Report, error) {
	if cfg.Arrives && cfg.Able && !enough(cfg.History) {
		alone := *cfg
		alone.Arrives = false
		cfg = &alone
	}
	causal := cfg.Scheduler.causal()
	for i := range changes {
		causal = causal || changes[i].policy != nil && changes[i].policy.causal()
	}
	c, err := newCaster(cfg, causal)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	base, err := newStage(st, cfg, Change{})
	if err != nil {
		return nil, err
	}
	stages := make([]*stage, len(changes))
	changes = slices.Clone(changes)
	for i := range changes { // mistakes first
		if changes[i], err = changes[i].typed(st); err != nil {
			return nil, err
		}
		if stages[i], err = newStage(st, cfg, changes[i]); err != nil {
			return nil, err
		}
	}
	d, err := c.cast(ctx, st, base, cfg.Draws)
	if err != nil {
		return nil, err
	}
	r := &Report{
		At: st.At, Cluster: st.Cluster, Scheduler: cfg.Scheduler.Name, Estimates: cfg.Predictor.Label(), Arrivals: "none",
		Draws: cfg.Draws, Seed: cfg.Seed,
		Horizon: cfg.Horizon.Seconds(), Interval: cfg.Interval, Waiting: []JobForecast{}, Running: []EndForecast{},
		Room:    base.room(d),
		Blocked: slices.Clone(st.Blocked),
	}
	if cfg.Stretch != (Stretch{1, 1}) {
		r.Stretch = &cfg.Stretch
	}
	r.Waiting, r.Running, r.Blocked = base.jobsOf(cfg, st, d, r.Blocked)
	// The first ones of a long list are those that start or end next.
	slices.SortStableFunc(r.Waiting, func(a, b JobForecast) int { return a.Start.compare(&b.Start) })
	slices.SortStableFunc(r.Running, func(a, b EndForecast) int { return a.End.compare(&b.End) })
	if cfg.Arrives {
		r.Arrivals = "history"
		if err := c.without(ctx, st, base, d, r); err != nil {
			return nil, err
		}
	}
	r.notes(st, d)
	for i := range changes {
		w, err := c.whatIf(ctx, st, base, d, stages[i], &changes[i])
		if err != nil {
			return nil, err
		}
		r.WhatIfs = append(r.WhatIfs, *w)
	}
	return r, nil
}

// column returns what draws say of a job or a kind of room, sorted, in seconds.
func column(of [][]time.Duration, i int) []float64 {
	v := make([]float64, len(of))
	for k := range of {
		v[k] = seconds(of[k][i])
	}
	slices.Sort(v)
	return v
}

func seconds(d time.Duration) float64 {
	if d == never {
		return math.Inf(1)
	}
	return d.Seconds()
}

// jobsOf returns the forecasts of jobs. Those that can never run are added to blocked.
func (s *stage) jobsOf(cfg *Config, st *State, d *draws,
	blocked []BlockedJob) (waiting []JobForecast, running []EndForecast, _ []BlockedJob) {
	waiting, running = []JobForecast{}, []EndForecast{}
	time0 := func(t time.Duration) time.Time { return st.At.Add(t - st.Now) }
	for i := range s.jobs {
		j := &s.jobs[i]
		switch {
		case j.Runs:
			running = append(running,
				EndForecast{ID: j.ID, User: j.User, GPUs: j.GPUs, Start: time0(j.Start), End: quantiles(column(d.end, i))})
		case !s.can[i]:
			why := "the cluster could never run it: too few GPUs of the types that it asks for"
			if j.Unfit {
				why = "no node, or not as many as it asks for, could ever run it"
			}
			blocked = append(blocked, BlockedJob{j.ID, j.GPUs, why})
		default:
			v := column(d.start, i)
			f := JobForecast{ID: j.ID, User: j.User, VC: j.VC, GPUs: j.GPUs, Submit: time0(j.Submit),
				Start: cfg.Stretch.of(quantiles(v)), Note: j.Tied}
			if !j.Planned.IsZero() {
				f.Planned = Seconds(max(0, j.Planned.Sub(st.At).Seconds()))
			}
			for _, x := range v {
				if math.IsInf(x, 1) {
					f.Beyond += 1 / float64(len(v))
				}
			}
			waiting = append(waiting, f)
		}
	}
	return waiting, running, blocked
}

// compare orders by the median, then by the other quantiles.
func (q *Quantiles) compare(o *Quantiles) int {
	if c := cmp.Compare(q[median], o[median]); c != 0 {
		return c
	}
	return slices.Compare(q[:], o[:])
}

func (s *stage) room(d *draws) []RoomForecast {
	list := []RoomForecast{}
	for i, k := range rooms(s.sim.View().Cluster()) {
		list = append(list, RoomForecast{k.gpus, k.node, quantiles(column(d.next, i)), quantiles(column(d.idle, i))})
	}
	return list
}

// without says what arrivals change, by some of the draws without them.
func (c *caster) without(ctx context.Context, st *State, base *stage, d *draws, r *Report) error {
	alone := *c
	alone.arrivals = nil
	n := min(c.cfg.Draws, 50)
	e, err := alone.cast(ctx, st, base, n)
	if err != nil {
		return err
	}
	with, free := statistic.Mean(d.wait[:n]), statistic.Mean(e.wait)
	if free > 0 && with > 0 && math.Abs(1-free/with) >= 0.005 {
		r.Notes = append(r.Notes,
			fmt.Sprintf(
				"Jobs that arrive later are drawn from the history; without them the waits from now on would be %.0f %% shorter "+
					"(mean of %d draws: %s instead of %s).",
				100*(1-free/with), n, hours(free), hours(with)))
	}
	return nil
}

// notes adds what a reader should know.
func (r *Report) notes(st *State, d *draws) {
	tied, late, unknown, known := 0, 0, 0, 0
	for i := range r.Waiting {
		if r.Waiting[i].Note != "" {
			tied++
		}
	}
	for i := range st.Jobs {
		j := &st.Jobs[i]
		if j.Unfit {
			continue
		}
		if known++; !j.Told || j.Forecast.Seen == 0 {
			unknown++
		}
	}
	for _, n := range d.late {
		late = max(late, n)
	}
	if tied > 0 {
		r.Notes = append(r.Notes,
			plain.Count(tied, "waiting job",
				"waiting jobs")+" may not run everywhere, which the forecasts do not know: theirs are too early.")
	}
	if unknown > 0 {
		r.Notes = append(r.Notes,
			fmt.Sprintf(
				"Nothing is known of %d of %s but their time limits, so their run times are drawn evenly up to those; want "+
					"--history.", unknown, plain.Count(known, "job", "jobs")))
	}
	if late > 0 {
		r.Notes = append(r.Notes,
			fmt.Sprintf("In some draws up to %s not start within the horizon of %s.", plain.Count(late, "job does", "jobs do"),
				hours(r.Horizon)))
	}
	if n := len(st.Down); n > 0 {
		r.Notes = append(r.Notes,
			fmt.Sprintf("%d of %s no jobs, and the forecasts let that stay so.", n,
				plain.Count(len(st.Nodes), "node takes", "nodes take")))
	}
}

// whatIf plays the draws of a change and compares them with the base's.
func (c *caster) whatIf(ctx context.Context, st *State, base *stage, d *draws, s *stage,
	change *Change) (*WhatIf, error) {
	e, err := c.cast(ctx, st, s, c.cfg.Draws)
	if err != nil {
		return nil, err
	}
	w := &WhatIf{Name: change.Name, Note: change.note}
	all, _, _ := s.jobsOf(c.cfg, st, e, nil)
	for k := range base.jobs { // the forecast has no time for them to compare with
		if j := &base.jobs[k]; !j.Runs && !base.can[k] && s.can[k] {
			if i := slices.IndexFunc(all, func(f JobForecast) bool { return f.ID == j.ID }); i >= 0 {
				w.Jobs = append(w.Jobs, all[i])
			}
		}
	}
	if n := len(change.submit); n > 0 {
		w.Jobs = all[max(0, len(all)-n):]
		if !s.can[len(s.jobs)-1] {
			w.Note = "the cluster could never run it: it has not so many GPUs"
			w.Jobs = nil
		}
	}
	if change.add != nil || change.drain != nil || change.rack != "" {
		w.Room = s.room(e)
	}
	classes, of := sizes(base.jobs, base.can)
	means := func(x *draws, i int, class string) (mean float64, n int) {
		for k := range base.jobs {
			j := &base.jobs[k]
			if j.Runs || !base.can[k] || class != "" && of[k] != class {
				continue
			}
			n++
			mean += min(seconds(x.start[i][k]), c.cfg.Horizon.Seconds())
		}
		return mean / float64(max(1, n)), n
	}
	add := func(what, class string, jobs int, a, b []float64) {
		x := Effect{What: what, GPUs: class, Jobs: jobs, Base: statistic.Mean(a), Then: statistic.Mean(b)}
		x.Change, x.CI = statistic.Difference(c.cfg.Seed, "twin/"+what+class, b, a)
		diff := make([]float64, len(a))
		for i := range a {
			diff[i] = b[i] - a[i]
		}
		slices.Sort(diff)
		x.Draws = [2]float64{quantile(diff, .1), quantile(diff, .9)}
		w.Effects = append(w.Effects, x)
	}
	if len(classes) > 0 {
		for k, class := range append([]string{""}, classes...) {
			if k == 1 && len(classes) == 1 {
				break
			}
			a, b, n := make([]float64, c.cfg.Draws), make([]float64, c.cfg.Draws), 0
			for i := range a {
				a[i], n = means(d, i, class)
				b[i], _ = means(e, i, class)
			}
			add("wait", class, n, a, b)
		}
		add("lost", "", 0, d.lost, e.lost)
	}
	if len(w.Effects)+len(w.Jobs) == 0 && w.Note == "" {
		w.Note = "No job waits whose start this could change."
	}
	return w, nil
}

// sizes divides the waiting jobs that can run by GPUs: each size by itself if there are few, else up to powers of two.
func sizes(jobs []Job, can []bool) (classes []string, of []string) {
	of = make([]string, len(jobs))
	count := map[int]bool{}
	for i := range jobs {
		if !jobs[i].Runs && can[i] {
			count[jobs[i].GPUs] = true
		}
	}
	upper := map[string]int{}
	for i := range jobs {
		j := &jobs[i]
		if j.Runs || !can[i] {
			continue
		}
		n := j.GPUs
		of[i] = strconv.Itoa(n)
		if len(count) > 6 {
			top := 1
			for top < n {
				top *= 2
			}
			n = top
			if of[i] = strconv.Itoa(top); top > 2 {
				of[i] = fmt.Sprintf("%d–%d", top/2+1, top)
			}
		}
		upper[of[i]] = n
	}
	for name := range upper {
		classes = append(classes, name)
	}
	slices.SortFunc(classes, func(a, b string) int { return upper[a] - upper[b] })
	return classes, of
}
