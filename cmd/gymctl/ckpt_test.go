package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/agents/checkpoint"
)

// part is a part of a checkpoint with fixed content.
type part struct{ name, content string }

func (p part) Name() string { return p.name }

func (p part) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.content)
	return int64(n), err
}

func (p part) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

// save creates the run directory run with checkpoints of two steps.
func save(t *testing.T) {
	t.Helper()
	saveSteps(t, "run", 1000, 500)
}

func saveSteps(t *testing.T, run string, steps ...int64) {
	t.Helper()
	for _, step := range steps {
		m := checkpoint.Meta{Step: step, Env: "JobSelect-v1", Agent: "ppo", Seed: 3, Kernels: "portable"}
		dir := checkpoint.Dir(filepath.Join(run, "checkpoints"), step)
		if err := checkpoint.Save(dir, m, part{"weights.bin", "weights"}, part{"agent.bin", strings.Repeat("x", 500)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckpointsAreFoundShownAndVerified(t *testing.T) {
	t.Chdir(t.TempDir())
	save(t)
	older, newer := filepath.Join("run", "checkpoints", "500"), filepath.Join("run", "checkpoints", "1000")
	for _, dir := range []string{"run", filepath.Join("run", "checkpoints")} {
		if out, want := must(t, "ckpt", "verify", dir), older+": ok, step 500, 2 parts\n"+newer+": ok, step 1000, 2 parts\n"; out != want {
			t.Errorf("verify %s: %q, want %q", dir, out, want)
		}
	}
	if out, want := must(t, "ckpt", "verify", newer), newer+": ok, step 1000, 2 parts\n"; out != want {
		t.Errorf("verify: %q, want %q", out, want)
	}
	var d struct {
		Checkpoints []ckptInfo `json:"checkpoints"`
	}
	strict(t, must(t, "ckpt", "show", "run", "--json"), &d)
	if len(d.Checkpoints) != 2 || d.Checkpoints[1].Dir != newer || d.Checkpoints[1].Meta.Step != 1000 || d.Checkpoints[1].Meta.Agent != "ppo" ||
		len(d.Checkpoints[1].Parts) != 2 || d.Checkpoints[1].Parts[1].Size != 500 {
		t.Errorf("got %+v", d)
	}
	if out := must(t, "ckpt", "show", "run"); strings.Contains(out, "sha256") || strings.Count(out, "JobSelect-v1") != 2 {
		t.Errorf("show run:\n%s", out)
	}
	if out := must(t, "ckpt", "show", newer); !strings.Contains(out, "weights.bin") || !strings.Contains(out, "sha256") || !strings.Contains(out, " 507\n") {
		t.Errorf("show one:\n%s", out)
	}
}

func TestDamagedCheckpointsAreTheUsersToKnow(t *testing.T) {
	t.Chdir(t.TempDir())
	save(t)
	newer := filepath.Join("run", "checkpoints", "1000")
	weights := filepath.Join(newer, "weights.bin")
	check := func(want string, args ...string) {
		t.Helper()
		for _, verb := range []string{"verify", "show"} {
			code, out, said := gymctl(t, append([]string{"ckpt", verb}, args...)...)
			if code != exitMistake || verb == "show" && out != "" || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
				t.Errorf("ckpt %s %v: exit code %d, printed %q, said %q; want 2 and %q", verb, args, code, out, said, want)
			}
		}
	}
	write(t, weights, "wEights")
	check(weights, newer)
	check(weights, "run")
	write(t, weights, "weig")
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
	write(t, "file", "")
	check("this is a file, a folder is wanted", "file")
	check("no checkpoint below it", t.TempDir())
}

func TestCkptActAnswersObservations(t *testing.T) {
	inRoom(t, true)
	example := strings.Fields(strings.ReplaceAll(ckptAct(&app{}).Example, "runs/mine", "run"))
	play := func(input string) (code int, out, said string) {
		c := program(t, example[1:]...)
		var stdout, stderr strings.Builder
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
		_ = c.Run() // its exit code is looked at below
		return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	code, out, said := play("")
	if code != exitDone || said != "" || !strings.HasPrefix(out, `{"env":"JobSelect-v1","name":"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("without a request: exit code %d, printed %q, said %q", code, out, said)
	}
	if code, _, said := play("\x01\x00"); code != exitMistake || said != "gymctl: the input ends within a request\n" {
		t.Errorf("half a request: exit code %d, said %q", code, said)
	}
	wrong(t, []string{"ckpt", "act", "nowhere"}, "nowhere is neither a checkpoint")
	wrong(t, []string{"ckpt", "act"}, "want one DIR")
}
