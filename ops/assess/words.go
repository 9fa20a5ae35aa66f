package assess

import (
	"fmt"
	"math"
	"strings"

	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
)

// unitOf returns the unit in which a time of people is told, in seconds, and its name.
func unitOf(seconds float64) (unit float64, name string) {
	switch s := math.Abs(seconds); {
	case s < 99.5:
		return 1, "s"
	case s < 99.5*60:
		return 60, "min"
	case s < 72*3600:
		return 3600, "h"
	}
	return 86400, "d"
}

// digits formats a number with two digits, or all that it has before the point.
func digits(x float64) string {
	if math.Abs(x) < 9.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// long tells a time: "5.3 h".
func long(seconds float64) string {
	unit, name := unitOf(seconds)
	if unit == 1 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return digits(seconds/unit) + " " + name
}

// within tells a time and its interval: "3.5 h (2.9 to 4.2)".
func within(seconds float64, in *ci) string {
	if in == nil {
		return long(seconds)
	}
	unit, name := unitOf(seconds)
	if far := in[1] / unit; far > 999 || math.IsInf(in[1], 0) {
		return fmt.Sprintf("%s %s (%s or more)", digits(seconds/unit), name, digits(in[0]/unit))
	}
	return fmt.Sprintf("%s %s (%s to %s)", digits(seconds/unit), name, digits(in[0]/unit), digits(in[1]/unit))
}

// words writes the sentences of the first screen, and how sure they are.
func (a *assessor) words() {
	out := a.out
	out.Head.Today = out.Recorded.Mean
	say := func(format string, args ...any) { out.First = append(out.First, fmt.Sprintf(format, args...)) }
	say("Users wait %s today.", long(out.Recorded.Mean))
	a.order(say)
	if len(out.WhatIfs) > 0 {
		if w := &out.WhatIfs[0]; w.Today != nil && w.Today.Of != nil {
			out.Head.More = &Number{Wait: *w.Today.Of, CI: w.Today.Then}
			say("%s, in the order of today: %s.", plain.Count(out.Head.Added, "more GPU", "more GPUs"),
				within(*w.Today.Of, w.Today.Then))
		}
	}
	if out.Best != "" {
		say("%s", a.loser())
	}
	a.learnedWords(say)
	out.Sure, out.Surer = a.sure(), a.surer()
}

// order says what another order of the queue would do.
func (a *assessor) order(say func(format string, args ...any)) {
	out := a.out
	at := a.bestOf()
	switch {
	case out.Recorded.Mean < longer:
		say("That is so little that no other order could help much.")
	case at < 0 || out.Policies[at].Of == nil:
		say("No other order that was tried starts all jobs.")
	case out.Best != "":
		p := &out.Policies[at]
		out.Head.Order = &Number{Wait: *p.Of, CI: p.Then}
		say("%s would make that %s.", p.says, within(*p.Of, p.Then))
	case out.Calibration.Blocks < LeastBlocks:
		say("The record is too short to say whether another order would help.")
	default:
		p := &out.Policies[at]
		if *p.Percent >= 0 {
			say("No other order that was tried would make that shorter.")
			return
		}
		say("No other order is shown to help: the best one tried makes that %s, and the record is too short to be sure.",
			within(*p.Of, p.Then))
	}
}

// leastNamed is how many jobs a part needs to be named as one that loses.
const leastNamed = 10

// loser says which size of jobs would wait longer.
func (a *assessor) loser() string {
	var worst *Change
	for i := range a.out.Changes.Sizes {
		c := &a.out.Changes.Sizes[i]
		if c.Jobs >= leastNamed && c.Change > max(longer, c.Model/50) && (worst == nil || c.Change > worst.Change) {
			worst = c
		}
	}
	if worst == nil {
		return "Jobs of no size would wait longer."
	}
	return fmt.Sprintf("Jobs of %s would wait longer (+%s).", worst.Name, long(worst.Change))
}

// least is the error of the model that counts as none, as a logarithm of a ratio.
const least = .01

// sure says how far the sentences may be believed.
func (a *assessor) sure() string {
	c := &a.out.Calibration
	if c.All == nil {
		return "Hardly any job waited, so that nothing can be compared."
	}
	var text strings.Builder
	switch x := *c.All; {
	case math.Abs(x) < .5:
		text.WriteString("The best copy of your scheduler lets jobs wait as long as recorded")
	case x < 0:
		fmt.Fprintf(&text, "The best copy of your scheduler lets jobs wait %.0f %% less than recorded", -x)
	default:
		fmt.Fprintf(&text, "The best copy of your scheduler lets jobs wait %.0f %% longer than recorded", x)
	}
	fmt.Fprintf(&text, ", and the record has %s that hardly depend on each other, %s each. ",
		plain.Count(c.Blocks, "stretch of time", "stretches of time"), texttable.Hours(c.Block))
	switch {
	case c.Blocks < LeastBlocks:
		fmt.Fprintf(&text, "With fewer than %d, no gain is to be believed yet, and ranges "+
			"are rough.", LeastBlocks)
	case c.Blocks < statistic.MinUnits:
		fmt.Fprintf(&text, "With fewer than %d, no gain is called certain.", statistic.MinUnits)
	case a.margin < least:
		text.WriteString("That is close enough for all that is said here.")
	default:
		fmt.Fprintf(&text, "A gain below %.0f %% is not to be believed.", math.Ceil(100*(1-math.Exp(-a.margin))))
	}
	return text.String()
}

// far is the error of the model that is worth a word, as a logarithm of a ratio.
const far = .1

// mostNeeded is the longest record that is asked for, in seconds.
const mostNeeded = 3 * 366 * 86400

// surer says what would make it surer.
func (a *assessor) surer() string {
	c := &a.out.Calibration
	var all []string
	if need := statistic.MinUnits; c.Blocks < need {
		all = append(all, fmt.Sprintf("A longer record: at least %s", texttable.Hours(float64(need)*c.Block)))
	} else if at := a.bestOf(); at >= 0 {
		need := float64(a.out.Policies[at].unitsFor) * c.Block
		switch {
		case need <= a.out.Recorded.Span:
		case need < mostNeeded:
			all = append(all, fmt.Sprintf("A longer record: about %.0f days would show a difference of 3 %%", need/86400))
		default:
			all = append(all, "A longer record, though no record of a few years would show a difference of 3 %")
		}
	}
	if a.margin > far {
		all = append(all, "What decides over starts and is not in the file, such as priorities, reservations, limits of "+
			"accounts and partitions' nodes, would make the copy of your scheduler closer")
	}
	if len(all) == 0 {
		return "Only a trial: gymctl steer shadow looks on and starts nothing."
	}
	return strings.Join(all, ". ") + "."
}

// notes says what a reader must know beside the figures.
func (a *assessor) notes() {
	out := a.out
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	out.Notes = append([]string{}, a.opt.Notes...)
	l := a.left
	if l.CPUOnly > 0 {
		note("%s for no GPU and %s not counted; %d of them are played, because the cluster says how many cores its nodes have",
			plain.Count(l.CPUOnly, "job asks", "jobs ask"), isAre(l.CPUOnly), l.Beside)
	}
	for _, r := range out.LeftOut.Rows {
		note("%s left out: %s", plain.Count(r.Count, "row", "rows"), r.Reason)
	}
	if l.Never > 0 {
		note("%s, %.1f %% of the GPU time, can never fit the cluster: %s", plain.Count(l.Never, "job", "jobs"),
			100*l.Share(), joined(l.Why))
	}
	if l.Running+l.Waiting > 0 {
		note("%s and %d still waited when the record ends. They are played with run times guessed from jobs of the same "+
			"user that took longer, and do not count in comparisons unless they had started",
			plain.Count(l.Running, "job still ran", "jobs still ran"), l.Waiting)
	}
	if l.Given > 0 && a.opt.Limit > 0 {
		note("%s no time limit; %v stands for it", plain.Count(l.Given, "job has", "jobs have"), a.opt.Limit)
	} else if l.Given > 0 {
		note("no job has a time limit: models of the scheduler that need them were not tried")
	}
	if l.Before > 0 {
		note("%s when the record begins, and %s there in every play",
			plain.Count(l.Before, "job ran already", "jobs ran already"), isAre(l.Before))
	}
	if p := l.Peak; p < out.Cluster.GPUs/2 {
		note("the jobs never held more than %d of %d GPUs at one time: is this the cluster on which they ran?", p,
			out.Cluster.GPUs)
	}
	note("comparisons count %s that arrived after the first %s and whose start is recorded",
		plain.Count(len(a.bins.of), "job", "jobs"), texttable.Hours(a.bins.from.Seconds()))
	note("plays start jobs at once and run each without a stop, for its run time as recorded; nodes never fail, and the " +
		"users submit the same jobs at the same times whatever they wait")
	for i := range out.Policies {
		if p := &out.Policies[i]; p.Never > 0 {
			note("%s never starts %s", p.Name, plain.Count(p.Never, "job", "jobs"))
		}
	}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
