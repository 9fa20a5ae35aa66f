package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"clustergym/internal/logging"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
)

// screen returns the terminal that w writes to, nil if w does not write to a terminal.
func screen(w io.Writer) *os.File {
	switch o := w.(type) {
	case *Output:
		w = o.W
	case *logging.Writer:
		return screen(o.Unwrap())
	case *Locked:
		w = o.W
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// isTerminal reports whether w is a terminal, which can show progress.
func isTerminal(w io.Writer) bool { return screen(w) != nil }

// usualWidth is assumed of a terminal that does not tell its width.
const usualWidth = 80

// widthOf returns how many characters a line on w can have, 0 = any number. It asks the terminal every time, since the
// user may have changed its size.
func widthOf(w io.Writer) int {
	f := screen(w)
	if f == nil {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return usualWidth
}

// People returns standard output for tables and sentences, which fit the terminal if it is one. Names and messages of
// others in them are cleaned, also in a pipe: its end may be a pager. What programs read goes to a.stdout instead, as
// it is.
func (a *App) People() io.Writer {
	if a.page == nil {
		if !isTerminal(a.Stdout) {
			return &cleaned{w: a.Stdout}
		}
		a.page = texttable.NewPage(&cleaned{w: a.Stdout}, func() int { return widthOf(a.Stdout) })
	}
	return a.page
}

// cleaned passes on texts without what a terminal obeys. Every call has whole characters: what people read is written
// line by line or in larger pieces.
type cleaned struct{ w io.Writer }

// Write implements io.Writer.
func (c *cleaned) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, plain.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Status is a line at the bottom of the terminal that shows how far a run is. It is drawn over itself and never longer
// than the terminal is wide. A nil status shows nothing. Safe for concurrent use.
type Status struct {
	mu       sync.Mutex
	W        io.Writer
	Now      func() time.Time
	patience time.Duration // nothing is shown for so long
	begun    time.Time
	drawn    time.Time
	shown    bool
}

// Times of a status.
const (
	Redraw    = 100 * time.Millisecond // the least time from one drawing to the next
	Unnoticed = time.Second            // runs that are over sooner show no status
)

// NewStatus returns a status on standard error, nil if that is no terminal.
func NewStatus(a *App, patience time.Duration) *Status {
	if !isTerminal(a.Stderr) {
		return nil
	}
	return &Status{W: a.Stderr, Now: a.Now, patience: patience, begun: a.Now()}
}

// Show draws what parts returns, if it is time to. If there is no room for all of it, the last parts are left out.
func (s *Status) Show(parts func(width int) []string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if now.Sub(s.begun) < s.patience || s.shown && now.Sub(s.drawn) < Redraw {
		return
	}
	s.drawn, s.shown = now, true
	width := widthOf(s.W)
	if width == 0 {
		width = usualWidth
	}
	width-- // a character in the last column would make some terminals scroll
	_, _ = fmt.Fprint(s.W, EraseLine+statusLine(parts(width), width))
}

// EraseLine moves to the beginning of the line and erases it.
const EraseLine = "\r\x1b[K"

// statusLine joins as many of the parts as fit the width. The first one is shortened if it must be.
func statusLine(parts []string, width int) string {
	var b strings.Builder
	n := 0
	for i, p := range parts {
		p = plain.Line(p)
		size := utf8.RuneCountInString(p)
		switch {
		case i == 0:
			p = texttable.Short(p, max(0, width))
			n = utf8.RuneCountInString(p)
		case p == "":
			continue
		case n+2+size > width:
			return b.String()
		default:
			p = "  " + p
			n += 2 + size
		}
		b.WriteString(p)
	}
	return b.String()
}

// Clear erases the line, for other output. The next show draws it again.
func (s *Status) Clear() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = fmt.Fprint(s.W, EraseLine)
	}
}

// Bar is a Status that shows how much is done of known amounts, and guesses when that will be finished. Safe for
// concurrent use.
type Bar struct {
	*Status
	mu     sync.Mutex
	now    func() time.Time
	meters map[string]*meter // by what they are about
}

// NewBar returns a bar on standard error, which shows nothing if that is no terminal.
func NewBar(a *App, patience time.Duration) *Bar {
	return &Bar{Status: NewStatus(a, patience), now: a.Now, meters: map[string]*meter{}}
}

// meter counts one amount.
type meter struct {
	begun time.Time
	first int64 // done when it began
}

// Show shows how much of what is done, in words of amount and rate, and what else there is. An amount counts from the
// first call with its what.
func (b *Bar) Show(what string, done, all int64, amount func(done, all int64) string,
	rate func(perSecond float64) string, more ...string) {
	if b.Status == nil {
		return
	}
	b.mu.Lock()
	m := b.meters[what]
	if m == nil {
		m = &meter{b.now(), done}
		b.meters[what] = m
	}
	b.mu.Unlock()
	b.Status.Show(func(width int) []string {
		speed, left := "", ""
		if spent := b.now().Sub(m.begun).Seconds(); spent >= 1 && done > m.first {
			perSecond := float64(done-m.first) / spent
			speed = rate(perSecond)
			left = time.Duration(float64(all-done)/perSecond*float64(time.Second)).Round(time.Second).String() + " left"
		}
		share := 0.0
		if all > 0 {
			share = min(1, float64(done)/float64(all))
		}
		return withBar(width, what, share, append([]string{amount(done, all), speed, left}, more...))
	})
}

// The least and the greatest width of a bar. A line without room for the least shows no bar.
const (
	leastBar = 8
	mostBar  = 24
)

// withBar returns the parts of a status: what and the share done, with a bar where there is room for it, and the
// others.
func withBar(width int, what string, share float64, others []string) []string {
	parts := append([]string{fmt.Sprintf("%s %3.0f %%", what, 100*share)}, others...)
	free := width - utf8.RuneCountInString(statusLine(parts, 1<<20)) - len("  []")
	if size := min(free, mostBar); size >= leastBar {
		full := int(share * float64(size))
		parts[0] += " [" + strings.Repeat("#", full) + strings.Repeat("-", size-full) + "]"
	}
	return parts
}
