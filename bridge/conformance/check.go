package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"clustergym/bridge/wire"
)

// Verdict is the outcome of one claim: it holds where Err is nil and Skipped is empty.
type Verdict struct {
	Claim   string
	Err     error  // why the claim does not hold
	Skipped string // why the claim could not be checked
	Took    time.Duration
}

// Unreachable is the error of a server that cannot be checked at all.
type Unreachable struct {
	URL string
	Err error
}

// Error implements error.
func (e *Unreachable) Error() string { return fmt.Sprintf("%s cannot be checked: %v", e.URL, e.Err) }

// Unwrap gives the cause.
func (e *Unreachable) Unwrap() error { return e.Err }

// Check holds the server against every claim, one after another, and hands each verdict to report as soon as it is
// known. It returns an *Unreachable, and no verdict, for a URL that cannot be read, a server that cannot be connected
// to, and an environment that the server does not have. When ctx ends, Check closes its connections and returns
// ctx.Err().
func Check(ctx context.Context, target Target, report func(Verdict)) error {
	if err := verify(ctx, target, (*suite).reach); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &Unreachable{URL: target.URL, Err: err}
	}
	for _, c := range claims {
		start := time.Now()
		err := verify(ctx, target, c.check)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v := Verdict{Claim: c.name, Err: err, Took: time.Since(start)}
		var s skip
		if errors.As(err, &s) {
			v.Err, v.Skipped = nil, string(s)
		}
		report(v)
	}
	return nil
}

// reach fails if the server cannot be checked at all. It ignores broken claims, which are reported one by one
// later.
func (s *suite) reach() {
	c, resp, err := s.upgrade(wire.Ext, s.Token)
	switch {
	case err == nil:
	case resp == nil && c == nil && len(s.conns) == 0:
		must(err)
	case resp != nil && resp.StatusCode == http.StatusUnauthorized:
		failf("the server knows no such token (HTTP 401)")
	case resp != nil && resp.StatusCode == http.StatusForbidden:
		failf("the token does not have role env (HTTP 403)")
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		failf("/v1/ws answers HTTP %d, want a server of the protocol", resp.StatusCode)
	default:
		return
	}
	if err := attempt(func() { c.greet(hello(wire.Ext)) }); err != nil {
		if s.Token == "" && isClosed(err, 4401) {
			failf("the server asks for a token")
		}
		return
	}
	err = attempt(func() { s.openOn(c, 1) })
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.UnknownEnv {
		failf("the server has no environment %q to play: %w", s.Env, err)
	}
}

// Tester is what Run needs of its T; *testing.T is one.
type Tester[T any] interface {
	Helper()
	Run(name string, f func(T)) bool
	Skip(args ...any)
	Error(args ...any)
}

// Run holds the server against every claim, one subtest each.
func Run[T Tester[T]](t T, target Target) {
	t.Helper()
	for _, c := range claims {
		t.Run(c.name, func(t T) {
			err := verify(context.Background(), target, c.check)
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
