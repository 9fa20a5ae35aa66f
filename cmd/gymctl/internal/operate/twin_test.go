package operate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/live"
	"clustergym/live/livetest"
)

// A forecast is printed, logged and drawn, and later looks say how it held.
func TestTwin(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InYard(t)
	c := inMemory(t, 2)
	c.Block("19", "it depends on 18")
	out := clitest.Must(t,
		strings.Fields(
			"twin --cluster slurm --history jobs.csv --draws 20 --arrivals none --log log --html page.html --submit 8:1h --add 1x8 --drain g0 --policy sjf+skip")...)
	for _, want := range []string{"17 jobs wait, 2 run, 1 is blocked", "starts in", "19 (8 GPUs): it depends on 18",
		"What if: submit 8:1h", "What if: add 1x8", "What if: drain g0", "What if: policy sjf+skip", "8  one node"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if page := clitest.Read(t, "page.html"); !strings.Contains(page, "it depends on 18") ||
		strings.Contains(page, "<script") {
		t.Error(page)
	}
	for range 8 {
		c.Advance(time.Hour)
		clitest.Must(t, strings.Fields("twin --cluster slurm --draws 20 --log log --json")...)
	}
	if n := len(c.Log()); n > 0 {
		t.Errorf("a twin has asked for %d actions", n)
	}
	var r struct {
		Looks, Forecasts int
		Coverage         []struct{ Share float64 }
		Verdict          string
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, "twin", "check", "log", "--json")), &r); err != nil || r.Looks != 9 ||
		r.Forecasts < 17 || len(r.Coverage) != 3 || r.Verdict == "" {
		t.Errorf("%+v, %v", r, err)
	}
	clitest.Must(t, strings.Fields("twin check log --cluster slurm --actual log")...)
	clitest.Must(t, strings.Fields("twin backtest jobs.csv --on 2x8 --simulated --moments 10 --draws 10")...)
}

func TestTwinRefuses(t *testing.T) {
	clitest.InYard(t)
	c := inMemory(t, 2)
	for _, x := range []struct{ args, want string }{
		{"twin --cluster slurm --add 4", "NODESxGPUS"},
		{"twin --cluster slurm --drain g7", "it has g0, g1"},
		{"twin --cluster slurm --submit 8", "GPUS:DURATION"},
		{"twin --cluster slurm --policy sjff", "sjf"},
		{"twin --cluster slurm --scheduler srtf", "stops running jobs"},
		{"twin --cluster slurm --draws 1", "--draws"},
		{"twin --cluster slurm --interval 100", "--interval"},
		{"twin --cluster slurm --arrivals some", "none or history"},
		{"twin --cluster slurm --arrivals history", "--history"},
		{"twin --cluster slurm --arrivals history --history jobs.csv", "two days"},
		{"twin --cluster slurm --estimates exact", "a cluster does not tell"},
		{"twin --cluster slurm --recalibrate 2", "two factors"},
		{"twin --cluster slurm --looks 2", "--every"},
		{"twin check jobs.csv", "log of gymctl twin"},
		{"twin backtest jobs.csv --on pool:16", "when jobs started"},
		{"twin backtest jobs.csv --on 2x8", "--simulated"},
		{"twin backtest jobs.csv", "--on"},
	} {
		clitest.Wrong(t, strings.Fields(x.args), x.want)
	}
	c.Unreachable(0, 1)
	if code, out, said := clitest.Run(t, "twin", "--cluster", "slurm"); code != cli.ExitFailed || out != "" ||
		!strings.Contains(said, "cannot be reached") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	before := operate.Steered
	t.Cleanup(func() { operate.Steered = before })
	operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) { return livetest.New(), nil }
	if code, _, said := clitest.Run(t, "twin", "--cluster", "slurm"); code == cli.ExitDone ||
		!strings.Contains(said, "no node with GPUs") {
		t.Errorf("exit code %d, said %q", code, said)
	}
	operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) {
		return livetest.New(livetest.Machines(1, 8)...), nil
	}
	if out := clitest.Must(t, "twin", "--cluster", "slurm"); !strings.Contains(out, "No job waits") {
		t.Error(out)
	}
}
