package improper

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	mixture "clustergym/agents/improper"
	"clustergym/experiments/study"
	"clustergym/agents/train"
	"clustergym/experiments/run"
)

func TestZZNet(t *testing.T) {
	s, _ := settingsOf(study.Plan{Quick: true})
	s.NetSteps, s.Episodes, s.Slots = 131072, 6, 2000
	b := &study.Bench{Workers: 1}
	for _, name := range []string{"even", "path", "turning"} {
		n := networkOf(name)
		for _, l := range learners() {
			for _, lr := range []float64{0.3, 1, 3} {
				cfg := learnerConfig(l)
				cfg.LR = cfg.LR * lr
				begin := time.Now()
				for seed := range uint64(2) {
					a, err := s.trainNet(t.Context(), b, n, cfg, 101+seed)
					if err != nil {
						t.Fatal(err)
					}
					p := a.Greedy().(*mixture.Policy)
					rows, err := s.playNet(t.Context(), n, nil, p, nil)
					if err != nil {
						t.Fatal(err)
					}
					sum := 0.0
					for _, r := range rows {
						sum += r.Value / float64(len(rows))
					}
					w := ""
					if cfg.Features == "none" {
						w = fmt.Sprintf("%.3f", p.Weights(nil))
					}
					fmt.Printf("%s %s lr %.2f seed %d: %.2f %s\n", name, l, cfg.LR, seed, sum, w)
				}
				_ = begin
			}
		}
		rows, err := s.reference(t.Context(), b, n)
		if err != nil {
			t.Fatal(err)
		}
		sums := map[string]float64{}
		for _, r := range rows {
			if r.Table == "networks" {
				sums[r.Labels["policy"]] += r.Value / float64(s.Episodes)
			}
		}
		fmt.Println(name, sums)
	}
}

func TestZZMix(t *testing.T) {
	s, _ := settingsOf(study.Plan{})
	s.Jobs, s.Windows = 24000, 12
	dir := t.TempDir()
	for _, name := range workloadNames() {
		if only := os.Getenv("ZZ"); only != "" && only != name {
			continue
		}
		w := workloadOf(name)
		path := filepath.Join(dir, name+".csv")
		if err := w.write(path, s.Jobs, 7); err != nil {
			t.Fatal(err)
		}
		b := &study.Bench{Workers: 1}
		begin := time.Now()
		rows, err := s.playBases(t.Context(), b, &w, path)
		if err != nil {
			t.Fatal(err)
		}
		sums, n := map[string]float64{}, map[string]float64{}
		for _, r := range rows {
			if r.Table == "workloads" && r.Metric == "jct_h" {
				sums[r.Labels["policy"]] += r.Value
				n[r.Labels["policy"]]++
			}
		}
		for k := range sums {
			sums[k] /= n[k]
		}
		fmt.Println(name, sums, n["sjf"], time.Since(begin))
		for _, r := range rows {
			if r.Table == "workloads" && r.Metric == "jct_h" && os.Getenv("ZZW") != "" {
				fmt.Printf("%s %s %.2f\n", r.Labels["policy"], r.Labels["window"], r.Value)
			}
		}
		if os.Getenv("ZZT") == "" {
			continue
		}
		for _, agent := range players() {
			begin := time.Now()
			s.Steps = 32768
			cfg, err := s.config(&w, agent, 101, path)
			if err != nil {
				t.Fatal(err)
			}
			runDir := filepath.Join(dir, name+word(agent))
			_, err = run.Train(t.Context(), cfg, run.TrainOptions{RunDir: runDir, Workers: 1, NoEval: true, Tags: "sb3", Log: func(r train.Record, per float64) {
				fmt.Println("  ", r.Step, r.Return, r.Learn)
			}, Best: func(step int64, score string, best bool) { fmt.Println("   best", step, score, best) }})
			if err != nil {
				t.Fatal(err)
			}
			world, err := s.load(t.Context(), &w, path)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := windows(t.Context(), b, world, 2, s.Windows, "x", nil, trained(runDir))
			if err != nil {
				t.Fatal(err)
			}
			own, k, mix := 0.0, 0.0, map[string]float64{}
			for _, r := range rows {
				if r.Metric == "jct_h" {
					own, k = own+r.Value, k+1
				} else {
					mix[r.Metric] += r.Value
				}
			}
			for m := range mix {
				mix[m] /= k
			}
			fmt.Println(name, agent, own/k, mix, time.Since(begin))
		}
	}
}
