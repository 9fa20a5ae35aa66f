package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/live"
)

// Releasing says how ReleaseAll goes about it.
type Releasing struct {
	Ranks  bool // ranks are taken back, too
	Until  bool // it is tried until everything has been released, whatever the cluster says meanwhile
	Settle time.Duration
	Note   func(text string) // says what is refused, less and less often; nil = nothing
	Wait   func(ctx context.Context, d time.Duration) error
}

// releaseTries is how often ReleaseAll looks whether anything is left, where the cluster says that it has taken
// everything.
const releaseTries = 20

// ReleaseAll takes back whatever this program has done to waiting jobs, and looks again until nothing is left. Jobs
// that have started or ended in the meantime need nothing. live.ErrTied names jobs that were let go to nodes for which
// they wait, where the cluster does not take that back: all else has been released then.
func ReleaseAll(ctx context.Context, c live.Cluster, o Releasing) error {
	if o.Wait == nil {
		o.Wait = Sleep
	}
	pause, clean, told := time.Second, 0, 0
	tied := map[string]error{} // by job
	var last error
	var taken []string // the releases that the cluster took last
	for tries := 0; o.Until || tries < releaseTries; {
		s, err := c.Observe(ctx)
		if errors.Is(err, live.ErrOver) { // no job waits any more
			return nil
		}
		if err == nil {
			actions := slices.DeleteFunc(releases(s, o.Ranks),
				func(a live.Action) bool { return a.Op == live.ReleaseJob && tied[a.Job] != nil })
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
				before := taken
				if last, taken = nil, texts(actions); slices.Equal(before, taken) { // the cluster shows it later, or never
					if err := o.Wait(ctx, time.Second); err != nil {
						return err
					}
				}
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
	if last == nil {
		n := len(taken)
		return fmt.Errorf("the cluster has taken %s %d times, and still shows what there was before",
			strings.Join(taken[:min(3, n)], ", ")+more(n-3), releaseTries)
	}
	return fmt.Errorf("jobs may still be held after %d tries: %w", releaseTries, last)
}

// more says how many things a list has left out.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// texts returns what actions say.
func texts(actions []live.Action) (list []string) {
	for _, a := range actions {
		list = append(list, a.String())
	}
	return list
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
