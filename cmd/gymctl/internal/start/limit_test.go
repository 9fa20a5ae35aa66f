package start_test

import (
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// A job without a limit forbids policies that look at limits, until --limit says what stands for it.
func TestLimitStandsForMissingLimits(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.txt", "JobID|User|Submit|Start|End|ElapsedRaw|Timelimit|State|AllocTRES\n"+
		"1|a|0|0|100|100|00:02:00|COMPLETED|gres/gpu=6\n2|a|1|100|200|100|00:02:00|COMPLETED|gres/gpu=8\n3|a|2|2|50|48|UNLIMITED|COMPLETED|gres/gpu=2\n4|a|3|3|50|47|Partition_Limit|COMPLETED|gres/gpu=2\n")
	args := []string{"sim", "--trace", "jobs.txt", "--cluster", "1x8", "--policy", "fifo+strict+easy", "--estimates",
		"trace"}
	if code, _, said := clitest.Run(t, args...); code != cli.ExitMistake ||
		!strings.Contains(said,
			"2 of 4 jobs in jobs.txt have none, the first is 3; want estimates history, exact or noisy:SIGMA, or --limit TIME (trace.limit)") {
		t.Errorf("%d %s", code, said)
	}
	if out := clitest.Must(t, append(args, "--limit", "24h")...); !strings.Contains(out,
		"2 estimates missing, for which trace.limit stands") {
		t.Error(out)
	}
	starts := func(more ...string) string {
		clitest.Must(t, append(append(args, "--jobs-out", "out.csv"), more...)...)
		for line := range strings.Lines(clitest.Read(t, "out.csv")) {
			if f := strings.Split(line, ","); f[0] == "3" {
				return f[5]
			}
		}
		return ""
	}
	long, short, set := starts("--limit", "24h"), starts("--limit", "60s"), starts("--set", "trace.limit=60s")
	if long == short || short != "2" || set != short {
		t.Errorf("job 3 starts at %s behind the first in line, at %s and %s with a limit that lets it pass", long, short, set)
	}
	if code, _, said := clitest.Run(t, append(args, "--limit", "-1h")...); code != cli.ExitMistake ||
		!strings.Contains(said, "--limit: got -1h0m0s, want a time such as 24h") {
		t.Errorf("%d %s", code, said)
	}
	if code, _, said := clitest.Run(t, "eval", "--env", "JobSelect-v1", "--trace", "jobs.txt", "--cluster", "1x8",
		"--estimates", "trace", "--set", "env.window=2"); code != cli.ExitMistake || !strings.Contains(said, "--limit") {
		t.Errorf("%d %s", code, said)
	}
	if code, _, said := clitest.Run(t, "train", "-c", "cartpole-ppo", "--limit", "1h"); code != cli.ExitMistake ||
		!strings.Contains(said, "--limit: CartPole-v1 has no workload") {
		t.Errorf("%d %s", code, said)
	}
}
