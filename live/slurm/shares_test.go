package slurm

import (
	"fmt"
	"testing"
	"time"

	"clustergym/live"
)

func TestSharesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "[]",
		"gpu:a100:4":           "[]",
		"gres/shard:10":        "[{ 10 []}]",
		"gres/shard=10":        "[{ 10 []}]",
		"cpu=8,gres/shard=3":   "[{ 3 []}]",
		"shard:h100:32(S:0-1)": "[{h100 32 []}]",
		"gpu:h100:0(IDX:N/A),shard:h100:10(4/4,4/4,2/4,0/4)": "[{h100 10 [0 1 2]}]",
		"shard:2(0/16,2/16)":  "[{ 2 [1]}]",
		"mps:50(IDX:1)":       "[{ 50 [1]}]",
		"gres:mps:25(25/100)": "[{ 25 [0]}]",
		"mps:0(IDX:N/A)":      "[{ 0 []}]",
		"shard":               "[{ 1 []}]",
	} {
		if got := fmt.Sprint(parseShares(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A GPU with a taken share is not free: of the jobs that share it, the one that may run longest holds it.
func TestSharesTakeGPUs(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hour := time.Hour
	job := func(id int64, alloc, detail string, limit time.Duration) *record {
		r := &record{id: id, states: []string{"RUNNING"}, user: "u", partition: "p", nodes: "n1", alloc: alloc,
			start: now.Add(-time.Minute).Unix(), submit: now.Add(-hour).Unix(), limit: limit, nodeCount: 1}
		if detail != "" {
			r.detail = []string{detail}
		}
		return r
	}
	for name, x := range map[string]struct {
		gres, used string
		jobs       []*record
		want       string // GPUs and places of the jobs, in order of number
	}{
		"one job": {"gpu:h100:8,shard:h100:32", "gpu:h100:0(IDX:N/A),shard:h100:10(4/4,4/4,2/4,0/4,0/4,0/4,0/4,0/4)",
			[]*record{job(1, "gres/shard=10", "shard:h100:10(4/4,4/4,2/4,0/4,0/4,0/4,0/4,0/4)", hour)}, "3 [{n1 3 [0 1 2]}]"},
		"two on one GPU": {"gpu:4,shard:16", "gpu:0,shard:4(4/4,0/4,0/4,0/4)",
			[]*record{job(1, "gres/shard=2", "shard:2(2/4,0/4,0/4,0/4)", hour),
				job(2, "gres/shard=2", "shard:2(2/4,0/4,0/4,0/4)", 2*hour)}, "0 [{n1 0 []}]; 1 [{n1 1 [0]}]"},
		"one without a limit": {"gpu:4,shard:16", "gpu:0,shard:4(4/4,0/4,0/4,0/4)",
			[]*record{job(1, "gres/shard=2", "shard:2(2/4,0/4,0/4,0/4)", 0),
				job(2, "gres/shard=2", "shard:2(2/4,0/4,0/4,0/4)", 2*hour)}, "1 [{n1 1 [0]}]; 0 [{n1 0 []}]"},
		"beside a whole GPU": {"gpu:4,shard:16", "gpu:1(IDX:0),shard:3(0/4,3/4,0/4,0/4)",
			[]*record{job(1, "gres/gpu=1", "gpu:1(IDX:0)", hour), job(2, "gres/shard=3", "shard:3(0/4,3/4,0/4,0/4)", hour)},
			"1 [{n1 1 [0]}]; 1 [{n1 1 [1]}]"},
		"the job does not tell which": {"gpu:4,shard:16", "gpu:0,shard:6(0/4,4/4,2/4,0/4)",
			[]*record{job(1, "gres/shard=6", "", hour)}, "2 [{n1 2 [1 2]}]"},
		"nothing tells which": {"gpu:4,shard:16", "",
			[]*record{job(1, "cpu=1,gres/gpu=2", "gpu:2(IDX:0-1)", hour), job(2, "gres/shard=6", "", hour)},
			"2 [{n1 2 [0 1]}]; 2 [{n1 2 [2 3]}]"},
		"more than is there": {"gpu:2,shard:8", "",
			[]*record{job(1, "gres/gpu=1", "gpu:1", hour), job(2, "gres/shard=800", "", hour)}, "1 [{n1 1 []}]; 1 [{n1 1 [0]}]"},
		"mps": {"gpu:2,mps:200", "gpu:0,mps:50(50/100,0/100)",
			[]*record{job(1, "gres/mps=50", "mps:50(50/100,0/100)", hour)}, "1 [{n1 1 [0]}]"},
		"none taken": {"gpu:2,shard:8", "gpu:0,shard:0(0/4,0/4)", []*record{job(1, "cpu=1", "", hour)},
			"0 [{n1 0 []}]"},
		"no shares": {"gpu:2", "gpu:0", []*record{job(1, "gres/shard=4", "shard:4(4/4)", hour)},
			"0 [{n1 0 []}]"},
	} {
		b := &builder{Snapshot: &live.Snapshot{At: now}, gpus: map[string][]gpus{}, arrays: map[int64]*array{},
			hets: map[int64]int{}, max: 100, cleans: map[string]string{}, used: map[string]int{}, moving: map[string]bool{},
			divided: map[string]*divided{}, whole: map[string]int{}, shared: map[string]string{}, lists: map[string][]string{}}
		if err := b.node(&machine{name: "n1", gres: x.gres, used: x.used, cpus: 8}); err != nil {
			t.Fatal(err)
		}
		for _, r := range x.jobs {
			if err := b.job(r); err != nil {
				t.Fatal(err)
			}
		}
		b.shareOut()
		if lost := b.lost(nil); len(lost) > 0 {
			t.Errorf("%s: GPUs count as lost: %v", name, lost)
		}
		got := ""
		for i := range b.Jobs {
			if i > 0 {
				got += "; "
			}
			got += fmt.Sprint(b.Jobs[i].GPUs, " ", b.Jobs[i].Places)
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
		if err := b.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
