package steer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"clustergym/internal/plain"
	"clustergym/live"
)

// Lease is a file by which a guard knows that the program which steers is alive, and by which a second program finds
// the first one. The program renews it all the time. When it has not been renewed for its term, or says that it is
// over, the guard takes it away: from then on the program writes nothing any more. Safe for concurrent use.
type Lease struct {
	File string
	Term time.Duration
	Now  func() time.Time
	// Clock returns the time since a fixed moment; it is monotonic. nil = the monotonic clock in the times that Now
	// returns.
	Clock func() time.Duration
	Ranks bool              // of Guard and Watch: ranks are taken back, too
	Note  func(text string) // of Guard: says something to people; nil = nothing
	// Store keeps the lease in place of the file, where programs on several machines see it; nil = the file.
	Store LeaseStore

	mu    sync.Mutex
	token string
	last  time.Duration // when it was renewed, by our own clock
	zero  time.Time     // of our own clock, if it is that of Now
	seen  sight
}

// sight is what the last look at a lease has found.
type sight struct {
	looked bool
	mark   string        // differs with each renewal; "" = there was no lease yet
	at     time.Duration // when it was seen to change, or at first, by our own clock
}

// LeaseStore keeps a lease. Read returns the time since its last renewal, negative if that lies in the future by the
// store's clock; a mark that differs after each renewal; and the lease's text. It fails with fs.ErrNotExist if the
// lease does not exist. Write and Remove change what was read last, and fail if another program has changed it since.
// Renew fails with fs.ErrNotExist if the lease's text is not text. All fail with live.ErrUnreachable if the store does
// not answer. live/kube.Lease is one.
type LeaseStore interface {
	Read() (age time.Duration, mark, text string, err error)
	Write(text string) error
	Renew(text string) error
	Remove() error
}

// over is what a lease says that has ended in order.
const over = "over"

// ErrLease is returned when the lease has run out, or another program has it.
var ErrLease = errors.New("the lease is lost")

// takenError says that another program has the lease.
type takenError string

func (e takenError) Error() string        { return string(e) }
func (e takenError) Is(target error) bool { return target == ErrLease }

// Take writes the lease. One that another program renews is an error, which names the program.
func (l *Lease) Take(token string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seen.mark == ""
	age, ahead, text, err := l.look()
	// A file with a time in the future proves no renewal. A store is read again later, when a living program has renewed
	// its lease.
	alive := age <= l.Term && (!ahead || l.Store != nil || !first)
	switch {
	case err == nil && text != over && text != token && alive:
		return takenError(
			fmt.Sprintf(
				"%s was renewed %v ago by another program (%s); want one program for each cluster, or another --lease-file",
				l.called(), age.Round(time.Second), plain.Clip(cmp.Or(text, "which does not say its name"), 120)))
	case err != nil && !errors.Is(err, fs.ErrNotExist) && (l.Store != nil || !errors.Is(err, fs.ErrPermission)):
		return err
	}
	l.token = token
	err = l.write(token)
	if err != nil && l.Store != nil && !errors.Is(err, live.ErrUnreachable) && !errors.Is(err, live.ErrDenied) &&
		!errors.Is(err, live.ErrUnsupported) {
		return takenError(fmt.Sprintf("another program was faster: %v", err))
	}
	return err
}

// called is how people know the lease.
func (l *Lease) called() string {
	if s, ok := l.Store.(fmt.Stringer); ok {
		return "the lease " + s.String()
	}
	if l.Store != nil {
		return "the lease"
	}
	return described(l.File)
}

// clock returns the time by our own clock.
func (l *Lease) clock() time.Duration {
	if l.Clock != nil {
		return l.Clock()
	}
	if l.zero.IsZero() {
		l.zero = l.Now()
	}
	return l.Now().Sub(l.zero) // by the monotonic clock, if these times have one
}

func (l *Lease) write(text string) error {
	now := l.clock()
	var err error
	if l.Store != nil {
		err = l.Store.Write(text)
	} else {
		err = writeLease(l.File, text, l.Now())
	}
	if err == nil {
		l.last = now
	}
	return err
}

// read returns what the lease says, and how long ago it was renewed by the clock that has written the time.
func (l *Lease) read() (age time.Duration, mark, text string, err error) {
	if l.Store != nil {
		return l.Store.Read()
	}
	at, text, err := readLease(l.File)
	return l.Now().Round(0).Sub(at), at.UTC().Format(time.RFC3339Nano) + " " + text, text, err
}

// look reads the lease, and returns for how long it has not been renewed: the time since its last change that we saw,
// by our own clock. The first look relies on the time in the lease; ahead reports that this time lies in the future, so
// that a clock has been set back.
func (l *Lease) look() (age time.Duration, ahead bool, text string, err error) {
	age, mark, text, err := l.read()
	now := l.clock()
	ahead = err == nil && age < -time.Second
	switch {
	case err != nil && l.seen.looked: // it was renewed when it was last seen to be
	case err != nil:
		l.seen = sight{true, "", now}
	case l.seen.mark == "":
		l.seen = sight{true, mark, now - max(0, age)}
	case mark != l.seen.mark && ahead && l.Store == nil: // no program of this machine has written this
		l.seen.mark = mark
	case mark != l.seen.mark:
		l.seen = sight{true, mark, now}
	}
	return now - l.seen.at, ahead, text, err
}

// Age looks at the lease, and returns for how long it has not been renewed, by our own clock since it was last seen to
// change, and what it says. With an error the age is right, too.
func (l *Lease) Age() (age time.Duration, text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age, _, text, err = l.look()
	return age, text, err
}

// holder returns what the lease says.
func (l *Lease) holder() (text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, text, err = l.read()
	return text, err
}

// Renew renews the lease. ErrLease says that it has run out: nothing may be written any more. live.ErrUnreachable says
// that its store does not answer, live.ErrDenied that it refuses: nothing may be written until it does. A lease that
// nobody has taken meanwhile can be renewed then, late as it is.
func (l *Lease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Store != nil {
		now := l.clock()
		switch err := l.Store.Renew(l.token); {
		case errors.Is(err, live.ErrUnreachable), errors.Is(err, live.ErrDenied):
			return err
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf(
				"%w: the guard has released the jobs, or another program has taken over, because it was not renewed for %v (%w)",
				ErrLease, l.Term, err)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLease, err)
		}
		l.last = now
		return nil
	}
	late := l.clock() - l.last
	switch _, _, text, err := l.read(); {
	case errors.Is(err, fs.ErrNotExist) && late > l.Term:
		return fmt.Errorf("%w: the guard has released the jobs, because %s was not renewed for %v", ErrLease, l.File, l.Term)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is not there any more", ErrLease, l.File)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLease, err)
	case text != l.token:
		return fmt.Errorf("%w: another program has %s (%s)", ErrLease, l.File, plain.Clip(text, 120))
	case late > l.Term:
		return fmt.Errorf("%w: %s was not renewed for %v", ErrLease, l.File, late.Round(time.Second))
	}
	now, own := l.Now(), l.clock()
	if err := os.Chtimes(l.File, now, now); err != nil {
		return fmt.Errorf("%w: %w", ErrLease, err)
	}
	l.last = own
	return nil
}

// Left returns for how long writes may go on.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Term - (l.clock() - l.last)
}

// End says that everything has been released. A full disk takes no word any more; then the file goes.
func (l *Lease) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.write(over)
	if err != nil && l.Store == nil && os.Remove(l.File) == nil {
		return nil
	}
	return err
}
