package envs

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/raced"
)

// rare are arguments with which about one window in four hundred has a decision: a job of 56 GPUs, larger than a
// machine.
var rare = wire.Map{
	{Key: "window", Value: int64(1)}, {Key: "cluster", Value: "3x48"}, {Key: "trace.synth.profile", Value: "dally-batch"},
	{Key: "trace.synth.jobs", Value: int64(3000)},
}

// Windows without a decision are skipped in every way in which an episode begins, and the same seed gives the same
// episode.
func TestWindowsWithoutADecisionAreSkipped(t *testing.T) {
	raced.Alone(t)
	// Jobs before the window fill the cluster, and the episode ends before one of them does.
	short := smallKwargs(wire.Pair{Key: "horizon", Value: "1s"}, wire.Pair{Key: "load", Value: 50.0})
	for _, c := range []struct {
		id     string
		kwargs wire.Map
	}{{delayoffer.V1, rare}, {jobselect.V1, short}} {
		for _, mode := range modes {
			p := &player{t: t, f: NewFactory(registry(t, nil))}
			p.skips(c.id, mode, c.kwargs)
		}
	}
}

func (p *player) skips(id, mode string, kwargs wire.Map) {
	t := p.t
	t.Helper()
	if err := p.open(id, mode, 4, kwargs); err != nil {
		t.Fatal(err)
	}
	undecided := 0
	for k := range 20 {
		req := p.request(wire.OpReset, wire.Map{{Key: "options", Value: wire.Map{{Key: "window", Value: int64(k)}}}})
		var e *wire.Error
		if err := p.h.Do(t.Context(), wire.OpReset, p.id, req, p.w); errors.As(err, &e) && e.Code == wire.BadRequest &&
			!strings.Contains(e.Msg, "want 0 to") {
			undecided++
		}
		p.w.Reset()
	}
	if undecided == 0 {
		t.Fatalf("%s: every window has a decision: this shows nothing", id)
	}
	var first wire.Map
	for round := range 2 {
		m := p.do(wire.OpReset, wire.Pair{Key: "seed", Value: int64(5)})
		if round == 0 {
			first = m
		} else if !reflect.DeepEqual(m.Get("obs"), first.Get("obs")) {
			t.Errorf("%s: seed 5 gives two episodes", mode)
		}
		for range 5 {
			p.do(wire.OpReset)
		}
		p.do(wire.OpReset, wire.Pair{Key: "options", Value: wire.Map{{Key: "split", Value: "train"}}})
		if mode != "disabled" {
			for range 12 { // a job that accepts ends its episode
				p.do(wire.OpStep, wire.Pair{Key: "a", Value: []any{int64(1), int64(1), int64(1), int64(1)}})
			}
		}
	}
	if err := p.h.Close(); err != nil {
		t.Error(err)
	}
}

// A window that options name is never exchanged. If it has no decision, the request is refused and names the
// environment.
func TestANamedWindowWithoutADecisionIsRefused(t *testing.T) {
	p := &player{t: t, f: NewFactory(registry(t, nil))}
	if err := p.open(delayoffer.V1, "next_step", 3, rare); err != nil {
		t.Fatal(err)
	}
	defer p.h.Close() //nolint:errcheck // it holds nothing
	p.do(wire.OpReset, wire.Pair{Key: "seed", Value: int64(5)})
	before := p.do(wire.OpSnapshot).Get("blob")
	options := []any{nil, wire.Map{{Key: "window", Value: int64(0)}}, nil}
	err := p.h.Do(t.Context(), wire.OpReset, p.id+1, p.request(wire.OpReset, wire.Map{{Key: "options", Value: options}}),
		p.w)
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.BadRequest || !reflect.DeepEqual(e.Env, []int{1}) ||
		!strings.Contains(e.Msg, "ever offered more than a node") {
		t.Errorf("%v", err)
	}
	if after := p.do(wire.OpSnapshot).Get("blob"); !reflect.DeepEqual(before, after) {
		t.Error("a refused reset has changed an environment")
	}
}

// Arguments with which no window has a decision are refused when the environments are opened.
func TestAWorkloadWithoutADecisionIsRefusedAtOpen(t *testing.T) {
	raced.Alone(t)
	for _, c := range []struct {
		id, want string
		kwargs   wire.Map
	}{
		{delayoffer.V1, "no job of any window is ever offered more than a node; want larger jobs",
			wire.Map{{Key: "max_gpus", Value: int64(1)}}},
		{delayoffer.V1, "no job of any window is ever offered more than a node; want larger jobs",
			wire.Map{{Key: "cluster", Value: "1x64"}, {Key: "max_gpus", Value: int64(8)}}},
	} {
		p := &player{t: t, f: NewFactory(registry(t, nil))}
		err := p.open(c.id, "next_step", 1, append(wire.Map{{Key: "window", Value: int64(3)}}, c.kwargs...))
		if err == nil || err.Code != wire.BadKwargs || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.id, c.kwargs, err, c.want)
		}
	}
}

// In training, where nothing is opened by a client, the error of the first reset says the same.
func TestAResetSaysThatNoWindowHasADecision(t *testing.T) {
	raced.Alone(t)
	d := Find(delayoffer.V1)
	args, err := decodeArgs(d, wire.Map{{Key: "max_gpus", Value: int64(1)}, {Key: "window", Value: int64(3)}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := registry(t, nil).workload(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Open(args.Settings, w.Source, args.part())
	if err != nil {
		t.Fatal(err)
	}
	err = e.Reset(t.Context(), env.Episode{Seed: 1, Window: -1}, env.NewTimeStep(e.Spec()))
	if !errors.Is(err, sched.ErrUndecided) || !strings.Contains(err.Error(), "no job of any window") {
		t.Error(err)
	}
}
