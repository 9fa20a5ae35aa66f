package envtest

import (
	"errors"
	"fmt"
	"testing"

	"clustergym/env"
)

// Option changes what Run checks.
type Option func(*options)

type options struct {
	cap      int
	episodes int
	noAllocs bool
	sealed   bool
	seed     uint64
}

// Cap sets the number of steps within which every episode of random play must end. The default is Spec.MaxSteps, or
// 10,000 if that is 0.
func Cap(steps int) Option { return func(o *options) { o.cap = steps } }

// Episodes sets the number of episodes played to their end; the default is 4.
func Episodes(n int) Option { return func(o *options) { o.episodes = n } }

// NoAllocs checks that Step does not allocate once the same episodes have been played before.
func NoAllocs() Option { return func(o *options) { o.noAllocs = true } }

// Sealed checks that any single changed byte of a snapshot is detected, as a checksum does. Without it, a changed
// snapshot may also restore to another state that keeps the contract.
func Sealed() Option { return func(o *options) { o.sealed = true } }

// claims are the parts of the contract, in the order in which a new environment usually comes to satisfy them.
var claims = []struct {
	name  string
	check func(*suite) error
}{
	{"spec is sane", (*suite).specIsSane},
	{"episodes keep to the spec", (*suite).episodesKeepToTheSpec},
	{"step needs an episode", (*suite).stepNeedsAnEpisode},
	{"equal episodes give equal bytes", (*suite).equalEpisodesGiveEqualBytes},
	{"episodes of a stream stand alone", (*suite).episodesStandAlone},
	{"buffers belong to the caller", (*suite).buffersBelongToTheCaller},
	{"instances share nothing", (*suite).instancesShareNothing},
	{"illegal actions change nothing", (*suite).illegalActionsChangeNothing},
	{"a cancelled context changes nothing", (*suite).cancelledContextChangesNothing},
	{"closed is closed", (*suite).closedIsClosed},
	{"snapshots continue identically", (*suite).snapshotsContinueIdentically},
	{"broken snapshots change nothing", (*suite).brokenSnapshotsChangeNothing},
	{"tasks are part of the episode", (*suite).tasksArePartOfTheEpisode},
	{"a split that does not exist is refused", (*suite).unknownSplitsAreRefused},
	{"rendering only looks", (*suite).renderingOnlyLooks},
	{"painting only looks", (*suite).paintingOnlyLooks},
	{"steps allocate nothing", (*suite).stepsAllocateNothing},
}

// Run tests the environments that newEnv makes against the contract, one subtest per claim. Every call of newEnv must
// return a new, independent instance of the same environment; Run closes them all.
func Run(t *testing.T, newEnv func() env.Env, opts ...Option) {
	t.Helper()
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			err := verify(newEnv, opts, c.check)
			var s skip
			if errors.As(err, &s) {
				t.Skip(string(s))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// skip is the reason why a claim does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// suite is the state of one claim.
type suite struct {
	options
	newEnv func() env.Env
	spec   env.Spec
	opened []env.Env
}

// verify runs one claim and closes what it opened.
func verify(newEnv func() env.Env, opts []Option, check func(*suite) error) (err error) {
	s := &suite{options: options{episodes: 4, seed: 1}, newEnv: newEnv}
	for _, o := range opts {
		o(&s.options)
	}
	defer func() {
		for _, e := range s.opened {
			if e := e.Close(); e != nil && err == nil {
				err = fmt.Errorf("Close: %w", e)
			}
		}
	}()
	s.spec = s.open().Spec()
	if s.cap == 0 {
		s.cap = s.spec.MaxSteps
	}
	if s.cap == 0 {
		s.cap = 10_000
	}
	return check(s)
}

// open makes an instance that is closed when the claim ends.
func (s *suite) open() env.Env {
	e := s.newEnv()
	s.opened = append(s.opened, e)
	return e
}

// first returns the instance whose spec was read.
func (s *suite) first() env.Env { return s.opened[0] }
