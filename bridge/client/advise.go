package client

import (
	"context"
	"fmt"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// Advise returns the action that a policy would take at the current time step, one number for each factor of the
// action. The server lists the policies in Meta under "advise": rules, as sjf@slots, and rules that look ahead, as
// rollout:sjf@slots. budget is of the latter, a number of rollouts or a time, as "64" or "30ms"; "" = 128 rollouts, or
// the server's most if that is less. Asking changes nothing. With a budget of time the answer depends on the machine.
//
// Errors are *wire.Errors of code needs_reset if the episode has ended or none has begun, unsupported if the policy
// cannot act here or is not enabled, bad_request for unknown policies and budgets out of range.
func (e *Env) Advise(ctx context.Context, policy, budget string) ([]int32, error) {
	if e.closed {
		return nil, env.ErrClosed
	}
	ret, err := e.call(ctx, "advise", adviceArgs(policy, budget))
	if err != nil {
		return nil, err
	}
	rows, err := adviceOf(ret, 1)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// Advise is Env.Advise for all rows at once. The result is the caller's. A row whose episode has ended and that resets
// itself at the next step answers 0, which that step ignores.
func (v *Vec) Advise(ctx context.Context, policy, budget string) ([][]int32, error) {
	if v.closed {
		return nil, env.ErrClosed
	}
	ret, err := v.call(ctx, "advise", adviceArgs(policy, budget))
	if err != nil {
		return nil, err
	}
	return adviceOf(ret, len(v.all))
}

func adviceArgs(policy, budget string) wire.Map {
	args := wire.MapOf("policy", policy)
	if budget != "" {
		args.Add("budget", budget)
	}
	return args
}

// adviceOf reads one action for each of n rows.
func adviceOf(ret any, n int) ([][]int32, error) {
	list, ok := ret.([]any)
	if !ok || len(list) != n {
		return nil, fmt.Errorf("%w: advise answered something else than a list of %d actions", ErrReply, n)
	}
	rows := make([][]int32, n)
	for i, a := range list {
		factors, many := a.([]any)
		if !many {
			factors = []any{a}
		}
		for _, f := range factors {
			x, ok := f.(int64)
			if !ok || x != int64(int32(x)) {
				return nil, fmt.Errorf("%w: advise answered %v for row %d, want whole numbers", ErrReply, a, i)
			}
			rows[i] = append(rows[i], int32(x))
		}
	}
	return rows, nil
}
