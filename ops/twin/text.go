package twin

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
)

// hours formats seconds for people.
func hours(s float64) string {
	if math.IsInf(s, 1) {
		return "beyond"
	}
	return texttable.Hours(s)
}

// interval returns the median and the ends of an interval.
func (q *Quantiles) interval(percent int) (mid, low, high float64) {
	at := func(p float64) float64 {
		for i := 1; i < levels; i++ {
			if p <= Levels[i]+1e-9 {
				a, b := float64(q[i-1]), float64(q[i])
				w := (p - Levels[i-1]) / (Levels[i] - Levels[i-1])
				switch {
				case w <= 1e-9:
					return a
				case w >= 1-1e-9 || math.IsInf(b, 1):
					return b
				}
				return a + max(w, 0)*(b-a)
			}
		}
		return float64(q[levels-1])
	}
	half := float64(percent) / 200
	return float64(q[median]), at(0.5 - half), at(0.5 + half)
}

func (q *Quantiles) text(percent int) string { return q.shown(percent, hours) }

// cell is text for a table, in which all of a column have one unit.
func (q *Quantiles) cell(percent int) string { return q.shown(percent, texttable.Time) }

func (q *Quantiles) shown(percent int, format func(seconds float64) string) string {
	mid, low, high := q.interval(percent)
	switch {
	case low == 0 && high == 0:
		return "now"
	case math.IsInf(low, 1):
		return hours(low)
	}
	return fmt.Sprintf("%s [%s, %s]", format(mid), format(low), format(high))
}

// WriteText writes r for people, with at most top jobs of each kind.
func (r *Report) WriteText(w io.Writer, top int) error {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	p("%s at %s: %s. %s, estimates %s, arrivals %s; %d draws, intervals of %d %%.\n",
		named(r.Cluster), r.At.Format(time.DateTime), r.counts(), r.Scheduler, r.Estimates, r.Arrivals, r.Draws, r.Interval)
	for _, n := range r.Notes {
		p("%s\n", texttable.Wrapped(n, texttable.WidthOf(w)))
	}
	if len(r.Waiting) == 0 {
		p("\nNo job waits for GPUs.\n")
	}
	if err := writeWaiting(w, r.Waiting, r.Interval, top); err != nil {
		return err
	}
	byEnd := slices.Clone(r.Running)
	slices.SortStableFunc(byEnd, func(a, b EndForecast) int { return cmp.Compare(a.End[median], b.End[median]) })
	err := writeJobs(w, "running", "ends in", len(byEnd), top, func(i int) []string {
		f := &byEnd[i]
		return []string{f.ID, f.User, fmt.Sprint(f.GPUs), f.End.cell(r.Interval)}
	})
	if err != nil {
		return err
	}
	if err := writeRoom(w, r.Room, r.Interval); err != nil {
		return err
	}
	if len(r.Blocked) > 0 {
		p("\nNo forecast:\n")
		for _, b := range r.Blocked[:min(top, len(r.Blocked))] {
			p("  %s (%s): %s\n", b.ID, plain.Count(b.GPUs, "GPU", "GPUs"), b.Why)
		}
		more(w, len(r.Blocked), top)
	}
	for i := range r.WhatIfs {
		if err := r.WhatIfs[i].write(w, r.Interval, top); err != nil {
			return err
		}
	}
	return nil
}

// counts says how many jobs there are.
func (r *Report) counts() string {
	return plain.Count(len(r.Waiting), "job waits",
		"jobs wait") + ", " + plain.Count(len(r.Running), "runs", "run") + ", " + plain.Count(len(r.Blocked), "is blocked",
		"are blocked")
}

// of says which jobs an effect is of.
func (e *Effect) of() string {
	unit := " GPUs"
	if e.GPUs == "1" {
		unit = " GPU"
	}
	return plain.Count(e.Jobs, "job", "jobs") + " of " + e.GPUs + unit
}

func named(cluster string) string {
	if cluster == "" {
		return "The cluster"
	}
	return "Cluster " + cluster
}

func more(w io.Writer, n, top int) {
	if n > top {
		_, _ = fmt.Fprintf(w, "… and %d more; --top and --json have them.\n", n-top)
	}
}

// writeJobs writes a table of the first top of n jobs; cells returns what it has of one.
func writeJobs(w io.Writer, which, what string, n, top int, cells func(i int) []string) error {
	var rows [][]string
	for i := range min(n, top) {
		rows = append(rows, cells(i))
	}
	if rows == nil {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	if err := texttable.Write(w, []string{which, "user", "GPUs", what}, rows, 2); err != nil {
		return err
	}
	more(w, n, top)
	return nil
}

func writeWaiting(w io.Writer, jobs []JobForecast, percent, top int) error {
	return writeJobs(w, "waiting", "starts in", len(jobs), top, func(i int) []string {
		f := &jobs[i]
		return []string{f.ID, f.User, fmt.Sprint(f.GPUs), f.Start.cell(percent)}
	})
}

func writeRoom(w io.Writer, list []RoomForecast, percent int) error {
	var rows [][]string
	for i := range list {
		k := &list[i]
		where := "anywhere"
		if k.OneNode {
			where = "one node"
		}
		rows = append(rows, []string{fmt.Sprint(k.GPUs), where, k.Next.cell(percent), k.Idle.cell(percent)})
	}
	if rows == nil {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	return texttable.Write(w, []string{"free GPUs", "on", "for the next in line in", "idle in"}, rows, 0)
}

func (x *WhatIf) write(w io.Writer, percent, top int) error {
	_, _ = fmt.Fprintf(w, "\nWhat if: %s\n", x.Name)
	if x.Note != "" {
		_, _ = fmt.Fprintf(w, "%s\n", x.Note)
	}
	var rows [][]string
	for i := range x.Effects {
		e := &x.Effects[i]
		name := "mean wait from now on"
		if e.GPUs != "" {
			name = "… of " + e.of()
		}
		format := texttable.Time
		if e.What == "lost" {
			name, format = "GPU hours lost while jobs wait", func(s float64) string { return fmt.Sprintf("%.1f", s) }
		}
		rows = append(rows, []string{
			name, format(e.Base), format(e.Then), signed(e.Change, format),
			"[" + signed(e.CI[0],
				format) + ", " + signed(e.CI[1], format) + "]", "[" + signed(e.Draws[0], format) + ", " + signed(e.Draws[1],
				format) + "]",
		})
	}
	if rows != nil {
		if err := texttable.Write(w, []string{"", "now", "then", "change", "95 % of the mean", "80 % of draws"}, rows,
			1); err != nil {
			return err
		}
	}
	return writeWaiting(w, x.Jobs, percent, top)
}

func signed(x float64, format func(float64) string) string {
	if x > 0 {
		return "+" + format(x)
	}
	if x < 0 {
		return "−" + format(-x)
	}
	return format(0)
}
