package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/options"
)

func TestOutputNeverReplacesItsOwnInput(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, "trace", "synth", "--jobs", "20", "-o", "jobs.csv")
	clitest.Write(t, "pool.yaml", "pool: 64\n")
	clitest.Write(t, "few.yaml", "jobs: 5\n")
	if err := os.Symlink("jobs.csv", "soft.csv"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link("jobs.csv", "hard.csv"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		args []string
	}{
		{"jobs.csv", []string{"sim", "--trace", "jobs.csv", "--cluster", "pool:64", "--events", "jobs.csv"}},
		{"jobs.csv", []string{"sim", "--trace", "jobs.csv", "--cluster", "pool:64", "--events", "soft.csv"}},
		{"jobs.csv", []string{"sim", "--trace", "soft.csv", "--cluster", "pool:64", "--events", "hard.csv"}},
		{"pool.yaml", []string{"sim", "--trace", "jobs.csv", "--cluster", "pool.yaml", "--events", "./pool.yaml"}},
		{"jobs.csv", []string{"trace", "convert", "jobs.csv", "-o", filepath.Join("..", filepath.Base(here(t)), "jobs.csv")}},
		{"few.yaml", []string{"trace", "synth", "-c", "few.yaml", "-o", "few.yaml"}},
	} {
		before, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		clitest.Wrong(t, c.args, "output file", "it is the input")
		if after, err := os.ReadFile(c.file); err != nil || string(after) != string(before) {
			t.Errorf("%v changed %s (%v)", c.args, c.file, err)
		}
	}
	// An older result may be overwritten.
	clitest.Must(t, "trace", "convert", "jobs.csv", "-o", "copy.csv")
	clitest.Must(t, "trace", "convert", "jobs.csv", "-o", "copy.csv")
}

func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReturnIsADashBeforeAnEpisodeEnds(t *testing.T) {
	for v, want := range map[float64]string{math.NaN(): "-", -1.25: "-1.250", 0: "0.000"} {
		if got := options.MeanReturn(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
