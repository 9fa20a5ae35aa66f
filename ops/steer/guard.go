package steer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"clustergym/live"
)

// Guard watches a lease, and releases all jobs when it has not been renewed for its term; then it ends. The guard
// measures that time by its own clock since it last saw the lease change, because the clock of the machine can be set.
// A lease that cannot be read any more, or was removed without the word that it is over, counts as not renewed. wait
// sleeps; it returns early when ctx ends, which ends the guard at once. The guard also ends if the lease says that it
// is over, or never existed.
func Guard(ctx context.Context, l *Lease, c live.Cluster, wait func(ctx context.Context, d time.Duration) error) error {
	for first := true; ; first = false {
		age, text, err := l.Age()
		gone := errors.Is(err, fs.ErrNotExist)
		switch {
		case gone && first:
			return nil
		case err == nil && text == over:
			if err := os.Remove(l.File); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		case gone || age > l.Term:
			return l.released(ctx, c, wait)
		}
		if wait(ctx, max(l.Term/8, time.Millisecond)) != nil {
			return nil //nolint:nilerr // the guard was interrupted
		}
	}
}

// released takes the lease away, and releases all jobs. A lease that cannot be taken away keeps no job held.
func (l *Lease) released(ctx context.Context, c live.Cluster,
	wait func(ctx context.Context, d time.Duration) error) error {
	err := os.Remove(l.File)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	note := func(text string) {
		if l.Note != nil {
			l.Note(text)
		}
	}
	what := "all jobs are released"
	if l.Ranks {
		what = "ranks are taken back, and " + what
	}
	note(fmt.Sprintf("the lease %s was not renewed for %v: %s", l.File, l.Term, what))
	switch e := ReleaseAll(ctx, c, Releasing{Until: true, Ranks: l.Ranks, Settle: l.Term / 4, Wait: wait, Note: l.Note}); {
	case errors.Is(e, live.ErrTied): // more cannot be done
		note("nothing is held back; " + e.Error())
	case e != nil:
		return errors.Join(e, err)
	default:
		note("nothing is held back")
	}
	return err
}

// Watch is a guard that stays, for leases with a store: programs come and go, and it releases all jobs whenever the
// lease has been free for a quarter longer than its term, so that another program can take over first. It repeats this
// after every eighth of the term until a program takes the lease, so that jobs which are handed over later are
// released, too. beat shows other programs that the guard watches; it may be nil. note takes a line about each failure
// and each release.
func Watch(ctx context.Context, l *Lease, c live.Cluster, beat func() error,
	wait func(ctx context.Context, d time.Duration) error, note func(string)) error {
	since, said := l.clock(), "" // the lease has been free since then
	say := func(text string) {
		if text != said && text != "" {
			note(text)
		}
		said = text
	}
	for first := true; ; first = false {
		text, err := l.watched(ctx, c, beat, wait, &since)
		switch {
		case err == nil:
			say(text)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the guard was interrupted
		case first && !errors.Is(err, live.ErrUnreachable):
			return err
		default:
			say(err.Error() + "; it is tried again")
		}
		if wait(ctx, max(l.Term/8, time.Millisecond)) != nil {
			return nil //nolint:nilerr // the guard was interrupted
		}
	}
}

// watched is one look of Watch. It returns what it has done.
func (l *Lease) watched(ctx context.Context, c live.Cluster, beat func() error,
	wait func(ctx context.Context, d time.Duration) error, since *time.Duration) (did string, err error) {
	if beat != nil {
		if err := beat(); err != nil {
			return "", err
		}
	}
	age, text, err := l.Age()
	term := l.Term + l.Term/4
	switch {
	case err == nil && text != over && age <= term:
		*since = l.clock()
		return "", nil
	case err == nil && text != over:
		if err := l.Store.Remove(); err != nil { // it has just been renewed, or its store does not answer
			return "", err
		}
		*since = l.clock() - 2*term
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if l.clock()-*since <= term {
		return "", nil
	}
	ctx, stop := context.WithTimeout(ctx, max(l.Term, 10*time.Second))
	defer stop()
	err = ReleaseAll(ctx, c, Releasing{Ranks: l.Ranks, Wait: wait})
	if errors.Is(err, live.ErrTied) { // more cannot be done
		return "nobody steers; nothing is held back; " + err.Error(), nil
	}
	if err != nil {
		// the next look tries again
		return "", fmt.Errorf("nobody steers, and what is held back is not released yet: %v", err)
	}
	return "nobody steers; nothing is held back", nil
}
