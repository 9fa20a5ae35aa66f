package start_test

import (
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/start"
)

func TestFirstHostOfAList(t *testing.T) {
	for list, want := range map[string]string{
		"gpu[01-04,7],x3": "gpu01", "x3": "x3", "x3,gpu[1-2]": "x3", "rack[1-2]node[03-04]-ib": "rack1node03-ib",
		"n[7]": "n7", "n[7,9],m": "n7",
	} {
		if got, err := start.FirstHost(list); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", list, got, err, want)
		}
	}
	for _, list := range []string{"", "gpu[", "gpu[]", "[", "gpu[01-02", ","} {
		if got, err := start.FirstHost(list); err == nil {
			t.Errorf("%s: %q", list, got)
		}
	}
}

// Where a process is comes from variables, and flags win.
func TestPlaces(t *testing.T) {
	get := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	slurm := []string{"SLURM_PROCID", "3", "SLURM_NTASKS", "8", "SLURM_JOB_NODELIST", "a[1-9]", "SLURM_STEP_NODELIST",
		"gpu[01-04]", "SLURM_JOB_ID", "1001", "SLURM_STEP_ID", "2"}
	if p, err := start.SlurmPlace(get(slurm...)); err != nil || p != (start.Placed{"3", "8", "gpu01:32402"}) {
		t.Errorf("slurm: %+v, %v", p, err)
	}
	if p, err := start.SlurmPlace(get("SLURM_PROCID", "0", "SLURM_NTASKS", "2")); err != nil ||
		p != (start.Placed{"0", "2", ""}) {
		t.Errorf("slurm without nodes: %+v, %v", p, err)
	}
	if p := start.EnvPlace(get("RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "h", "MASTER_PORT", "29500")); p !=
		(start.Placed{"1", "4", "h:29500"}) {
		t.Errorf("env: %+v", p)
	}
	if p := start.EnvPlace(get("JOB_COMPLETION_INDEX", "5")); p != (start.Placed{"5", "", ""}) {
		t.Errorf("a job's index: %+v", p)
	}
}

func TestFaultsOfRanksAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--rank 1":           "--world is missing: a training in ranks wants --rank, --world and --rendezvous, or --ranks",
		"--rank 2 --world 2": "--rendezvous is missing",
		"--rank 2 --world 2 --rendezvous 127.0.0.1:1": `--rank: got "2", want a number from 0 to 1`,
		"--rank 0 --world 2 --rendezvous host":        `--rendezvous: got "host", want HOST:PORT of rank 0`,
		"--rank 1 --world 2 --rendezvous 127.0.0.1:0": "--rendezvous: got",
		"--rank 0 --world 2 --rendezvous 10.0.0.1:7":  "nothing is asked of ranks; want --token-file FILE",
		"--ranks mpi":                    `--ranks: got "mpi", want`,
		"--ranks nats --world 2":         "--ranks nats: want --queue URL",
		"--ranks slurm":                  "--ranks slurm: the environment does not say the",
		"--ranks env --rank 0 --world 2": "MASTER_ADDR and MASTER_PORT",
		"--token-file x":                 "--token-file goes with --rank, --world and --rendezvous or with --ranks, or with --seeds and --listen",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 --tls-ca x":                                            "--tls-cert and --tls-key go together",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 --tls-cert x --tls-key y":                              "certificate x with key y",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 --rank-timeout 1ms":                                    "--rank-timeout: got 1ms",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 --seeds 3":                                             "--rank does not go with --seeds",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 --rank-wait 50ms -c cartpole-ppo --set ppo.replicas=2": "rank 1 of 2 has not come within 50ms (there: 0)",
		// What ranks cannot have is refused before the others are waited for.
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c cartpole-ppo":                                                                                 "ppo.replicas: got 1, want 2, one for each rank",
		"--rank 1 --world 2 --rendezvous 127.0.0.1:1 -c cartpole-ppo":                                                                                 "ppo.replicas: got 1, want 2, one for each rank",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c cartpole-ddqn":                                                                                `agent: got "ddqn", want ppo`,
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c cartpole-ppo --set ppo.replicas=2 --set train.envs=7":                                         "train.envs: got 7",
		"--rank 0 --world 3 --rendezvous 127.0.0.1:0 -c cartpole-ppo --set ppo.replicas=3 --set train.envs=6 --set ppo.preempt_share=0.5":             "ppo.preempt_share: got 0.5, want 0 with ranks",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c quickstart-v1 --set ppo.replicas=2 --set train.imitate=sjf@slots":                             "train.imitate: got",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c cartpole-ppo --set ppo.replicas=2 --set train.steps=-1":                                       "train.steps",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c cartpole-ppo --set ppo.replicas=2 --html no/such/folder/page.html":                            "no/such/folder",
		"--rank 0 --world 2 --rendezvous 127.0.0.1:0 -c quickstart-exact --set ppo.replicas=2 --set train.imitate= --cluster 2x8 --trace no/such.csv": "no/such.csv",
		"--rank 1 --world 2 --rendezvous 127.0.0.1:1 -c quickstart-exact --set ppo.replicas=2 --set train.imitate= --cluster 2x8 --trace no/such.csv": "no/such.csv",
		"--ranks nats --world 2 --queue nats://127.0.0.1:1 -c cartpole-ppo":                                                                           "ppo.replicas: got 1, want 2",
	} {
		for _, name := range []string{"RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "JOB_COMPLETION_INDEX"} {
			t.Setenv(name, "")
		}
		if strings.Contains(args, "ppo") && !strings.Contains(args, "--rank-wait") {
			args += " --rank-wait 5s" // where nothing is refused, the test ends
		}
		code, _, said := clitest.Run(t, append([]string{"train"}, strings.Fields(args)...)...)
		if code == cli.ExitDone || !strings.Contains(said, want) {
			t.Errorf("%s: %d, %s, want %s", args, code, said, want)
		}
	}
}
