package look_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/agents/checkpoint"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
)

func TestCheckpointsAreFoundShownAndVerified(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Save(t)
	older, newer := filepath.Join("run", "checkpoints", "500"), filepath.Join("run", "checkpoints", "1000")
	for _, dir := range []string{"run", filepath.Join("run", "checkpoints")} {
		if out, want := clitest.Must(t, "ckpt", "verify", dir),
			older+": ok, step 500, 2 parts\n"+newer+": ok, step 1000, 2 parts\n"; out != want {
			t.Errorf("verify %s: %q, want %q", dir, out, want)
		}
	}
	if out, want := clitest.Must(t, "ckpt", "verify", newer), newer+": ok, step 1000, 2 parts\n"; out != want {
		t.Errorf("verify: %q, want %q", out, want)
	}
	var d struct {
		Checkpoints []look.CkptInfo `json:"checkpoints"`
	}
	clitest.Strict(t, clitest.Must(t, "ckpt", "show", "run", "--json"), &d)
	if len(d.Checkpoints) != 2 || d.Checkpoints[1].Dir != newer || d.Checkpoints[1].Meta.Step != 1000 ||
		d.Checkpoints[1].Meta.Agent != "ppo" ||
		len(d.Checkpoints[1].Parts) != 2 || d.Checkpoints[1].Parts[1].Size != 500 {
		t.Errorf("got %+v", d)
	}
	if out := clitest.Must(t, "ckpt", "show", "run"); strings.Contains(out, "sha256") ||
		strings.Count(out, "JobSelect-v1") != 2 {
		t.Errorf("show run:\n%s", out)
	}
	if out := clitest.Must(t, "ckpt", "show", newer); !strings.Contains(out, "weights.bin") ||
		!strings.Contains(out, "sha256") || !strings.Contains(out, " 507\n") {
		t.Errorf("show one:\n%s", out)
	}
}

func TestDamagedCheckpointsAreTheUsersToKnow(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Save(t)
	newer := filepath.Join("run", "checkpoints", "1000")
	weights := filepath.Join(newer, "weights.bin")
	check := func(want string, args ...string) {
		t.Helper()
		for _, verb := range []string{"verify", "show"} {
			code, out, said := clitest.Run(t, append([]string{"ckpt", verb}, args...)...)
			if code != cli.ExitMistake || verb == "show" && out != "" || !strings.Contains(said, want) ||
				strings.Count(said, "\n") != 1 {
				t.Errorf("ckpt %s %v: exit code %d, printed %q, said %q; want 2 and %q", verb, args, code, out, said, want)
			}
		}
	}
	clitest.Write(t, weights, "wEights")
	check(weights, newer)
	check(weights, "run")
	clitest.Write(t, weights, "weig")
	check(weights, newer)
	if err := os.Remove(weights); err != nil {
		t.Fatal(err)
	}
	check("weights.bin", newer)
	if err := os.Remove(filepath.Join(newer, checkpoint.ManifestName)); err != nil {
		t.Fatal(err)
	}
	check("nothing here was saved to its end", newer)
	check("there is no such folder", "nowhere")
	clitest.Write(t, "file", "")
	check("this is a file, a folder is wanted", "file")
	check("no checkpoint below it", t.TempDir())
}

func TestCkptActAnswersObservations(t *testing.T) {
	clitest.InRoom(t, true)
	example := strings.Fields(strings.ReplaceAll(look.CkptAct(&cli.App{}).Example, "runs/mine", "run"))
	play := func(input string) (code int, out, said string) {
		c := clitest.Program(t, example[1:]...)
		var stdout, stderr strings.Builder
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
		_ = c.Run() // its exit code is looked at below
		return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	code, out, said := play("")
	if code != cli.ExitDone || said != "" || !strings.HasPrefix(out, `{"env":"JobSelect-v1","name":"`) ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("without a request: exit code %d, printed %q, said %q", code, out, said)
	}
	if code, _, said := play("\x01\x00"); code != cli.ExitMistake || said != "gymctl: the input ends within a request\n" {
		t.Errorf("half a request: exit code %d, said %q", code, said)
	}
	clitest.Wrong(t, []string{"ckpt", "act", "nowhere"}, "nowhere is neither a checkpoint")
	clitest.Wrong(t, []string{"ckpt", "act"}, "want one DIR")
}
