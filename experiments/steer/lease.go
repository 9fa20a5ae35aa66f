package steer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clustergym/live"
)

// Lease is a file by which a guard knows that the program which holds jobs back is alive. The program renews it every cycle. When it
// is older than its term, or says that it is over, the guard takes it away: from then on the program writes nothing any more.
type Lease struct {
	File string
	Term time.Duration
	Now  func() time.Time
	Note func(text string) // of Guard: says something to people; nil = nothing
	// Store keeps the lease in place of the file, where programs on several machines see it; nil = the file.
	Store LeaseStore

	token string
	last  time.Time // when it was renewed
}

// LeaseStore keeps a lease. Read returns how long ago the lease was renewed and what it says; fs.ErrNotExist says that there is none. Write and
// Remove change what was read last, and fail if somebody else has changed it since. Renew fails with fs.ErrNotExist if the lease says
// something else than text. live.ErrUnreachable says that the store did not answer. live/kube.Lease is one.
type LeaseStore interface {
	Read() (age time.Duration, text string, err error)
	Write(text string) error
	Renew(text string) error
	Remove() error
}

// over is what a lease says that has ended in order.
const over = "over"

// ErrLease is returned when the lease has run out, or another program has it.
var ErrLease = errors.New("the lease is lost")

// Take writes the lease. One that another program renews is an error.
func (l *Lease) Take(token string) error {
	at, text, err := l.read()
	if err == nil && text != over && text != token && l.Now().Sub(at) <= l.Term {
		return fmt.Errorf("%w: %s was renewed %v ago by another program; want one program for each cluster, or another --lease-file", ErrLease, l.File, l.Now().Sub(at).Round(time.Second))
	}
	if err != nil && l.Store != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.token = token
	err = l.write(token)
	if err != nil && l.Store != nil && !errors.Is(err, live.ErrUnreachable) && !errors.Is(err, live.ErrDenied) && !errors.Is(err, live.ErrUnsupported) {
		return fmt.Errorf("%w: another program was faster (%w)", ErrLease, err)
	}
	return err
}

func (l *Lease) write(text string) error {
	if l.Store != nil {
		now := l.Now()
		err := l.Store.Write(text)
		if err == nil {
			l.last = now
		}
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.File), filepath.Base(l.File)+".*")
	if err != nil {
		return err
	}
	now := l.Now()
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Close(), os.Chtimes(tmp.Name(), now, now))
	if err == nil {
		err = os.Rename(tmp.Name(), l.File)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error is what counts
		return err
	}
	l.last = now
	return nil
}

func (l *Lease) read() (at time.Time, text string, err error) {
	if l.Store != nil {
		age, text, err := l.Store.Read()
		return l.Now().Add(-age), text, err
	}
	info, err := os.Stat(l.File)
	if err != nil {
		return at, "", err
	}
	b, err := os.ReadFile(l.File)
	return info.ModTime(), string(b), err
}

// Renew renews the lease. ErrLease says that it has run out: nothing may be written any more. live.ErrUnreachable says that its store
// does not answer, live.ErrDenied that it refuses: nothing may be written until it does. A lease that nobody has taken meanwhile can be renewed then, late as it is.
func (l *Lease) Renew() error {
	if l.Store != nil {
		now := l.Now()
		switch err := l.Store.Renew(l.token); {
		case errors.Is(err, live.ErrUnreachable), errors.Is(err, live.ErrDenied):
			return err
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: the guard has released the jobs, or another program has taken over, because it was not renewed for %v (%w)", ErrLease, l.Term, err)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLease, err)
		}
		l.last = now
		return nil
	}
	switch _, text, err := l.read(); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the guard has released the jobs, because %s was not renewed for %v", ErrLease, l.File, l.Term)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLease, err)
	case text != l.token:
		return fmt.Errorf("%w: another program has %s", ErrLease, l.File)
	case l.Now().Sub(l.last) > l.Term:
		return fmt.Errorf("%w: %s was not renewed for %v", ErrLease, l.File, l.Now().Sub(l.last).Round(time.Second))
	}
	now := l.Now()
	if err := os.Chtimes(l.File, now, now); err != nil {
		return fmt.Errorf("%w: %w", ErrLease, err)
	}
	l.last = now
	return nil
}

// Left returns for how long writes may go on.
func (l *Lease) Left() time.Duration { return l.Term - l.Now().Sub(l.last) }

// End says that everything has been released.
func (l *Lease) End() error { return l.write(over) }

// Guard watches a lease, and releases all jobs when it has run out; then it ends. wait sleeps; it returns early when ctx ends, which
// ends the guard at once. A lease that says it is over, or that is not there, ends it, too.
func Guard(ctx context.Context, l *Lease, c live.Cluster, wait func(ctx context.Context, d time.Duration) error) error {
	for {
		at, text, err := l.read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil && text == over:
			return os.Remove(l.File)
		case err == nil && l.Now().Sub(at) > l.Term:
			if err := os.Remove(l.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			err := ReleaseAll(ctx, c, Releasing{Until: true, Settle: l.Term / 4, Wait: wait, Note: l.Note})
			if errors.Is(err, live.ErrTied) { // more cannot be done
				if l.Note != nil {
					l.Note("nothing is held back; " + err.Error())
				}
				return nil
			}
			return err
		}
		if wait(ctx, max(l.Term/8, time.Millisecond)) != nil {
			return nil //nolint:nilerr // somebody has ended the guard
		}
	}
}

// Watch is a guard that stays, for leases with a store: programs come and go, and it releases all jobs whenever nobody has had the lease
// for a quarter longer than its term, so that another program can take over first. It looks again after every eighth of the term until
// somebody has the lease: what owners hand over meanwhile is let go, too. beat tells others that it watches; nil = nobody. note says
// what goes wrong and what was released.
func Watch(ctx context.Context, l *Lease, c live.Cluster, beat func() error, wait func(ctx context.Context, d time.Duration) error, note func(string)) error {
	since, said := l.Now(), "" // nobody has had the lease since then
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
			return nil //nolint:nilerr // somebody has ended the guard
		case first && !errors.Is(err, live.ErrUnreachable):
			return err
		default:
			say(err.Error() + "; it is tried again")
		}
		if wait(ctx, max(l.Term/8, time.Millisecond)) != nil {
			return nil //nolint:nilerr // somebody has ended the guard
		}
	}
}

// watched is one look of Watch. It returns what it has done.
func (l *Lease) watched(ctx context.Context, c live.Cluster, beat func() error, wait func(ctx context.Context, d time.Duration) error, since *time.Time) (did string, err error) {
	if beat != nil {
		if err := beat(); err != nil {
			return "", err
		}
	}
	at, text, err := l.read()
	term := l.Term + l.Term/4
	switch {
	case err == nil && text != over && l.Now().Sub(at) <= term:
		*since = l.Now()
		return "", nil
	case err == nil && text != over:
		if err := l.Store.Remove(); err != nil { // it has just been renewed, or nobody answers
			return "", err
		}
		*since = time.Time{}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if l.Now().Sub(*since) <= term {
		return "", nil
	}
	ctx, stop := context.WithTimeout(ctx, max(l.Term, 10*time.Second))
	defer stop()
	err = ReleaseAll(ctx, c, Releasing{Wait: wait})
	if errors.Is(err, live.ErrTied) { // more cannot be done
		return "nobody steers; nothing is held back; " + err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("nobody steers, and what is held back is not released yet: %v", err) // whatever it is, the next look tries again
	}
	return "nobody steers; nothing is held back", nil
}

// Releasing says how ReleaseAll goes about it.
type Releasing struct {
	Ranks  bool // ranks are taken back, too
	Until  bool // it is tried until everything has been released, whatever the cluster says meanwhile
	Settle time.Duration
	Note   func(text string) // says what is refused, less and less often; nil = nothing
	Wait   func(ctx context.Context, d time.Duration) error
}

// releaseTries is how often ReleaseAll looks whether anything is left, where the cluster says that it has taken everything.
const releaseTries = 20

// ReleaseAll takes back whatever this program has done to waiting jobs, and looks again until nothing is left. Jobs that have started
// or ended in the meantime need nothing. live.ErrTied names jobs that were let go to nodes for which they wait, where the cluster does not
// take that back: all else has been released then.
func ReleaseAll(ctx context.Context, c live.Cluster, o Releasing) error {
	if o.Wait == nil {
		o.Wait = Sleep
	}
	pause, clean, told := time.Second, 0, 0
	tied := map[string]error{} // by job
	var last error
	for tries := 0; o.Until || tries < releaseTries; {
		s, err := c.Observe(ctx)
		if err == nil {
			actions := slices.DeleteFunc(releases(s, o.Ranks), func(a live.Action) bool { return a.Op == live.ReleaseJob && tied[a.Job] != nil })
			if len(actions) == 0 {
				if clean++; clean > 1 || o.Settle == 0 {
					return left(s, tied)
				}
				if err := o.Wait(ctx, o.Settle); err != nil { // what was under way when the program died
					return err
				}
				continue
			}
			tries, clean = tries+1, 0
			if err = failed(actions, c.Act(ctx, actions), tied); err == nil {
				continue
			}
		}
		last = err
		passes := errors.Is(err, live.ErrUnreachable) || errors.Is(err, live.ErrNotYet)
		if !o.Until && !passes { // trying again does not help
			return err
		}
		if o.Note != nil && told*2 <= tries {
			told = max(1, tries)
			o.Note(fmt.Sprintf("jobs are not released yet: %v; it is tried again", err))
		}
		tries++
		if err := o.Wait(ctx, pause); err != nil {
			return errors.Join(err, last)
		}
		longest := 30 * time.Second
		if !passes {
			longest = 10 * time.Minute
		}
		pause = min(2*pause, longest)
	}
	return fmt.Errorf("jobs may still be held after %d tries: %w", releaseTries, last)
}

// failed says what has failed. Releases that the cluster cannot do are noted in tied.
func failed(actions []live.Action, results []live.Result, tied map[string]error) error {
	var all []error
	for i, r := range results {
		switch {
		case r.Err == nil || errors.Is(r.Err, live.ErrGone):
		case errors.Is(r.Err, live.ErrTied):
			tied[actions[i].Job] = r.Err
		default:
			all = append(all, r.Err)
		}
	}
	return some(all)
}

// some joins the first three errors, and says how many more there are.
func some(all []error) error {
	if len(all) <= 3 {
		return errors.Join(all...)
	}
	return fmt.Errorf("%w, and %d more", errors.Join(all[:3]...), len(all)-3)
}

// left returns the errors of the jobs that are still tied.
func left(s *live.Snapshot, tied map[string]error) error {
	var all []error
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.State == live.Waiting && j.Freed && tied[j.ID] != nil {
			all = append(all, tied[j.ID])
		}
	}
	return some(all)
}

// releases returns the actions that take back what we have done.
func releases(s *live.Snapshot, ranks bool) (actions []live.Action) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State != live.Waiting {
			continue
		}
		if j.Ours || j.Freed {
			actions = append(actions, live.Action{Op: live.ReleaseJob, Job: j.ID})
		}
		if ranks && j.Rank != 0 {
			actions = append(actions, live.Action{Op: live.RankJob, Job: j.ID})
		}
	}
	return actions
}

// Sleep waits for d, or until ctx ends, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return ctx.Err()
	}
}
