// A trace is simulated on a cluster under shortest job first.
package simulate_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces/csv"
)

const jobs = `job_id,submit_time,duration,num_gpu
long,0,3600,4
short,60,300,4
wide,120,600,8
`

func Example() {
	trace, err := csv.NewReader(strings.NewReader(jobs), "jobs.csv", csv.Options{})
	if err != nil {
		log.Fatal(err)
	}
	machines, _, err := cluster.Parse("1x8") // one node of eight GPUs
	if err != nil {
		log.Fatal(err)
	}
	cfg := schedulers.DefaultConfig()
	cfg.Order, cfg.Admission = "sjf", "skip" // jobs that do not fit are passed over
	policy, err := schedulers.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(sim.DefaultConfig(), machines)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Reset(trace); err != nil {
		log.Fatal(err)
	}
	var results metrics.Collector
	if err := sim.Run(context.Background(), s, policy, &results); err != nil {
		log.Fatal(err)
	}
	sum := results.Summary(0, 0)
	fmt.Printf("%d jobs, mean JCT %.0f s, makespan %.0f s\n", sum.Finished, sum.JCT.Mean, sum.Makespan)
	// Output: 3 jobs, mean JCT 2660 s, makespan 4200 s
}
