package steer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"clustergym/internal/fault"
	"clustergym/live"
	"clustergym/ops/steer/mirror"
)

// loop is what Run remembers from cycle to cycle.
type loop struct {
	Config
	policy *Policy
	mirror *mirror.Mirror
	layout mirror.Layout

	before   map[string]*live.Job // the jobs of the last snapshot
	looked   bool                 // there was one
	answered bool                 // the cluster has answered a look
	nodes    string               // as the log has told them
	order    string               // likewise
	chosen   map[string]bool      // what the policy has started in the last cycle
	promised map[string]*promise
	refused  map[string]*refusal  // by job
	unfit    map[string]string    // why a job is the cluster's own affair, by job
	whole    map[string]live.Node // nodes as they last showed their GPUs, by name
	short    map[string]bool      // nodes that show fewer now, and it has been said
	up       map[string]bool      // whether nodes were up at the last look
	late     map[string]int       // how often the cluster has not carried out a job's start, by job
	writes   []time.Time          // of the last minute
	away     bool                 // the cluster does not answer
	spaced   time.Duration        // until the next try
	odd      int                  // answers in a row that nobody has understood
	denied   time.Time            // since when the cluster refuses what it has granted before; zero = it does not
	line     Line
	spent    spent
	thinks   time.Time // since when
	rushed   bool      // the policy has had no time for everything before
	unseen   bool      // it has been said that no guard watches the lease
}

// spent is how long a cycle has waited for the cluster, and for the policy.
type spent struct{ read, think, write time.Duration }

// Run steers until ctx ends, what the cluster replays is over, or it refuses what the mode needs. Jobs that are held
// back are released then.
func Run(ctx context.Context, cfg Config) error {
	l := &loop{Config: cfg, before: map[string]*live.Job{}, chosen: map[string]bool{}, promised: map[string]*promise{},
		refused: map[string]*refusal{}, unfit: map[string]string{}, late: map[string]int{}, whole: map[string]live.Node{},
		short: map[string]bool{}, up: map[string]bool{}}
	if l.Wait == nil {
		l.Wait = Sleep
	}
	if l.Note == nil {
		l.Note = func(string) {}
	}
	if l.Think <= 0 {
		l.Think = l.Every / 2
	}
	l.Metrics.change(func(m *Metrics) { m.now = l.Now })
	if err := l.allowed(ctx); err != nil {
		if text, e := l.leaseText(); e == nil && text == l.Token { // there is nothing to guard
			err = errors.Join(err, l.Lease.End())
		}
		return err
	}
	if l.leased() {
		if err := l.Lease.Take(l.Token); err != nil {
			return err
		}
	}
	if l.Unleased != "" {
		l.Note(l.Unleased)
	}
	err := l.alive(func() error { return l.loop(ctx) })
	return errors.Join(err, l.end(ctx))
}

// leased reports whether a lease says that we steer.
func (l *loop) leased() bool { return l.Mode != Shadow && !l.DryRun && l.Lease != nil }

// leaseText returns the text of the lease; fs.ErrNotExist if the lease does not exist.
func (l *loop) leaseText() (string, error) {
	if !l.leased() {
		return "", fs.ErrNotExist
	}
	return l.Lease.holder()
}

// alive runs what steers. In rank the lease is renewed meanwhile as long as this process lives: ranks harm less than
// holds when a look takes long, and a policy may take longer for its first look than a lease lasts. What comes of it
// shows when something is written.
func (l *loop) alive(steers func() error) error {
	if l.Mode != Rank || !l.leased() {
		return steers()
	}
	done := make(chan struct{})
	var renews sync.WaitGroup
	renews.Go(func() {
		t := time.NewTicker(max(l.Lease.Term/4, time.Millisecond))
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				_ = l.Lease.Renew() // likewise
			}
		}
	})
	defer renews.Wait()
	defer close(done)
	return steers()
}

// gates reports whether jobs are held back.
func (l *loop) gates() bool { return l.Mode == Gate && !l.DryRun }

// allowed returns why the mode cannot be. A cluster that does not answer at the beginning is an error, too.
func (l *loop) allowed(ctx context.Context) error {
	if l.Mode == Shadow || l.DryRun {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, l.Timeout)
	defer stop()
	caps, err := l.Cluster.Can(ctx)
	if err != nil {
		return err
	}
	if why := map[string]string{Rank: caps.Rank, Gate: caps.Gate}[l.Mode]; why != "" {
		kind := live.ErrUnsupported
		if l.answered { // it could once
			kind = live.ErrDenied
		}
		return fault.Errorf("%w: %s %s: %s", kind, fault.Key("mode"), l.Mode, why)
	}
	return nil
}

func (l *loop) loop(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; {
		begun := l.Now()
		err := l.cycle(ctx)
		if ctx.Err() != nil { // what has failed then has failed for that
			return nil //nolint:nilerr // the end was asked for
		}
		switch {
		case errors.Is(err, live.ErrOver):
			l.Note(err.Error())
			return nil
		case errors.Is(err, live.ErrUnreachable) && l.answered, l.patient(err): // one that never answered is not there
			l.Metrics.change(func(m *Metrics) { m.errors++ })
			if !l.away {
				l.Note(err.Error() + "; it is tried again")
			}
			l.away, l.spaced = true, min(max(l.Every, 2*l.spaced), max(l.Every, time.Minute))
		case err != nil:
			return err
		default:
			if l.away {
				l.Note("the cluster answers again")
			}
			l.away, l.spaced, l.denied = false, l.Every-l.Now().Sub(begun), time.Time{}
			n++
		}
		if l.Cycles > 0 && n >= l.Cycles {
			return nil
		}
		if err := l.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long a cluster may refuse what it has granted before. An API server that has just started knows
// nobody's rights for a moment.
const patience = time.Minute

// patient reports whether a refusal may pass.
func (l *loop) patient(err error) bool {
	if !errors.Is(err, live.ErrDenied) || !l.answered {
		return false
	}
	if l.denied.IsZero() {
		l.denied = l.Now()
	}
	return l.Now().Sub(l.denied) < patience
}

// rest waits for the next cycle, and renews the lease meanwhile.
func (l *loop) rest(ctx context.Context) error {
	for left := max(l.spaced, time.Millisecond); left > 0; {
		d := left
		if l.leased() {
			d = min(d, l.during(l.Lease.Term/4))
			// it is tried again before anything is written
			if err := l.renew(); err != nil && !errors.Is(err, live.ErrUnreachable) && !errors.Is(err, live.ErrDenied) {
				return err
			}
		}
		if l.Wait(ctx, d) != nil { // ctx has ended
			return nil //nolint:nilerr // likewise
		}
		left -= d
	}
	return nil
}

func (l *loop) renew() error {
	err := l.Lease.Renew()
	if err == nil {
		l.Metrics.change(func(m *Metrics) { m.renewed = l.Now() })
	}
	return err
}

// end takes back what must not stay.
func (l *loop) end(ctx context.Context) error {
	ranks := l.Mode == Rank && l.Clear && !l.DryRun
	text, unread := l.leaseText()
	if unread == nil && text != l.Token && text != over {
		return nil // what is held back or ranked now is another program's
	}
	if l.gates() || ranks {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), max(l.Timeout, 10*time.Second))
		defer stop()
		switch err := ReleaseAll(ctx, l.Cluster, Releasing{Ranks: ranks, Wait: l.Wait}); {
		case errors.Is(err, live.ErrTied): // they are not held back
			l.Note(err.Error())
		case err != nil:
			return fmt.Errorf("what was written is not taken back; gymctl steer release-all does so: %w", err)
		}
	}
	if text, err := l.leaseText(); err == nil && text == l.Token {
		return l.Lease.End()
	}
	return nil
}
