package dally

import (
	"context"
	"fmt"

	"clustergym/experiments/study"
	"clustergym/lab/simulate"
	peer "clustergym/peer/dally"
	"clustergym/traces"
)

// machines returns the names of the machines that the table machines compares.
func machines() []string {
	return []string{"this simulator", "authors', waiting-only", "authors', published"}
}

// machinesCell returns a cell that plays a workload in this simulator and on the authors' machine. The authors' machine
// plays the jobs that exact returns, or those of load if exact is nil.
func machinesCell(key, workload, draw string, load func() ([]traces.Job, error), exact func() ([]peer.Job, error),
	input any) study.Cell {
	return study.Cell{
		Key: key, Input: []any{method, workload, input},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			jobs, err := load()
			if err != nil {
				return nil, err
			}
			if exact == nil {
				exact = func() ([]peer.Job, error) { return simulate.PeerJobs(jobs) }
			}
			theirs, err := exact()
			if err != nil {
				return nil, err
			}
			spec, err := clusterOn(usual, "slow", 0)
			if err != nil {
				return nil, err
			}
			here := map[string]string{tunedTimers: tunedTimers, fixedTimers: fixedTimers, "Tiresias": tiresiasLease,
				"Gandiva": gandiva}
			var rows []study.Row
			done := 0
			for _, machine := range machines() {
				for _, policy := range []string{tunedTimers, fixedTimers, "Tiresias", "Gandiva"} {
					var got played
					if machine == machines()[0] {
						got, err = playHere(ctx, jobs, spec, here[policy], rules{overhead: authorsCost})
					} else { // Gandiva is the same in both variants of the authors' machine
						got, err = playPeer(ctx, theirs, machine, policy)
					}
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", machine, policy, err)
					}
					rows = append(rows,
						got.rows("machines",
							map[string]string{"workload": workload, "draw": draw, "machine": machine, "policy": policy})...)
					done++
					b.Progress(int64(done), int64(len(machines())*len(here)))
				}
			}
			return rows, nil
		},
	}
}
