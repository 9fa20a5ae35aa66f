package start_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/start"
)

// predictFolder enters a new folder with a trace of generated jobs, whose first half the model half.bin has been fitted
// to.
func predictFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	clitest.Must(t, "trace", "synth", "--jobs", "2000", "-o", "jobs.csv")
	clitest.Must(t, "predict", "fit", "jobs.csv", "--until", "0.5", "-o", "half.bin")
}

func TestPredictEvalMeasuresTheSecondHalf(t *testing.T) {
	clitest.OneGoroutine(t)
	predictFolder(t)
	code, out, said := clitest.Run(t, "predict", "eval", "jobs.csv", "--estimates", "history,gbdt:half.bin,noisy:1,exact",
		"--json")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var doc struct {
		Trace      struct{ Jobs int }
		FromS      float64 `json:"from_s"`
		Jobs       int
		Predictors []struct {
			Estimates, Rung string
			Jobs            int
			Spearman, Pairs float64
			LogError        float64    `json:"mean_log_error"`
			CI              [2]float64 `json:"spearman_ci"`
			Below           []float64
			Model           string `json:"model_sha256"`
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Trace.Jobs != 2000 || doc.Jobs != 1000 || doc.FromS <= 0 || len(doc.Predictors) != 4 {
		t.Fatalf("got %s", out)
	}
	for i, want := range [][2]string{{"history", "causal"}, {"gbdt:half.bin", "causal"}, {"noisy:1", "noisy"},
		{"exact", "exact"}} {
		p := doc.Predictors[i]
		if p.Estimates != want[0] || p.Rung != want[1] || p.Jobs != doc.Jobs || len(p.Below) != 5 ||
			!(p.CI[0] <= p.Spearman && p.Spearman <= p.CI[1]) || (p.Model != "") != (i == 1) {
			t.Errorf("predictor %d: %+v, want %v", i, p, want)
		}
	}
	if p := doc.Predictors[3]; p.Spearman != 1 || p.Pairs != 1 || p.LogError != 0 {
		t.Errorf("exact estimates are not perfect: %+v", p)
	}
	if n := strings.Count(said, " s\n"); n != 4 || !strings.Contains(said, "gymctl: history: ") {
		t.Errorf("said %q, want the seconds of four predictors", said)
	}
	table := clitest.Must(t, "predict", "eval", "jobs.csv", "--cluster", "pool:64")
	for _, want := range []string{"cluster pool:64, fifo+skip", "measured   1000 jobs", "rank correlation", "below q10",
		"gbdt       causal"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if strings.Contains(table, "trace ") {
		t.Errorf("measures requested times, which there are none of:\n%s", table)
	}
}

func TestPredictFitWritesAWholeModelOrNone(t *testing.T) {
	predictFolder(t)
	first := clitest.Read(t, "half.bin")
	for _, workers := range []string{"1", "3"} {
		clitest.Must(t, "predict", "fit", "jobs.csv", "--until", "0.5", "-o", "again.bin", "--workers", workers)
		if clitest.Read(t, "again.bin") != first {
			t.Errorf("%s workers fit another model", workers)
		}
	}
	var doc start.ModelDocument
	if err := json.Unmarshal([]byte(clitest.Must(t, "predict", "show", "half.bin", "--json")), &doc); err != nil ||
		doc.Trace != "jobs.csv" || doc.Jobs < 600 || doc.Jobs > 1000 || doc.UntilS <= 0 {
		t.Errorf("shows %+v, %v", doc, err)
	}
	if out := clitest.Must(t, "predict", "show", "half.bin"); !strings.Contains(out, "share of the gain") ||
		!strings.Contains(out, "user") {
		t.Errorf("shows %s", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, said strings.Builder
	if code := clitest.Execute(ctx, []string{"predict", "fit", "jobs.csv", "-o", "new.bin"}, &out, &said); code !=
		cli.ExitInterrupted {
		t.Errorf("interrupted: exit code %d, %s", code, said.String())
	}
	if all, err := filepath.Glob(".*"); err != nil || len(all) > 0 {
		t.Errorf("left behind: %v, %v", all, err)
	}
	if _, err := os.Stat("new.bin"); err == nil {
		t.Error("an interrupted fit leaves a file")
	}
}

func TestPredictMistakes(t *testing.T) {
	clitest.OneGoroutine(t)
	predictFolder(t)
	clitest.Write(t, "empty.bin", "")
	model := clitest.Read(t, "half.bin")
	clitest.Write(t, "cut.bin", model[:len(model)/2])
	clitest.Write(t, "old.bin", "clustergym gbdt 0\n"+model[18:])
	for args, want := range map[string]string{
		"predict eval jobs.csv --estimates hist":                     `--estimates: got "hist", want trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10; did you mean history?`,
		"predict eval jobs.csv --estimates none":                     `--estimates: got "none", of which there is nothing to measure`,
		"predict eval jobs.csv --estimates trace":                    "--estimates: got trace, and 2,000 of 2,000 jobs in jobs.csv have no requested time; want history",
		"predict eval jobs.csv --estimates=":                         `--estimates: got ""`,
		"predict eval jobs.csv --from 1.5":                           `--from: got "1.5", want a share of the jobs from 0 to 1, or a time`,
		"predict eval jobs.csv --from 1000h":                         "--from: got 1000h, and the last job of jobs.csv is submitted at",
		"predict eval jobs.csv --cluster=":                           `--cluster: got ""`,
		"predict eval jobs.csv --cluster small":                      `cluster "small" is unknown`,
		"predict eval nowhere.csv":                                   `predict eval: there is no file "nowhere.csv"; want the FILE of a trace`,
		"predict eval --trace=":                                      `--trace: got ""`,
		"predict eval jobs.csv --from 0.1 --estimates gbdt:half.bin": "model half.bin has been fitted to",
		"predict fit jobs.csv":                                       `--output: got ""`,
		"predict fit jobs.csv -o m.bin.gz":                           `--output: got "m.bin.gz", want a name without .gz and .zst`,
		"predict fit jobs.csv -o jobs.csv":                           "output file jobs.csv: it is the input jobs.csv, which would be overwritten",
		"predict fit jobs.csv -o no/m.bin":                           "output file no/m.bin: there is no folder no",
		"predict fit jobs.csv -o m.bin --until soon":                 `--until: got "soon"`,
		"predict fit jobs.csv -o m.bin --until 0.1":                  "trace jobs.csv: fewer than 500 of 2000 jobs had ended by then",
		"predict fit jobs.csv -o m.bin --workers 0":                  "--workers: got 0",
		"predict features jobs.csv --model jobs.csv -o f":            "model jobs.csv: it is no model of gymctl predict fit",
		"predict features jobs.csv --model half.bin -o half.bin":     "output file half.bin: it is the input half.bin",
		"predict show jobs.csv":                                      "model jobs.csv: it is no model of gymctl predict fit",
	} {
		code, out, said := clitest.Run(t, strings.Fields(args)...)
		if code != cli.ExitMistake || out != "" || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, said, want)
		}
	}
	// Wherever a model can be named, what is none is refused in the same words.
	for name, want := range map[string]string{
		"jobs.csv":    "it is no model of gymctl predict fit",
		"empty.bin":   "the file is empty",
		"cut.bin":     "it is damaged or cut short",
		"old.bin":     "it comes from another version of gymctl",
		"nowhere.bin": "there is no such file",
		".":           "this is a folder",
	} {
		for _, args := range []string{
			"sim jobs.csv --cluster pool:64 --policy sjf --estimates gbdt:" + name,
			"sim jobs.csv --cluster pool:64 --policy fifo --stream on --estimates gbdt:" + name,
			"train --trace jobs.csv --cluster 2x4 --run-dir run --set env.estimates=gbdt:" + name,
			"eval --trace jobs.csv --cluster 2x4 --set env.estimates=gbdt:" + name,
			"predict eval jobs.csv --estimates gbdt:" + name,
			"predict features jobs.csv --model " + name,
			"predict show " + name,
		} {
			code, out, said := clitest.Run(t, strings.Fields(args)...)
			if code != cli.ExitMistake || out != "" || !strings.Contains(said, "model "+name+": "+want) ||
				strings.Count(said, "\n") != 1 {
				t.Errorf("%s: exit code %d, %q, want %q", args, code, said, want)
			}
		}
	}
	if code, _, said := clitest.Run(t, "eval", "--trace", "jobs.csv", "--cluster", "2x4", "--set",
		"env.estimates=gbdt:all.bin"); code != cli.ExitMistake || !strings.Contains(said, "all.bin: there is no such file") {
		t.Errorf("exit code %d, %q", code, said)
	}
	clitest.Must(t, "predict", "fit", "jobs.csv", "-o", "all.bin")
	if code, _, said := clitest.Run(t, "eval", "--trace", "jobs.csv", "--cluster", "2x4", "--set",
		"env.estimates=gbdt:all.bin"); code != cli.ExitMistake ||
		!strings.Contains(said,
			"of the validation part of jobs.csv, on which it would know what no cluster can know; want a model of gymctl predict fit --until") {
		t.Errorf("exit code %d, %q", code, said)
	}
}

func TestPeersTakeNoEstimates(t *testing.T) {
	for args, want := range map[string]string{
		"--estimates history":            "--estimates does not go with --peer",
		"--set policy.estimates=history": `--estimates: got "history", want exact: the machine dally-waiting-only has no predictors`,
	} {
		args = "sim --set trace.synth.profile=dally --jobs 20 --cluster dally:4x4 --peer dally-waiting-only --policy dally " +
			args
		if code, _, said := clitest.Run(t, strings.Fields(args)...); code != cli.ExitMistake ||
			!strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, said, want)
		}
	}
}
