package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/internal/slurmtest"
	"clustergym/live"
	"clustergym/live/livetest"
)

// TestRealSuite has a real Slurm do what every adapter must do.
func TestRealSuite(t *testing.T) {
	t.Parallel()
	livetest.Suite(t, func(t *testing.T) *livetest.Bench {
		s, c := realCluster(t,
			slurmtest.Options{Nodes: []slurmtest.Node{{Name: "g0", Type: "a100", GPUs: 4}, {Name: "g1", Type: "a100", GPUs: 4}}})
		return &livetest.Bench{
			Cluster: c,
			Another: func(*testing.T) live.Cluster { return New(c.run, Options{}) },
			Submit: func(_ *testing.T, name string, gpus int) string {
				return strings.TrimSpace(s.Sh(fmt.Sprintf("sbatch --parsable -o /dev/null -J %s --gpus=%d --wrap 'sleep 600'", name,
					gpus)))
			},
			Finish: func(_ *testing.T, id string) { s.Sh("scancel " + id) },
			Settle: func(t *testing.T, what string, ok func(*live.Snapshot) bool) *live.Snapshot {
				t.Helper()
				begun, hurried := time.Now(), false
				for {
					snap := look(t, c)
					if ok(snap) {
						return snap
					}
					if time.Since(begun) > 4*time.Minute {
						t.Fatalf("it does not happen that %s: %s", what, printed(snap))
					}
					if !hurried { // Slurm would let a requeued job wait for two minutes
						hurried = s.Sh(
							`for j in $(squeue -h -t PD -o '%A %r' | awk '/BeginTime/ {print $1}'); do scontrol update jobid=$j StartTime=now+3; echo $j; done`) != ""
					}
					time.Sleep(300 * time.Millisecond)
				}
			},
		}
	})
}
