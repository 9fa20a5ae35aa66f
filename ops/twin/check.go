package twin

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
)

// Coverage is how often starts fell into intervals.
type Coverage struct {
	Interval int         `json:"interval"`
	Share    float64     `json:"share"`
	Least    float64     `json:"at_least"` // share if all that are unresolved had missed
	CI       *[2]float64 `json:"ci95,omitempty"`
	Early    float64     `json:"earlier"` // share of the starts that came before the interval
	Late     float64     `json:"later"`   // and after it
}

// Loss is the pinball loss of forecasts beside that of a rival, on the jobs for which both say something, in seconds.
type Loss struct {
	Rival string      `json:"rival"`
	Of    string      `json:"of"` // "quantiles", or "median": then it is half of the mean absolute error
	Jobs  int         `json:"forecasts"`
	Twin  float64     `json:"twin"`
	Then  float64     `json:"rival_loss"`
	Diff  float64     `json:"difference"` // below 0: the twin is better
	CI    *[2]float64 `json:"ci95,omitempty"`
}

// Checked is how well forecasts held.
type Checked struct {
	Looks     int       `json:"looks"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Forecasts int       `json:"forecasts"` // that are counted
	Jobs      int       `json:"jobs"`
	// the last time that was said has not passed, so that nobody knows how they will hold
	NotDue int `json:"not_due"`
	// of those that are counted: the job had not started when it was last seen, after all that was said
	Waited     int         `json:"waited"`
	Unknown    int         `json:"unresolved"` // they are due, and the job was withdrawn before, or nobody knows
	Blocks     int         `json:"blocks"`     // of time, by which intervals are drawn anew
	Coverage   []Coverage  `json:"coverage"`
	Error      float64     `json:"median_error_s"` // median of |start − forecast|
	Bias       float64     `json:"median_bias_s"`  // median of start − forecast
	Pinball    float64     `json:"pinball_s"`
	Losses     []Loss      `json:"losses,omitempty"`
	Verdict    string      `json:"verdict"`
	Recal      *Stretch    `json:"recalibrate,omitempty"`
	RecalGain  float64     `json:"recalibrate_gain_s,omitempty"` // pinball loss that it takes away on the later part
	RecalCI    *[2]float64 `json:"recalibrate_ci95,omitempty"`
	RecalWords string      `json:"recalibrate_says"`
}

// scored is one forecast with what came of it.
type scored struct {
	look    int
	id      string
	at      time.Time
	waited  float64
	gpus    int
	q       Quantiles
	y       float64 // seconds until the start; of one that has not come, those for which the job was seen to wait
	rival   *Quantiles
	planned float64 // NaN = not told
}

// CheckLog compares the forecasts of a log with what has happened: what the log itself has seen later, and what truth
// knows already.
func CheckLog(file string, truth *Truth, seed uint64) (*Checked, error) {
	lines, err := ReadLog(file)
	if err != nil {
		return nil, err
	}
	truth.lines(lines)
	return check(lines, truth, seed), nil
}

// check scores forecasts.
func check(lines []line, truth *Truth, seed uint64) *Checked {
	c := &Checked{Looks: len(lines), From: lines[0].At, To: lines[len(lines)-1].At, Coverage: []Coverage{}}
	past := newPast(truth)
	var all []scored
	for n := range lines {
		x := &lines[n]
		for i := range x.Waiting {
			f := &x.Waiting[i]
			start, ok := truth.of(f.ID, x.At)
			s := scored{look: n, id: f.ID, at: x.At, waited: x.At.Sub(f.Submit).Seconds(), gpus: f.GPUs, q: f.Start,
				planned: math.NaN()}
			for k := range s.q { // beyond the horizon is at least there
				if math.IsInf(float64(s.q[k]), 1) && x.Horizon > 0 {
					s.q[k] = Seconds(x.Horizon)
				}
			}
			if f.Planned > 0 {
				s.planned = float64(f.Planned)
			}
			last := float64(s.q[levels-1])
			// whatever has come of it: those that start early are known first
			if !truth.whole && truth.until.Sub(x.At).Seconds() <= last {
				c.NotDue++
				continue
			}
			waited := truth.waits[f.ID].Sub(x.At).Seconds()
			switch {
			case ok:
				s.y = start.Sub(x.At).Seconds()
			case waited > last:
				s.y = waited
				c.Waited++
			default:
				c.Unknown++
				continue
			}
			s.y = max(0, s.y)
			all = append(all, s)
		}
	}
	for i := range all {
		all[i].rival = past.said(&all[i])
	}
	c.score(all, seed)
	return c
}

// score fills c.
func (c *Checked) score(all []scored, seed uint64) {
	jobs := map[string]bool{}
	for i := range all {
		jobs[all[i].id] = true
	}
	c.Forecasts, c.Jobs = len(all), len(jobs)
	if len(all) == 0 {
		c.Verdict, c.RecalWords = "Nothing can be said yet: no forecast is due of which it is known what has come.",
			"There is nothing to recalibrate by."
		return
	}
	block := blocks(all)
	c.Blocks = block[len(block)-1] + 1
	var errs, bias []float64
	for i := range all {
		d := all[i].y - finite(all[i].q[median])
		errs, bias = append(errs, math.Abs(d)), append(bias, d)
		c.Pinball += all[i].q.pinball(all[i].y) / float64(len(all))
	}
	slices.Sort(errs)
	slices.Sort(bias)
	c.Error, c.Bias = statistic.Quantile(errs, .5), statistic.Quantile(bias, .5)
	for _, p := range []int{50, 80, 90} {
		in := make([]float64, len(all))
		v := Coverage{Interval: p}
		for i := range all {
			_, low, high := all[i].q.interval(p)
			switch y := all[i].y; {
			case y < low-1: // clusters tell whole seconds
				v.Early += 1 / float64(len(all))
			case y > high+1:
				v.Late += 1 / float64(len(all))
			default:
				in[i] = 1
			}
		}
		v.Share = statistic.Mean(in)
		v.Least = v.Share * float64(len(all)) / float64(len(all)+c.Unknown)
		v.CI = byBlocks(seed, fmt.Sprint("coverage", p), in, block, c.Blocks)
		c.Coverage = append(c.Coverage, v)
	}
	c.rival(all, block, seed, "waits of jobs of the same size before, of those that had waited as long", "quantiles",
		func(s *scored) (float64, float64, bool) {
			if s.rival == nil {
				return 0, 0, false
			}
			return s.q.pinball(s.y), s.rival.pinball(s.y), true
		})
	c.rival(all, block, seed, "median wait of the same size before", "median", func(s *scored) (float64, float64, bool) {
		if s.rival == nil {
			return 0, 0, false
		}
		return math.Abs(s.y-finite(s.q[median])) / 2, math.Abs(s.y-float64(s.rival[median])) / 2, true
	})
	c.rival(all, block, seed, "the cluster's own expected start", "median", func(s *scored) (float64, float64, bool) {
		if math.IsNaN(s.planned) {
			return 0, 0, false
		}
		return math.Abs(s.y-finite(s.q[median])) / 2, math.Abs(s.y-s.planned) / 2, true
	})
	c.Verdict = c.verdict()
	c.recalibrate(all, block, seed)
}

// finite returns a quantile, or a year if it is beyond the horizon.
func finite(x Seconds) float64 { return min(float64(x), 366*86400) }

// pinball is the mean pinball loss at Levels.
func (q *Quantiles) pinball(y float64) (sum float64) {
	for i, p := range Levels {
		if d := y - finite(q[i]); d > 0 {
			sum += p * d
		} else {
			sum -= (1 - p) * d
		}
	}
	return sum / levels
}

// fewJobs is below how many jobs a verdict says that they are few.
const fewJobs = 30

// Blocks of time at most, and how many an interval needs.
const (
	mostBlocks  = 20
	leastBlocks = 6
)

// blocks divides forecasts, which are in order of look, into blocks of consecutive looks: those of one queue have much
// in common.
func blocks(all []scored) []int {
	looks, last := 0, -1
	number := make([]int, len(all))
	for i := range all {
		if all[i].look != last {
			last = all[i].look
			looks++
		}
		number[i] = looks - 1
	}
	for i := range number {
		number[i] = number[i] * min(mostBlocks, looks) / looks
	}
	return number
}

// byBlocks returns the interval of the mean of x over resamples of blocks, nil if there are too few.
func byBlocks(seed uint64, name string, x []float64, block []int, n int) *[2]float64 {
	sum, count := make([]float64, n), make([]float64, n)
	some := 0
	for i := range x {
		if !math.IsNaN(x[i]) {
			if count[block[i]] == 0 {
				some++
			}
			sum[block[i]] += x[i]
			count[block[i]]++
		}
	}
	if some < leastBlocks {
		return nil
	}
	ci := statistic.Bootstrap(seed, "twin/"+name, n, func(drawn []statistic.Draw) float64 {
		a, b := 0.0, 0.0
		for _, d := range drawn {
			a, b = a+sum[d.Unit], b+count[d.Unit]
		}
		return a / max(1, b)
	})
	return &ci
}

// rival adds a comparison.
func (c *Checked) rival(all []scored, block []int, seed uint64, name, of string,
	loss func(s *scored) (own, other float64, ok bool)) {
	l := Loss{Rival: name, Of: of}
	diff := make([]float64, len(all))
	for i := range all {
		a, b, ok := loss(&all[i])
		if diff[i] = math.NaN(); !ok {
			continue
		}
		diff[i] = a - b
		l.Jobs++
		l.Twin, l.Then = l.Twin+a, l.Then+b
	}
	if l.Jobs == 0 {
		return
	}
	l.Twin, l.Then = l.Twin/float64(l.Jobs), l.Then/float64(l.Jobs)
	l.Diff = l.Twin - l.Then
	l.CI = byBlocks(seed, "loss "+name, diff, block, c.Blocks)
	c.Losses = append(c.Losses, l)
}

// verdict says whether the intervals hold.
func (c *Checked) verdict() string {
	v := &c.Coverage[1]
	share := fmt.Sprintf("%.0f %% of the starts fell into the intervals of 80 %%", 100*v.Share)
	few := ""
	if c.Jobs < fewJobs {
		few = " These are " + plain.Count(c.Jobs, "job", "jobs") + " only, which looks have seen again and again."
	}
	if v.CI == nil {
		return fmt.Sprintf("%s; with %d block(s) of looks nobody can say whether that is chance.%s", share, c.Blocks, few)
	}
	share += fmt.Sprintf(" [%.0f, %.0f]", 100*v.CI[0], 100*v.CI[1])
	side := "as often before as after them"
	switch {
	case v.Late > 2*v.Early:
		side = "the others mostly later"
	case v.Early > 2*v.Late:
		side = "the others mostly earlier"
	}
	switch {
	case v.CI[1] < .8:
		return fmt.Sprintf("The forecasts are over-confident: %s, %s. Take the intervals for narrower than they should be.%s",
			share, side, few)
	case v.CI[0] > .8:
		return fmt.Sprintf("The forecasts are under-confident: %s. The intervals could be narrower.%s", share, few)
	}
	return fmt.Sprintf("The intervals hold: %s, %s.%s", share, side, few)
}

// fitShare is the share of the blocks by which factors are chosen; the later ones judge them.
const fitShare = 0.6

// recalibrate looks for factors on the earlier blocks that make the later ones better beyond chance.
func (c *Checked) recalibrate(all []scored, block []int, seed uint64) {
	cut := int(fitShare * float64(c.Blocks))
	if c.Blocks-cut < leastBlocks || cut < leastBlocks {
		c.RecalWords = fmt.Sprintf(
			"No recalibration: %d blocks of looks are too few to choose factors by the earlier ones and judge them by the later.", c.Blocks)
		return
	}
	var later time.Time
	for i := range all {
		if block[i] >= cut {
			later = all[i].at
			break
		}
	}
	best, least := Stretch{1, 1}, math.Inf(1)
	for _, m := range []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5} {
		for _, s := range []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2, 2.5} {
			x, sum := Stretch{m, s}, 0.0
			for i := range all {
				k := &all[i]
				if passed := later.Sub(k.at).Seconds(); block[i] < cut && finite(k.q[levels-1]) < passed { // due by then
					q := x.of(k.q)
					sum += q.pinball(min(k.y, passed))
				}
			}
			if sum < least {
				best, least = x, sum
			}
		}
	}
	if best == (Stretch{1, 1}) {
		c.RecalWords = "No recalibration: on the earlier part nothing was better than the forecasts as they are."
		return
	}
	gain, n := make([]float64, len(all)), 0.0
	for i := range all {
		if gain[i] = math.NaN(); block[i] >= cut {
			q := best.of(all[i].q)
			gain[i] = all[i].q.pinball(all[i].y) - q.pinball(all[i].y)
			c.RecalGain += gain[i]
			n++
		}
	}
	c.RecalGain /= max(1, n)
	c.RecalCI = byBlocks(seed, "recalibrate", gain, block, c.Blocks)
	if c.RecalCI == nil || c.RecalCI[0] <= 0 {
		c.RecalWords = fmt.Sprintf(
			"No recalibration: the factors of the earlier part (%v) do not make the later part better beyond chance.", best)
		return
	}
	c.Recal = &best
	c.RecalWords = fmt.Sprintf(
		"--recalibrate %v would have been better: chosen on the earlier part, it takes %s of %s off the loss of the later "+
			"part.", best, hours(c.RecalGain), hours(c.Pinball))
}

// startHistory are the waits of jobs that have started, by time: what a simple rival can know.
type startHistory struct{ all []StartLine } // in order of start

func newPast(t *Truth) *startHistory {
	p := &startHistory{}
	for _, list := range t.starts {
		if !list[0].Submit.IsZero() {
			p.all = append(p.all, list[0])
		}
	}
	slices.SortFunc(p.all, func(a, b StartLine) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	return p
}

// How many waits a rival looks at, and how many it needs.
const (
	rivalLooks = 4000
	rivalNeeds = 10
)

// said returns what the waits before s.at say of s: those of the same size, of jobs that had waited at least as long as
// s has.
func (p *startHistory) said(s *scored) *Quantiles {
	n, _ := slices.BinarySearchFunc(p.all, s.at, func(a StartLine, at time.Time) int { return a.Start.Compare(at) })
	for _, same := range []bool{true, false} {
		var left []float64
		for i := n - 1; i >= max(0, n-rivalLooks); i-- {
			x := &p.all[i]
			if same && x.GPUs != s.gpus {
				continue
			}
			if w := x.Start.Sub(x.Submit).Seconds() - s.waited; w >= 0 {
				left = append(left, w)
			}
		}
		if len(left) >= rivalNeeds {
			slices.Sort(left)
			q := quantiles(left)
			return &q
		}
	}
	return nil
}

// WriteText writes c for people.
func (c *Checked) WriteText(w io.Writer) error {
	p := func(format string, args ...any) {
		_, _ = fmt.Fprintln(w, texttable.Wrapped(fmt.Sprintf(format, args...), texttable.WidthOf(w)))
	}
	head := fmt.Sprintf("%s from %s to %s: %s of %s count.", plain.Count(c.Looks, "look", "looks"),
		c.From.Format(time.DateTime), c.To.Format(time.DateTime),
		plain.Count(c.Forecasts, "forecast", "forecasts"), plain.Count(c.Jobs, "job", "jobs"))
	if c.NotDue > 0 {
		head += fmt.Sprintf(" %d are not due yet: the latest start that was said has not passed.", c.NotDue)
	}
	if c.Unknown > 0 {
		head += fmt.Sprintf(" Of %d more nobody knows what has come: the job was withdrawn, or out of sight.", c.Unknown)
	}
	p("%s", head)
	p("%s", c.Verdict)
	if c.Forecasts == 0 {
		return nil
	}
	var rows [][]string
	for _, v := range c.Coverage {
		rows = append(rows,
			[]string{fmt.Sprint(v.Interval, " %"), percent(v.Share), bounds(v.CI, percent), percent(v.Early), percent(v.Late)})
	}
	_, _ = fmt.Fprintln(w)
	if err := texttable.Write(w, []string{"interval", fmt.Sprintf("held, of %d", c.Forecasts), "95 %", "earlier", "later"},
		rows, 1); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(w)
	if c.Unknown > 0 {
		p("If all of which nobody knows had missed, the intervals of 80 %% would have held %s; --actual files say what "+
			"came of more.", percent(c.Coverage[1].Least))
	}
	if c.Waited > 0 {
		p("%d of the forecasts are of jobs that had not started when they were last seen, later than all that was said; "+
			"errors and losses count the time until then, so they are larger.", c.Waited)
	}
	p("Median error %s, median of start − forecast %s, pinball loss %s.", hours(c.Error), signed(c.Bias, hours),
		hours(c.Pinball))
	rows = nil
	for i := range c.Losses {
		l := &c.Losses[i]
		rows = append(rows, []string{l.Rival, l.Of, fmt.Sprint(l.Jobs), texttable.Time(l.Twin), texttable.Time(l.Then),
			signed(l.Diff, texttable.Time), bounds(l.CI, func(x float64) string { return signed(x, texttable.Time) })})
	}
	if rows != nil {
		_, _ = fmt.Fprintln(w)
		if err := texttable.Write(w, []string{"rival", "loss of", "forecasts", "twin", "rival", "difference", "95 %"}, rows,
			2); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w)
	}
	p("%s", c.RecalWords)
	return nil
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

func bounds(ci *[2]float64, format func(float64) string) string {
	if ci == nil {
		return "–"
	}
	return "[" + format(ci[0]) + ", " + format(ci[1]) + "]"
}
