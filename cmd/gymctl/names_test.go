package main

import (
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// A misspelt name of any kind is refused with the right one as a suggestion.
func TestEveryKindOfNameHasASuggestion(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	for _, c := range []struct{ args, want string }{
		{"sim --policy sfj", "sjf"},
		{"sim --policy sfj+skip", "sjf+skip"},
		{"sim --policy sjf+skp", "sjf+skip"},
		{"sim --policy fifo+strict+esay", "fifo+strict+easy"},
		{"sim --policy fifo+consrvative", "fifo+conservative"},
		{"sim --policy srft+commit", "srtf"}, // srtf+commit does not exist
		{"sim --admission stric", "strict"},
		{"sim --backfill esy", "easy"},
		{"sim --placement fisrt-fit", "first-fit"},
		{"sim --estimates exakt", "exact"},
		{"sim --comm contnetion", "contention"},
		{"sim --interference-scope nod", "node"},
		{"sim --interference seded:3", "seeded:3"},
		{"sim --stream onn", "on"},
		{"sim --mix daly", "dally"},
		{"sim --format scv", "csv"},
		{"sim --cluster phily-192", "philly-192"},
		{"sim --peer dally-waitng-only", "dally-waiting-only"},
		{"sim --peer dally-published --policy daly --cluster dally:1x1", "dally"},
		{"sim --peer lwf-pure --policy ssf-lwf1-srsf-1-tru --cluster 1x2", "ssf-lwf1-srsf-1-true"},
		{"sim --peer dally-published --policy dally --cluster dally:1x1 --net slwo", "slow"},
		{"sim --set simulator.com=tree", "comm"},
		{"sim --set policy.plcement=rack", "placement"},
		{"sim --set trace.synth.profil=philly", "profile"},
		{"sim --set trace.synth.profile=phily", "philly"},
		{"eval --policies sfj+skip", "sjf+skip"},
		{"eval --policies fifo+skp", "fifo+skip"},
		{"eval --policies sfj@slots", "sjf@slots"},
		{"eval --policies sjf@slot", "sjf@slots"},
		{"eval --env DAGPlace-v1 --policies hef", "heft"},
		{"eval --env WorkerPlace-v1 --policies tetrs@slots", "tetris@slots"},
		{"eval --env JobSelect-v3", "JobSelect-v2"},
		{"eval -c quickstrt", "quickstart"},
		{"eval --format csvv --trace jobs.csv", "csv"},
		{"train --agent pppo", "ppo"},
		{"train --env QueRank-v1", "QueueRank-v1"},
		{"train --set env.reward=slowdwn", "slowdown"},
		{"train --set env.plcement=rack", "placement"},
		{"train --set ppo.gama=1", "gamma"},
		{"train --tags sb", "sb3"},
		{"train --kernels avx5", "avx512"},
		{"envs JobSelec-v1", "JobSelect-v1"},
		{"envs JobSelect-v1 --set rewrd=slowdown", "reward"},
		{"envs JobSelect-v1 --cluster phily-192", "philly-192"},
		{"plan --generate degre-3:10x3", "degree-3"},
		{"plan --generate degree-3:10x3 --policy hefft", "heft"},
		{"plan --generate degree-3:10x3 --start rndom", "random"},
		{"plan --generate degree-3:10x3 --rank-mean pair", "pairs"},
		{"plan --graph x.json --format dag-jso", "dag-json"},
		{"trace synth --profile phily", "philly"},
		{"trace synth --set profil=philly", "profile"},
		{"trace synth --to cvs", "csv"},
		{"trace convert jobs.csv --to sfw", "swf"},
		{"trace stats jobs.csv --format swff", "swf"},
		{"trace get philly-job", "philly-jobs"},
		{"config show philly-19", "philly-192"},
		{"config show --cluster phily-192", "philly-192"},
		{"config check quickstar", "quickstart"},
		{"config show quickstart --kind ru", "run"},
		{"config show quickstart --set ppo.gama=1", "gamma"},
		{"bench simulatr", "simulator"},
		{"bench --trace jobs.csv --cluster pool:8 --policy sfj+skip", "sjf+skip"},
		{"experiment run topdr", "topdrl"},
		{"serve --log-level inf", "info"},
	} {
		code, out, said := clitest.Run(t, strings.Fields(c.args)...)
		if code != cli.ExitMistake || out != "" || strings.Count(said, "\n") != 1 ||
			!strings.HasSuffix(said, "did you mean "+c.want+"?\n") {
			t.Errorf("gymctl %s: exit code %d, said %q; want one line that suggests %s", c.args, code, said, c.want)
		}
	}
	// Nothing is suggested where nothing is near.
	for _, args := range []string{"sim --policy zzzzz", "sim --policy sjf+zzzzz", "sim --placement zzzzz",
		"eval --policies zzzzz@slots"} {
		if _, _, said := clitest.Run(t, strings.Fields(args)...); strings.Contains(said, "did you mean") {
			t.Errorf("gymctl %s: %q", args, said)
		}
	}
	// The flag or key that would mend it is one that the verb has.
	for args, want := range map[string]string{
		"sim --set trace.synth.profile=phily": "gymctl: --set trace.synth.profile: ",
		"sim --set policy.quantum=-1s":        "gymctl: --set policy.quantum: ",
	} {
		if _, _, said := clitest.Run(t, strings.Fields(args)...); !strings.HasPrefix(said, want) {
			t.Errorf("gymctl %s: %q, want %s", args, said, want)
		}
	}
}
