package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/experiments/papers"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/plan"
	"clustergym/lab/simulate"
	"clustergym/lab/sweep"
)

// Names that users write into scripts and files: verbs, and what the shell is offered.
func TestNamesStay(t *testing.T) {
	clitest.OneGoroutine(t)
	var lines []string
	for _, c := range clitest.Commands() {
		if path := c.CommandPath(); !strings.Contains(path, "completion") {
			lines = append(lines, "verb: "+path)
		}
	}
	for _, c := range []struct{ what, args string }{
		{"policy", "sim --policy"},
		{"admission", "sim --admission"},
		{"backfill", "sim --backfill"},
		{"placement", "sim --placement"},
		{"communication", "sim --comm"},
		{"estimates", "sim --estimates"},
		{"mix", "sim --mix"},
		{"interference scope", "sim --interference-scope"},
		{"peer", "sim --peer"},
		{"policy of dally-waiting-only", "sim --peer dally-waiting-only --policy"},
		{"format", "sim --format"},
		{"profile", "trace synth --profile"},
		{"format that is written", "trace convert --to"},
		{"planner", "plan --policy"},
		{"start", "plan --start"},
		{"agent", "train --agent"},
		{"environment", "train --env"},
		{"tags", "train --tags"},
		{"kernels", "train --kernels"},
		{"preset", "config show"},
		{"experiment", "experiment show"},
		{"task", "benchmark show --version v1"},
		{"task of version 2", "benchmark show"},
	} {
		for _, v := range values(t, append(strings.Fields(c.args), "")...) {
			lines = append(lines, c.what+": "+v)
		}
	}
	for _, id := range envs.IDs() {
		for _, v := range values(t, "eval", "--env", id, "--policies", "") {
			if !strings.Contains(v, "+") {
				lines = append(lines, "policy of "+id+": "+v)
			}
		}
	}
	clitest.Unchanged(t, "names.txt", lines)
}

// What the program says of its presets, environments, experiments and tasks: clusters by their machines, environments
// by their spaces, experiments by the figures that they record and by their settings, tasks by their hashes.
func TestDescriptionsStay(t *testing.T) {
	clitest.OneGoroutine(t)
	lines := []string{done(t, "config list", "config", "list", "--json"), done(t, "envs", "envs", "--json"),
		done(t, "benchmark list", "benchmark", "list", "--version", "v1", "--json"),
		done(t, "benchmark list of version 2", "benchmark", "list", "--json"), done(t, "experiment list", "experiment", "list", "--json"),
		done(t, "trace formats", "trace", "formats", "--json")}
	for _, name := range values(t, "config", "show", "") {
		lines = append(lines, done(t, "config "+name, "config", "show", name),
			done(t, "config as JSON "+name, "config", "show", name, "--json"))
	}
	for _, id := range envs.IDs() {
		lines = append(lines, done(t, "environment "+id, "envs", id, "--json"))
	}
	for _, of := range []string{"", " of version 2"} {
		version := "v1"
		if of != "" {
			version = "v2"
		}
		for _, name := range values(t, "benchmark", "show", "--version", version, "") {
			lines = append(lines, done(t, "task "+name+of, "benchmark", "show", name, "--version", version, "--json"),
				done(t, "arguments of "+name+of, "benchmark", "show", name, "--version", version, "--kwargs"))
		}
	}
	for _, s := range papers.All() {
		figures, err := s.ExpectedCSV()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "figures of "+s.Name+" "+clitest.Digest(string(figures)))
		for _, form := range []string{"", "--quick"} {
			args := append([]string{"experiment", "show", s.Name, "--json"}, strings.Fields(form)...)
			lines = append(lines, done(t, strings.TrimSpace(s.Name+" "+form), args...))
		}
	}
	clitest.Unchanged(t, "descriptions.txt", lines)
}

// Keys of configurations are those that files and --set have.
func TestKeysStay(t *testing.T) {
	var lines []string
	add := func(what string, keys []string) {
		for _, k := range keys {
			lines = append(lines, what+": "+k)
		}
	}
	run := config.Default()
	add("run", configs.AllKeys(&run))
	for _, id := range envs.IDs() {
		c := config.For(id)
		add(id, slices.DeleteFunc(configs.AllKeys(&c), func(k string) bool { return !strings.HasPrefix(k, "env.") }))
	}
	for _, k := range options.Kinds {
		if k.Name != options.RunKind {
			add(k.Name, configs.AllKeys(k.New()))
		}
	}
	sim, planning, search := simulate.DefaultConfig(), plan.DefaultConfig(), sweep.Default()
	add("sim", configs.AllKeys(&sim))
	add("plan", configs.AllKeys(&planning))
	add("sweep", configs.AllKeys(&search))
	clitest.Unchanged(t, "keys.txt", lines)
}

// Exit codes, and whether a call says something on standard output or standard error.
func TestExitCodesStay(t *testing.T) {
	clitest.OneGoroutine(t)
	var lines []string
	clitest.Elsewhere(t, func() {
		clitest.Write(t, "jobs.csv", clitest.Jobs)
		clitest.Write(t, "bad.csv", "submit_time,duration,num_gpu\n5,1,1\n0,1,1\n")
		clitest.Write(t, "bad.yaml", "trian: 1\n")
		if err := os.MkdirAll(filepath.Join("empty", "run"), 0o750); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{
			"", "version", "sim --help", "simm", "sim --nothing", "sim --jobs", "sim --jobs x", "sim --jobs 5 --cluster pool:8",
			"sim --policy nobody", "sim jobs.csv", "sim jobs.csv --cluster 1x2", "sim jobs.csv --cluster nowhere",
			"sim none.csv --cluster 1x2",
			"sim bad.csv --cluster 1x2", "sim bad.csv --cluster 1x2 --sort", "sim jobs.csv --cluster 1x1 --fail-refused",
			"sim --set policy.nothing=1",
			"sim --policy exact --jobs 500", "sim jobs.csv jobs.csv", "train -c bad.yaml", "train -c nothing",
			"train --env Nothing-v1",
			"train --resume empty", "train --set ppo.gamma=2", "eval --checkpoint none", "eval --policies nobody",
			"eval --windows 0",
			"sweep", "tune --population 3", "plan", "plan --generate nothing:1x1", "config check bad.yaml",
			"config check quickstart", "config show nothing",
			"ckpt show empty", "ckpt verify empty", "experiment show nothing", "experiment run", "benchmark show nothing",
			"benchmark verify none.json",
			"trace stats none.csv", "trace stats bad.csv", "trace synth --profile nothing",
			"trace convert jobs.csv --to nothing -o x",
			"trace convert jobs.csv --to csv -o missing/x.csv", "envs Nothing-v1", "serve --addr nowhere",
			"serve --addr 0.0.0.0:0", "steer", "twin", "worker", "ui empty",
			"predict eval --jobs 5", "predict show none.bin", "bench nothing",
		} {
			code, out, said := clitest.Run(t, strings.Fields(args)...)
			lines = append(lines, fmt.Sprintf("%d out=%t err=%t gymctl %s", code, out != "", said != "", args))
		}
	})
	clitest.Unchanged(t, "codes.txt", lines)
}
