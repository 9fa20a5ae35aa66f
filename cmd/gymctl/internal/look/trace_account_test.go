package look_test

import (
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// table reads a file with a header.
func table(t *testing.T, name string, comma rune) (rows []map[string]string) {
	t.Helper()
	r := csv.NewReader(strings.NewReader(clitest.Read(t, name)))
	r.Comma = comma
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, column := range all[0] {
			m[column] = row[i]
		}
		rows = append(rows, m)
	}
	return rows
}

// The accounting of a made-up cluster is what the simulator's scheduler of the same kind would do, job by job. A last
// job, long after all others, has them all end before the accounting is written.
func TestAccountIsWhatTheSimulatorSays(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, strings.Fields("trace synth --profile philly-users --jobs 1000 --seed 3 --set rate=0.4 --set work=0.5 "+
		"--set max_gpus=24 -o jobs.csv")...)
	jobs := clitest.Read(t, "jobs.csv")
	columns := strings.Count(strings.SplitN(jobs, "\n", 2)[0], ",")
	clitest.Write(t, "jobs.csv", jobs+"90000000,60,1"+strings.Repeat(",", columns-2)+"\n")
	for _, x := range []struct{ backfill, policy string }{
		{"easy", "fifo+strict+easy"}, {"none", "fifo+strict"}, {"any", "fifo+skip"},
	} {
		clitest.Must(t, strings.Fields("trace account jobs.csv --cluster 4x8 -o slurm.txt --backfill "+x.backfill)...)
		args := strings.Fields("sim slurm.txt --cluster 4x8 --placement consolidate-best --jobs-out out.csv --policy " + x.policy)
		if x.backfill == "easy" {
			args = append(args, "--estimates", "trace")
		}
		// the last job still runs when the accounting is written, and is not read
		clitest.Must(t, args...)
		waits, waited := map[string]float64{}, 0
		for _, row := range table(t, "out.csv", ',') {
			w, err := strconv.ParseFloat(row["wait"], 64)
			if err != nil {
				t.Fatal(err)
			}
			waits[row["job_id"]] = w
		}
		differ, rows := 0, table(t, "slurm.txt", '|')
		for _, row := range rows[:len(rows)-1] {
			submit, err := time.Parse("2006-01-02T15:04:05", row["Submit"])
			start, err2 := time.Parse("2006-01-02T15:04:05", row["Start"])
			if err != nil || err2 != nil {
				t.Fatalf("%s: %v, %v", row["JobID"], err, err2)
			}
			w, there := waits[row["JobID"]]
			if !there {
				t.Fatalf("job %s is not there", row["JobID"])
			}
			if math.Abs(start.Sub(submit).Seconds()-w) > 1 { // times are whole seconds
				differ++
			}
			if w > 0 {
				waited++
			}
		}
		if differ > 0 || waited < 50 {
			t.Errorf("%s: %d of %d jobs wait otherwise than under %s; %d wait at all", x.backfill, differ, len(rows), x.policy,
				waited)
		}
	}
}

// At the last submit jobs run and wait; limits are longer than run times; the same seed gives the same bytes.
func TestAccount(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, strings.Fields("trace synth --profile philly-users --jobs 500 --seed 5 --set work=2 -o jobs.csv")...)
	out := clitest.Must(t, "trace", "account", "jobs.csv", "--cluster", "2x8")
	clitest.Must(t, "trace", "account", "jobs.csv", "--cluster", "2x8", "-o", "a.txt")
	if clitest.Read(t, "a.txt") != out {
		t.Error("the file is not what standard output has")
	}
	if other := clitest.Must(t, "trace", "account", "jobs.csv", "--cluster", "2x8", "--limit-seed", "2"); other == out {
		t.Error("another seed gives the same limits")
	}
	states := map[string]int{}
	for _, row := range table(t, "a.txt", '|') {
		states[row["State"]]++
		limit, err := strconv.Atoi(row["TimelimitRaw"])
		elapsed, err2 := strconv.Atoi(row["ElapsedRaw"])
		if err != nil || err2 != nil || limit*60 < elapsed {
			t.Errorf("job %s has run for %s s, and its limit is %s min", row["JobID"], row["ElapsedRaw"], row["TimelimitRaw"])
		}
		if (row["State"] == "PENDING") != (row["Start"] == "Unknown") || (row["End"] == "Unknown") ==
			(row["State"] == "COMPLETED") {
			t.Errorf("%v", row)
		}
	}
	if states["RUNNING"] == 0 || states["PENDING"] == 0 || states["COMPLETED"] == 0 {
		t.Errorf("states are %v", states)
	}
	clitest.Write(t, "vcs.yaml", "racks: [{nodes: [{count: 4, gpus: 8}]}]\nvcs: [{name: a, nodes: 2}]\n")
	for _, x := range []struct{ args, want string }{
		{"none.csv", "there is no such file"}, {"jobs.csv --cluster vcs.yaml", "virtual clusters"},
		{"jobs.csv --cluster 3y", "--cluster: cluster \"3y\" is unknown"},
		{"jobs.csv --backfill some", "want one of easy, none, any"},
	} {
		code, _, said := clitest.Run(t, append([]string{"trace", "account"}, strings.Fields(x.args)...)...)
		if code != cli.ExitMistake || !strings.Contains(said, x.want) {
			t.Errorf("%s: %d, %s", x.args, code, said)
		}
	}
}
