package main

import (
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
)

// Runs of the environments and agents of the presets keep every file of their directories. What lab/run trains in its
// own golden test is not trained again here.
func TestRunsKeepTheirFiles(t *testing.T) {
	clitest.OneGoroutine(t)
	const (
		steps = " --set train.steps=256 --set train.envs=4 --set train.log_every=128 --set train.eval_every=128 --set train.checkpoint_every=128"
		jobs  = " --set trace.synth.jobs=1500 --set env.window=24 --set eval.windows=3"
		ppo   = steps + " --set ppo.steps=32 --set ppo.epochs=2 --set ppo.minibatches=2"
		plain = " --set train.imitate= --set train.imitate_steps=0 --set train.imitate_epochs=0 --set train.imitate_rounds=0 --set train.group=0"
		teach = " --set train.imitate_steps=64 --set train.imitate_epochs=2 --set train.group=2"
		meta  = " --set train.steps=500 --set eval.episodes=2 --set eval.validation=1 --set maml.tasks=2"
	)
	var lines []string
	clitest.Elsewhere(t, func() {
		for _, c := range []struct{ preset, args string }{
			{"quickstart-v1", jobs + ppo + teach + " --set env.warm=8 --set train.imitate=sjf@slots"},
			{"jobselect-preempt", jobs + ppo + plain + " --set env.warm=8"},
			{"gpupick-ppo", jobs + ppo},
			{"gpupick-table", jobs + ppo},
			{"policymix-ppo", jobs + ppo + " --set env.warm=8"},
			{"policymix-improper", jobs + steps + " --set env.warm=8"},
			{"queuerank-ppo", jobs + ppo},
			{"queuerank-rlscheduler", jobs + ppo},
			{"queuerank-rltune", jobs + ppo},
			{"delayoffer-ppo", jobs + ppo},
			{"workerplace-maml", meta},
			{"nav2d-maml", meta},
			{"nav2d-ppo", ppo + " --set eval.episodes=3"},
			{"invalidaction-ppo", ppo + " --set eval.episodes=3"},
		} {
			name := strings.TrimSuffix(c.preset, "-v1") // of the folder, which the lines have
			args := "train -c " + c.preset + " --kernels portable --workers 2 --json --run-dir runs/" + name +
				" --set train.keep=0 --set eval.validation=1" + c.args
			if !strings.Contains(c.args, "maml.tasks") {
				args = strings.Replace(args, "validation=1", "validation=2", 1)
			}
			lines = append(lines, done(t, name, strings.Fields(args)...))
			lines = append(lines, folder(t, name, filepath.Join("runs", name))...)
		}
		clitest.Must(t, "ckpt", "export", "runs/quickstart", "-o", "policy.onnx")
		lines = append(lines,
			"ckpt export "+clitest.Digest(clitest.Read(t, "policy.onnx")),
			done(t, "ckpt show", "ckpt", "show", "runs/quickstart", "--json"),
			done(t, "ckpt verify", "ckpt", "verify", "runs/quickstart", "--json"),
			done(t, "eval of a checkpoint", "eval", "--checkpoint", "runs/quickstart", "--policies", "sjf@slots", "--kernels",
				"portable", "--workers", "2", "--json"),
			done(t, "eval of an ONNX model",
				strings.Fields(
					"eval -c quickstart-v1 --policy-onnx policy.onnx --policies sjf@slots --kernels portable --workers 2 --json"+jobs+
						" --set env.warm=8")...),
		)
	})
	clitest.Unchanged(t, "runs.txt", lines)
}

// Comparisons, searches and plans keep their documents and files.
func TestComparisonsKeepTheirDocuments(t *testing.T) {
	clitest.OneGoroutine(t)
	const few = " --workers 2 --kernels portable --json --set trace.synth.jobs=1500 --set env.window=24"
	var lines []string
	clitest.Elsewhere(t, func() {
		for _, c := range []struct{ name, args string }{
			{"eval JobSelect",
				"eval -c quickstart-exact --policies sjf+skip,sjf@slots,random@slots,hold,hold@slots,gittins+skip,hindsight:sjf+skip --windows 3 --set env.warm=8" + few},
			{"eval rungs",
				"eval -c quickstart-v1 --rungs none,history,gbdt,exact --policies fifo+skip,smallest@slots,sjf+skip --windows 3 --set env.warm=8" + few},
			{"eval rollout",
				"eval -c quickstart-v1 --policies sjf+skip,rollout:sjf@slots --budget 8 --windows 2 --no-whole --set env.warm=8" +
					few},
			{"eval preempt",
				"eval -c jobselect-preempt --policies srtf+skip,gittins@slots,index@slots --windows 2 --no-whole --set env.warm=8" +
					few},
			{"eval GPUPick", "eval -c gpupick-ppo --policies random@slots,optimal@slots --windows 2" + few},
			{"eval QueueRank", "eval -c queuerank-ppo --policies fifo@slots,f1@slots,sjf+easy --windows 2" + few},
			{"eval QueueRank of RLTune", "eval -c queuerank-rltune --policies fifo@slots,sjf@slots --windows 2" + few},
			{"eval DelayOffer", "eval -c delayoffer-ppo --policies nearest@slots,give-way@slots --windows 2" + few},
			{"eval PolicyMix", "eval -c policymix-ppo --policies random@slots --windows 2 --set env.warm=8" + few},
			{"eval DAGPlace", "eval --env DAGPlace-v1 --policies heft,peft,eft@slots,random --episodes 4 --workers 2 --json"},
			{"eval WorkerPlace",
				"eval --env WorkerPlace-v1 --policies tetris@slots,sjf-waits@slots,oracle@slots --episodes 4 --workers 2 --json"},
			{"tune hold",
				"tune -c quickstart-exact --generations 2 --population 4 --windows 4 --every 1 --seed 3 --dir hold --set env.warm=8" + few},
			{"tune index",
				"tune -c jobselect-preempt --generations 2 --population 4 --windows 2 --every 1 --seed 3 --dir index --set env.warm=8" + few},
			{"predict eval", "predict eval --jobs 600 --estimates history,noisy:1 --json"},
		} {
			lines = append(lines, done(t, c.name, strings.Fields(c.args)...))
		}
		lines = append(lines, folder(t, "tune", "hold")...)
		lines = append(lines, folder(t, "tune", "index")...)

		clitest.Write(t, "space.yaml",
			"base: cartpole-ppo\nset: [train.steps=256, train.envs=4, ppo.steps=32, ppo.minibatches=2, ppo.epochs=2, train.log_every=128, train.eval_every=128, train.checkpoint_every=128, eval.episodes=2, eval.validation=2]\n"+
				"space: {ppo.lr: {min: 1e-4, max: 1e-2, log: true}, ppo.epochs: [1, 2]}\ntrials: 2\nseeds: 1\n")
		lines = append(lines,
			done(t, "sweep", "sweep", "-c", "space.yaml", "--dir", "found", "--workers", "2", "--kernels", "portable", "--json"))
		lines = append(lines, folder(t, "sweep", "found")...)

		clitest.Must(t, "plan", "--generate", "degree-3:12x3", "-o", "graph.json")
		lines = append(lines, "graph "+clitest.Digest(clitest.Read(t, "graph.json")))
		for _, p := range values(t, "plan", "--policy", "") {
			lines = append(lines,
				done(t, "plan "+p, "plan", "--graph", "graph.json", "--policy", p, "--budget", "4x8", "--json"))
		}
		for _, start := range values(t, "plan", "--start", "") {
			lines = append(lines,
				done(t, "plan from "+start, "plan", "--graph", "graph.json", "--policy", "worl-rtgs", "--start", start, "--budget",
					"4x8", "--json"))
		}
		const tasks = "jobselect-users-none,preempt-users-exact,queuerank-easy-causal,gpupick-proximity-causal,delayoffer-las-causal,dagplace-fork-join,workerplace-pairs"
		lines = append(lines,
			done(t, "benchmark run", "benchmark", "run", "--version", "v1", "--policy", "best", "--tasks", tasks,
				"--workers", "2", "-o", "rows", "--json"))
		lines = append(lines, folder(t, "benchmark run", "rows")...)
	})
	clitest.Unchanged(t, "comparisons.txt", lines)
}

// Generated and converted traces keep their bytes, as does what is said of them.
func TestTracesKeepTheirBytes(t *testing.T) {
	clitest.OneGoroutine(t)
	var lines []string
	clitest.Elsewhere(t, func() {
		for _, p := range values(t, "trace", "synth", "--profile", "") {
			file := p + ".csv"
			lines = append(lines,
				done(t, "synth "+p, "trace", "synth", "--profile", p, "--jobs", "150", "--seed", "7", "-o", file, "--json"),
				file+" "+clitest.Digest(clitest.Read(t, file)),
				done(t, "stats "+p, "trace", "stats", file, "--json"))
			for _, to := range values(t, "trace", "convert", "--to", "") {
				out := filepath.Join("converted-" + p + "." + to)
				lines = append(lines, done(t, "convert "+p+" "+to, "trace", "convert", file, "--to", to, "-o", out, "--json"))
				if strings.HasSuffix(lines[len(lines)-1], " refused") {
					continue
				}
				lines = append(lines, out+" "+clitest.Digest(clitest.Read(t, out)))
			}
		}
		clitest.Must(t, "trace", "synth", "--profile", "philly-users", "--jobs", "900", "-o", "many.csv")
		clitest.Must(t, "predict", "fit", "many.csv", "-o", "model.bin")
		lines = append(lines, "model.bin "+clitest.Digest(clitest.Read(t, "model.bin")),
			done(t, "predict show", "predict", "show", "model.bin", "--json"))
		clitest.Must(t, "trace", "synth", "--profile", "lublin", "--jobs", "150", "--to", "swf", "-o", "log.swf")
		lines = append(lines, "log.swf "+clitest.Digest(clitest.Read(t, "log.swf")),
			done(t, "stats log.swf", "trace", "stats", "log.swf", "--json"))
	})
	clitest.Unchanged(t, "traces.txt", lines)
}
