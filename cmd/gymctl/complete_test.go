package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// offered returns what __complete offers for the last of args, and its directive.
func offered(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	out := clitest.Must(t, append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1]
}

const (
	filesToo = ":0" // files where no name fits
	noFiles  = ":4"
	noSpace  = ":6" // no files, and no blank behind the word
	folders  = ":16"
)

func TestCompletionOfValues(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", clitest.Jobs)
	for _, c := range []struct {
		args      string
		want      string // words that are offered
		not       string // and words that are not
		directive string
	}{
		{"sim --policy |sjf", "sjf sjf+strict sjf+skip sjf+commit sjf+easy", "fifo sjf+strict+easy", noFiles},
		{"sim --policy |sjf+", "sjf+strict sjf+skip sjf+strict+easy sjf+conservative", "sjf+skip+easy sjf", noFiles},
		{"sim --policy |srtf+", "srtf+skip srtf+strict", "srtf+commit srtf+easy", noFiles},
		{"sim --policy |fifo,sjf+sk", "fifo,sjf+skip", "sjf+skip", noFiles},
		{"sim --policy=|las,fifo+strict+e", "las,fifo+strict+easy", "", noFiles},
		{"sim --policy |roll", "rollout:", "rollout:sjf", noFiles},
		{"sim --policy |fifo,rollout:sjf", "fifo,rollout:sjf fifo,rollout:sjf+skip fifo,rollout:sjf+easy",
			"fifo,rollout:sjf+commit fifo,rollout:sjf+conservative fifo,rollout:srtf+strict", noFiles},
		{"eval --policies |rollout:s", "rollout:sjf+skip rollout:sjf@slots rollout:smallest@slots rollout:srtf+skip",
			"rollout:srtf+strict rollout:smallest-preempt", noFiles},
		{"eval --set |eval.rollout.objective=", "eval.rollout.objective=jct eval.rollout.objective=slowdown", "", noFiles},
		{"sim --peer dally-published --policy |t", "tiresias", "tetris", noFiles},
		{"sim --peer lwf-pure --policy |ssf-l", "ssf-lwf1-srsf-1-true ssf-lwf1-srsf-0-false", "ssf-bp-srsf-1-true dally",
			noFiles},
		{"peer |lwf", "lwf-pure lwf-orig lwf-pureall", "dally-published", noFiles},
		{"peer lwf-pure --policy |ssf-l", "ssf-lwf1-srsf-1-true ssf-lwf1-srsf-0-false", "ssf-bp-srsf-1-true dally", noFiles},
		{"sim --peer |lwf", "lwf-pure lwf-orig lwf-pureall", "dally-published", noFiles},
		{"sim --admission |s", "strict skip", "", noFiles},
		{"sim --backfill |", "none easy conservative", "", noFiles},
		{"sim --placement |first", "first-fit first-available", "rack", noFiles},
		{"sim --comm |", "none tree ring contention", "", noFiles},
		{"sim --estimates |", "none trace history gbdt gbdt: exact noisy:", "", noFiles},
		{"sim --estimates |noi", "noisy:", "", noSpace},
		{"sim --estimates |gbdt:", "", "", filesToo},
		{"sim --set |policy.estimates=h", "policy.estimates=history", "", noFiles},
		{"train --set |env.estimates=", "env.estimates=none env.estimates=history env.estimates=gbdt", "", noFiles},
		{"predict |f", "features fit", "", noFiles},
		{"predict eval --estimates |history,n", "history,noisy:", "history,none", noFiles},
		{"predict eval --cluster |ph", "philly-192", "", filesToo},
		{"predict eval --format |s", "swf sia", "csv", noFiles},
		{"predict fit |j", "", "", filesToo},
		{"predict show |m", "", "", filesToo},
		{"sim --cluster |ph", "philly-192 philly-vcs", "pai-1897", filesToo},
		{"sim |j", "", "", filesToo},
		{"sim jobs.csv |j", "", "", noFiles},
		{"sim --set |", "policy. trace. simulator. cluster= service=", "policy.placement=", noSpace},
		{"sim --set |policy.pl", "policy.placement=", "policy.order=", noSpace},
		{"sim --set |simulator.o", "simulator.overhead.", "simulator.overhead.start=", noSpace},
		{"sim --set |simulator.overhead.", "simulator.overhead.start= simulator.overhead.stop_per_gpu=", "", noSpace},
		{"sim --set |policy.placement=r", "policy.placement=rack policy.placement=random", "policy.placement=first-fit",
			noFiles},
		{"eval --policies |fifo+skip,sjf", "fifo+skip,sjf+skip fifo+skip,sjf@slots", "fifo+skip,sjf+commit", noFiles},
		{"eval --env DAGPlace-v1 --policies |h", "heft", "fifo", noFiles},
		{"eval --checkpoint |", "", "", folders},
		{"train -c |queue", "queuerank-ppo", "quickstart", filesToo},
		{"train --env |Queue", "QueueRank-v1", "JobSelect-v1", noFiles},
		{"train --set |ppo.ga", "ppo.gamma=", "", noSpace},
		{"train --set |env.re", "env.reward=", "", noSpace},
		{"train --set |env.forecast=o", "env.forecast=on env.forecast=off", "env.forecast=auto", noFiles},
		{"train --env DAGPlace-v1 --set |env.gr", "env.graph=", "", noSpace},
		{"experiment show rltune --set |agent.ppo.lam", "agent.ppo.lambda= agent.ppo.lambda_tau=", "agent.ppo.lr=", noSpace},
		{"train -c cartpole-ddqn --set |ddqn.", "ddqn.gamma=", "", noSpace},
		{"train --agent |", "ppo ddqn improper", "", noFiles},
		{"train --resume |", "", "", folders},
		{"train --format |s", "swf", "csv", noFiles},
		{"envs |Queue", "QueueRank-v1", "JobSelect-v1", noFiles},
		{"envs JobSelect-v1 |", "", "QueueRank-v1", noFiles},
		{"envs JobSelect-v1 --set |vis", "visible=", "", noSpace},
		{"config show |phil", "philly-192 philly-vcs", "quickstart", filesToo},
		{"config check |quick", "quickstart", "", filesToo},
		{"config show quickstart --set |eval.w", "eval.windows= eval.whole=", "", noSpace},
		{"config show philly-192 --set |na", "name=", "", noSpace},
		{"config show --cluster |top", "topdrl-2x4x4", "", filesToo},
		{"plan --policy |heft,c", "heft,cpop", "cpop", noFiles},
		{"speed --policy |sjf+", "sjf+skip", "", noFiles},
		{"trace synth --profile |", "philly hpc lublin", "", noFiles},
		{"trace synth --set |r", "rate=", "jobs=", noSpace},
		{"trace stats --format |s", "swf sia", "csv", noFiles},
		{"trace convert jobs.csv --to |", "csv swf", "", noFiles},
		{"trace get |philly", "philly-jobs", "", noFiles},
		{"ckpt verify |", "", "", folders},
		{"ckpt act |", "", "", folders},
		{"experiment run |top", "topdrl", "", noFiles},
	} {
		before, last, _ := strings.Cut(c.args, "|")
		words, flag := strings.Fields(before), ""
		if n := len(words); n > 0 && strings.HasSuffix(words[n-1], "=") {
			words, flag = words[:n-1], words[n-1]
		}
		got, directive := offered(t, append(words, flag+last)...)
		for _, w := range strings.Fields(c.want) {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %s is not offered, but %q", c.args, w, got)
			}
		}
		for _, w := range strings.Fields(c.not) {
			if slices.Contains(got, w) && strings.HasPrefix(w, flag+last) { // the shell leaves out the others
				t.Errorf("%s: offers %s", c.args, w)
			}
		}
		if directive != c.directive {
			t.Errorf("%s: directive %s, want %s", c.args, directive, c.directive)
		}
	}
}

// Everything that is offered for a policy can be simulated.
func TestOfferedPoliciesExist(t *testing.T) {
	clitest.OneGoroutine(t)
	words, _ := offered(t, "sim", "--policy", "fifo+")
	more, _ := offered(t, "sim", "--policy", "l")
	for _, p := range append(words, more...) {
		if code, _, said := clitest.Run(t, "sim", "--jobs", "5", "--cluster", "4x8", "--policy", p); code != cli.ExitDone {
			t.Errorf("%s is offered, and refused: %s", p, said)
		}
	}
	if len(words) < 6 || len(more) < 20 {
		t.Errorf("%d and %d are offered", len(words), len(more))
	}
}

// A real bash, without the package bash-completion, sources the script and completes.
func TestCompletionInBash(t *testing.T) {
	clitest.OneGoroutine(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: the test runs the completion script in it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	clitest.Write(t, "mycluster.yaml", "pool: 4\n")
	if err := os.WriteFile("gymctl", []byte(fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", clitest.AsProgram, self)), 0o700); err != nil { //nolint:gosec // must run
		t.Fatal(err)
	}
	clitest.Write(t, "try.sh", `PATH="$PWD:$PATH"
source <(gymctl completion bash) || exit 1
try() { # the words of a line with the cursor at its end, split as bash splits them
    COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9 COMPREPLY=()
    read -ra COMP_WORDS <<<"${1//=/ = }"
    [[ $1 == *[[:space:]=] ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    __start_gymctl
    echo "$1: ${COMPREPLY[*]}"
}
compopt() { :; }
try "gymctl si"
try "gymctl sim --polic"
try "gymctl sim --policy srtf+"
try "gymctl sim --policy fifo,sjf+sk"
try "gymctl sim --set policy.plac"
try "gymctl sim --set policy.placement=ra"
try "gymctl sim --placement=first-f"
try "gymctl config show --cluster philly-1"
`)
	c := exec.Command(bash, "--norc", "--noprofile", "try.sh") //nolint:gosec // found above
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil || said.Len() != 0 {
		t.Fatalf("%v, bash says %s", err, said.String())
	}
	const want = `gymctl si: sim
gymctl sim --polic: --policy --policy-file --policy-onnx
gymctl sim --policy srtf+: srtf+strict srtf+skip
gymctl sim --policy fifo,sjf+sk: fifo\,sjf+skip
gymctl sim --set policy.plac: policy.placement=
gymctl sim --set policy.placement=ra: rack random rack-skewed
gymctl sim --placement=first-f: first-fit
gymctl config show --cluster philly-1: philly-192
`
	var got []string
	for line := range strings.Lines(out.String()) { // blanks are for the eye
		got = append(got, strings.Join(strings.Fields(line), " ")+"\n")
	}
	if strings.Join(got, "") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, ""), want)
	}
}
