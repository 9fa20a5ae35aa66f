package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"clustergym/bridge/client"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
)

// rowBits returns one row of a batch in a form in which NaN equals itself.
func rowBits(s env.Spec, b *env.Batch, i int) string {
	o, m, n := s.ObsLen(), s.MaskLen(), len(s.Info)
	return bits(&env.TimeStep{Kind: b.Kind[i], Reward: b.Reward[i], Elapsed: b.Elapsed[i],
		Obs: b.Obs[i*o : (i+1)*o], Mask: b.Mask[i*m : (i+1)*m], Info: b.Info[i*n : (i+1)*n]})
}

// Rows that are sent and received have the trajectories of rows that are stepped.
func TestSendAndRecvGiveWhatStepGives(t *testing.T) {
	const n, steps = 6, 70
	c := dial(t, serve(t, nil), nil)
	v, err := c.OpenVec(ctx, driftID, nil, n, client.VecConfig{Autoreset: client.NextStep})
	if err != nil {
		t.Fatal(err)
	}
	s := v.Spec()
	b, a := env.NewBatch(s, n), env.NewActions(s, n)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	var want [n][]string
	ch := make(chooser, n)
	for range steps {
		ch.choose(s, b.Mask, a)
		if err := v.Step(ctx, nil, a, b); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			want[i] = append(want[i], rowBits(s, b, i))
		}
	}

	if v, err = c.OpenVec(ctx, driftID, nil, n, client.VecConfig{Autoreset: client.NextStep, Batch: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Recv(ctx, b); !errors.Is(err, client.ErrNotPending) {
		t.Errorf("Recv with nothing out: %v, want %v", err, client.ErrNotPending)
	}
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	// Each row draws its own actions, when it is sent.
	single := func(i int) {
		row := env.Actions{N: 1, Disc: a.Disc[2*i : 2*i+2], Cont: a.Cont[2*i : 2*i+2]}
		drawFor(s, ch, i, b.Mask[i*s.MaskLen():(i+1)*s.MaskLen()], &row)
	}
	clear(ch)
	for i := range n {
		single(i)
	}
	if err := v.Send(ctx, nil, a); err != nil {
		t.Fatal(err)
	}
	if err := v.Send(ctx, []int{2}, a); err == nil {
		t.Error("a row that is out was sent again")
	}
	if err := v.Reset(ctx, []int{2}, nil, b); err == nil {
		t.Error("a row that is out was reset")
	}
	var got [n]int
	for done := 0; done < n*steps; {
		rows, err := v.Recv(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 2 {
			t.Fatalf("%d rows, want at most 2", len(rows))
		}
		var again []int
		for _, i := range rows {
			if have := rowBits(s, b, i); have != want[i][got[i]] {
				t.Fatalf("row %d, step %d:\n%s, stepped\n%s", i, got[i], have, want[i][got[i]])
			}
			if got[i]++; got[i] < steps {
				single(i)
				again = append(again, i)
			}
			done++
		}
		if len(again) > 0 {
			if err := v.Send(ctx, again, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if v.Pending() != 0 {
		t.Errorf("%d rows are out", v.Pending())
	}
	if _, err := v.Recv(ctx, b); !errors.Is(err, client.ErrNotPending) {
		t.Errorf("Recv at the end: %v", err)
	}
}

// drawFor draws an action for one row.
func drawFor(s env.Spec, ch chooser, i int, mask []bool, a *env.Actions) {
	all := make(chooser, i+1)
	all[i] = ch[i]
	wide := env.NewActions(s, i+1)
	masks := make([]bool, (i+1)*s.MaskLen())
	for k := range masks {
		masks[k] = true
	}
	copy(masks[i*s.MaskLen():], mask)
	all.choose(s, masks, wide)
	ch[i] = all[i]
	copy(a.Disc, wide.Disc[2*i:])
	copy(a.Cont, wide.Cont[2*i:])
}

func TestARefusedSendIsToldByRecv(t *testing.T) {
	c := dial(t, serve(t, nil), nil)
	v, err := c.OpenVec(ctx, driftID, nil, 3, client.VecConfig{Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := v.Spec()
	b, a, ch := env.NewBatch(s, 3), env.NewActions(s, 3), make(chooser, 3)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	ch.choose(s, b.Mask, a)
	a.Disc[2] = 77
	if err := v.Send(ctx, []int{1}, a); err != nil {
		t.Fatal(err)
	}
	a.Disc[2] = 0
	if err := v.Send(ctx, []int{2}, a); err != nil {
		t.Fatal(err)
	}
	rows, err := v.Recv(ctx, b)
	if !errors.Is(err, env.ErrIllegalAction) || len(rows) != 1 || rows[0] != 2 || v.Pending() != 0 {
		t.Errorf("rows %v, %d out, error %v; want row 2, and that the action of row 1 is illegal", rows, v.Pending(), err)
	}
}

func TestARecvGivenUpLosesNothing(t *testing.T) {
	c, g := dial(t, serve(t, nil), nil), newGate(t)
	v, err := c.OpenVec(ctx, driftID, map[string]any{"gate": g.number}, 2, client.VecConfig{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := v.Spec()
	b, a, ch := env.NewBatch(s, 2), env.NewActions(s, 2), make(chooser, 2)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ch.choose(s, b.Mask, a)
		g.shut()
		if err := v.Send(ctx, nil, a); err != nil {
			t.Fatal(err)
		}
		limited, cancel := g.givenUp()
		if _, err := v.Recv(limited, b); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
		g.open()
		rows, err := v.Recv(ctx, b)
		if err != nil || len(rows) != 2 {
			t.Fatalf("rows %v, error %v", rows, err)
		}
	}
}

func TestMistakesAreToldInTheWordsOfTheServer(t *testing.T) {
	c := dial(t, serve(t, nil), nil)
	for _, x := range []struct {
		what string
		err  error
		code wire.Code
		text string
	}{
		{"an unknown environment", second(c.Open(ctx, "Nothing-v1", nil)), wire.UnknownEnv, "Nothing-v1"},
		{"an unknown kwarg", second(c.Open(ctx, driftID, map[string]any{"fast": 1})), wire.BadKwargs, "fast"},
		{"too many environments", second(c.OpenVec(ctx, driftID, nil, 5000, client.VecConfig{})), wire.Capacity, "4096"},
		{"a mode that does not exist", second(c.OpenVec(ctx, driftID, nil, 2, client.VecConfig{Autoreset: "never"})),
			wire.BadRequest, "next_step"},
		{"a kwarg that is no value", second(c.Open(ctx, driftID, map[string]any{"slow": []any{1, int8(2)}})), "",
			"kwargs.slow[1] is of type int8"},
		{"no environments", second(c.OpenVec(ctx, driftID, nil, 0, client.VecConfig{})), "", "0 environments"},
	} {
		var e *wire.Error
		if x.err == nil || !strings.Contains(x.err.Error(), x.text) || errors.As(x.err, &e) != (x.code != "") ||
			e != nil && e.Code != x.code {
			t.Errorf("%s: error %v, want code %q and %q", x.what, x.err, x.code, x.text)
		}
	}
	e := open(t, c, driftID, nil)
	if e.Scenario() != "abc" || e.Meta().Get("colour") != "red" {
		t.Errorf("scenario %q, meta %v", e.Scenario(), e.Meta())
	}
	if _, err := e.Call(ctx, "dance", nil); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("Call: %v", err)
	}
	if _, err := e.Call(ctx, "set_task", map[string]any{"task": []float64{0.5}}); err != nil {
		t.Error(err)
	}
	if task, err := e.Call(ctx, "get_task", nil); err != nil || fmt.Sprint(task) != "[0.5]" {
		t.Errorf("get_task: %v, error %v", task, err)
	}
}

func second[T any](_ T, err error) error { return err }

// Many goroutines open and play over one connection, more than the server takes requests at a time.
func TestManyGoroutinesShareAClient(t *testing.T) {
	for _, inflight := range []int{1, 4} {
		c := dial(t, serve(t, func(cfg *server.Config) { cfg.MaxInflight = inflight }), nil)
		var wg sync.WaitGroup
		for k := range 16 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				v, err := c.OpenVec(ctx, driftID, nil, 3, client.VecConfig{Batch: 1})
				if err != nil {
					t.Error(err)
					return
				}
				s := v.Spec()
				b, a, ch := env.NewBatch(s, 3), env.NewActions(s, 3), make(chooser, 3)
				v.Seed(uint64(k))
				if err := errors.Join(v.SetTask(ctx, 1, []float64{0.5}), v.Reset(ctx, nil, nil, b)); err != nil {
					t.Error(err)
					return
				}
				if b.Obs[s.ObsLen()+3] != 0.5 || b.Obs[3] != 0 {
					t.Errorf("tilts %v and %v, want the tasks 0 and 0.5", b.Obs[3], b.Obs[s.ObsLen()+3])
				}
				for range 5 {
					ch.choose(s, b.Mask, a)
					for i := range 3 {
						if err := v.Send(ctx, []int{i}, a); err != nil {
							t.Error(err)
							return
						}
					}
					for v.Pending() > 0 {
						if _, err := v.Recv(ctx, b); err != nil {
							t.Error(err)
							return
						}
					}
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
	}
}
