package cli_test

import (
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// What flags want of each other is said in one sentence, by the rules that the help of cobra knows and by ours.
func TestRulesAmongFlagsAreOneSentence(t *testing.T) {
	for args, want := range map[string]string{
		"train --resume x --seed 2":                  "--seed does not go with --resume: its folder says it",
		"train --sort":                               "--sort goes with --trace; for the configuration's own trace use --set trace.sort=true",
		"train --continue":                           "--continue goes with --run-dir",
		"train --ack-wait 1m --seeds 2":              "--ack-wait goes with --listen or --queue",
		"train --resume=":                            `--resume: got "", want DIR`,
		"sweep":                                      "sweep: want --config or --resume; see gymctl sweep --help",
		"benchmark run --policy best":                "benchmark run: want --out; see gymctl benchmark run --help",
		"benchmark run --policy a --external b -o c": "--external and --policy do not go together",
		"steer guard --cluster slurm":                "steer guard: want --lease-file or --lease-object; see gymctl steer guard --help",
		"ckpt export x":                              "ckpt export: want --output or --card; see gymctl ckpt export --help",
		"benchmark verify x --policy a --checkpoint b --policy-onnx c": "--checkpoint, --policy and --policy-onnx do not go together",
	} {
		code, out, said := clitest.Run(t, strings.Fields(args)...)
		if code != cli.ExitMistake || out != "" || said != "gymctl: "+want+"\n" {
			t.Errorf("gymctl %s: exit code %d, said %q, want %q", args, code, said, want)
		}
	}
}

// Flags of the help stand in sections, in the order of the sections; the rest comes last.
func TestTheHelpHasSectionsOfFlags(t *testing.T) {
	out := clitest.Must(t, "sim", "--help")
	last := -1
	for _, title := range []string{"\n\nPolicies:\n      --policy ORDER", "\n\nWorkload:\n      --trace FILE",
		"\n\nCluster:\n", "\n\nOutput:\n", "\n\nOther flags:\n"} {
		at := strings.Index(out, title)
		if at < last || at < 0 {
			t.Errorf("%q stands at %d, after %d", title, at, last)
		}
		last = at
	}
	if strings.Contains(out, "--peer") {
		t.Error("the help shows hidden flags")
	}
}
