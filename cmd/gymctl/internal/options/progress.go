package options

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"clustergym/agents/imitate"
	"clustergym/agents/train"
	"clustergym/cmd/gymctl/internal/cli"
)

// Progress shows the progress of a run: a status line on a terminal, otherwise plain lines.
type Progress struct {
	*cli.Bar
	a        *cli.App
	steps    int64
	quarters int64 // of the recording that have been said, without a terminal
}

// NewProgress returns the progress of a run of so many steps, 0 if it trains nothing.
func NewProgress(a *cli.App, steps int64) *Progress {
	return &Progress{Bar: cli.NewBar(a, 0), a: a, steps: steps}
}

// Say prints a line.
func (p *Progress) Say(format string, args ...any) {
	p.Clear() // it is drawn again at the next tick
	p.a.Say(format, args...)
}

// show shows how many whole things called unit are done.
func (p *Progress) show(what, unit string, done, all int64, more ...string) {
	amount := func(done, all int64) string { return fmt.Sprintf("%d/%d %s", done, all, unit) }
	rate := func(perSecond float64) string {
		if perSecond < 10 {
			return fmt.Sprintf("%.1f/s", perSecond)
		}
		return fmt.Sprintf("%.0f/s", perSecond)
	}
	p.Bar.Show(what, done, all, amount, rate, more...)
}

// Tick shows how far a training is.
func (p *Progress) Tick(t train.Progress) {
	l := t.Lesson
	switch {
	case p.Status == nil:
		p.quarter(l)
	case l.All > 0:
		what := "imitating"
		if l.Records {
			what = "recording"
		}
		if l.Rounds > 1 {
			what += fmt.Sprintf(" (round %d of %d)", l.Round, l.Rounds)
		}
		p.show(what, "steps", l.Done, l.All)
	default:
		p.show("training", "steps", t.Step, p.steps, "return "+MeanReturn(t.Return))
	}
}

// quarter says every quarter of a recording, which can take as long as the training.
func (p *Progress) quarter(l imitate.Progress) {
	if !l.Records || l.All == 0 {
		return
	}
	now := 4 * l.Done / l.All
	if now < p.quarters { // the next round
		p.quarters = 0
	}
	if now > p.quarters {
		p.quarters = now
		p.Say("records   %d of %d steps", l.Done, l.All)
	}
}

// Log prints a line of a training where there is no terminal.
func (p *Progress) Log(r train.Record, perSecond float64) {
	if p.Status != nil {
		return
	}
	eta := ""
	if perSecond > 0 {
		eta = (time.Duration(float64(p.steps-r.Step)/perSecond) * time.Second).Round(time.Second).String()
	}
	p.Say("step %8d of %d  return %8s  %6.0f steps/s  eta %s", r.Step, p.steps, MeanReturn(r.Return), perSecond, eta)
}

// MeanReturn formats v; it is a dash until an episode has ended.
func MeanReturn(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// Best prints the score of a validation.
func (p *Progress) Best(step int64, score string, best bool) {
	mark := ""
	if best {
		mark = "  (best so far)"
	}
	p.Say("step %8d  %s%s", step, score, mark)
}

// Game shows how far a comparison is.
func (p *Progress) Game(done, all int) { p.show("comparing", "games", int64(done), int64(all)) }

// Generation shows how far a search for weights is.
func (p *Progress) Generation(done, all int) {
	p.show("tuning", "generations", int64(done), int64(all))
}
