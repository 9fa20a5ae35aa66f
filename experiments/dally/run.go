package dally

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	"clustergym/env/metrics"
	"clustergym/env/peer/dally"
	"clustergym/env/sim"
	"clustergym/experiments/simulate"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
	"clustergym/traces"
	authored "clustergym/traces/dally"
	"clustergym/traces/synth"
)

// dallyMethod is the version of how the cells of the study dally are computed: another one computes them again.
const dallyMethod = 4

// dallyNets are the networks, from the fastest to the slowest.
func dallyNets() []string { return []string{"published", "older", "slow", "ethernet"} }

// dallyWorkloads are the generated workloads.
func dallyWorkloads() []string { return []string{"dally", "dally-batch", "dally-multi", "helios"} }

// dallyTimers are the policies that differ in their timers alone.
func dallyTimers() []string { return []string{dallyAuto, dallyFixed, dallyAccept, dallyNever} }

// dallyMachines are what the table machines compares.
func dallyMachines() []string {
	return []string{"this simulator", "authors', waiting-only", "authors', published"}
}

// dallyCluster is four racks of four machines of eight GPUs on a network; congestion is the share of the bandwidth
// between machines, and between racks, that others take.
func dallyCluster(net string, congestion float64) (cluster.Spec, error) {
	spec, _, err := cluster.Parse("dally:4x4")
	if err != nil {
		return spec, err
	}
	up, nic := &spec.Racks[0].Uplink, &spec.Racks[0].Nodes[0].NIC
	switch net {
	case "older": // of the authors' program: 12 GB/s and 50 ms between racks
		up.Gbps, up.Latency = 96, 50*time.Millisecond
	case "slow":
		nic.Gbps, up.Gbps = 200, 80
	case "ethernet": // 25 Gbit/s to each machine, four of them share an uplink of 100
		nic.Gbps, nic.Latency, up.Gbps = 25, 50*time.Microsecond, 100
	}
	nic.Gbps *= 1 - congestion
	up.Gbps *= 1 - congestion
	spec.Name = net
	return spec, nil
}

// dallyJobs is one draw of a workload.
func dallyJobs(workload string, jobs, draw int) ([]traces.Job, error) {
	c := synth.DefaultConfig()
	c.Profile, c.Jobs, c.MaxGPUs = workload, jobs, 128
	list, err := synth.Generate(c, uint64(1000+draw))
	if err != nil {
		return nil, err
	}
	return modelled(list, uint64(draw))
}

// modelled gives jobs without a model one of the six, as often as they come in the authors' workloads.
func modelled(jobs []traces.Job, seed uint64) ([]traces.Job, error) {
	mix, err := dallyMix()
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		if jobs[i].Profile == nil {
			m, _ := mix.Draw(seed, jobs[i].ID)
			jobs[i].Model, jobs[i].Profile = m.Name, authored.Profile(m.Name)
		}
	}
	return jobs, nil
}

// dallyPolicy is the scheduler that a table's name stands for.
func dallyPolicy(name string) heuristic.Config {
	h := heuristic.DefaultConfig()
	h.Placement = "rack"
	switch name {
	case dallyAuto:
		h.Order = "dally"
	case dallyFixed:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 5, 10
	case dallyAccept:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 0, 0
	case dallyNever:
		h.Order, h.Auto, h.RackWait, h.NetworkWait = "dally", false, 1e6, 1e6
	case dallyTiresias:
		h.Order = "tiresias-lease"
	case dallyLAS:
		h.Order = "las-2d"
	case dallyGandiva:
		h.Order = "gandiva"
	}
	return h
}

// played is what became of a workload.
type played struct{ jct, makespan, comm float64 } // hours

func (p played) rows(table string, labels map[string]string) []study.Row {
	return []study.Row{
		{Table: table, Labels: labels, Metric: "jct_h", Value: p.jct}, {Table: table, Labels: labels, Metric: "makespan_h", Value: p.makespan},
		{Table: table, Labels: labels, Metric: "comm_h", Value: p.comm},
	}
}

// playDally runs jobs under a policy in this simulator: rings, run times being compute times.
func playDally(ctx context.Context, jobs []traces.Job, spec cluster.Spec, policy string) (played, error) {
	sch, err := heuristic.New(dallyPolicy(policy))
	if err != nil {
		return played{}, err
	}
	c := sim.DefaultConfig()
	c.Comm, c.Ring.Ideal, c.Ring.PerGPU = "ring", true, true
	s, err := sim.New(c, spec)
	if err != nil {
		return played{}, err
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return played{}, err
	}
	var m metrics.Collector
	if err := sim.Run(ctx, s, sch, &m); err != nil {
		return played{}, fmt.Errorf("%s: %w", policy, err)
	}
	if m.Len() != len(jobs) {
		return played{}, fmt.Errorf("%s: %d of %d jobs finished", policy, m.Len(), len(jobs))
	}
	sum := m.Summary(0, 0)
	p := played{jct: sum.JCT.Mean / 3600, makespan: sum.Makespan / 3600}
	for j := range m.Jobs() {
		p.comm += (j.Run - j.Work).Hours()
	}
	return p, nil
}

// playPeer runs jobs on the authors' machine.
func playPeer(ctx context.Context, jobs []dally.Job, machine, policy string) (played, error) {
	c := dally.DefaultConfig()
	switch policy {
	case dallyFixed:
		c.RackWait, c.NetworkWait = 5, 10
	case "Tiresias":
		c.Policy = "tiresias"
	case "Gandiva":
		c.Policy = "gandiva"
	}
	if machine == dallyMachines()[2] {
		c.Variant = "published"
	}
	r, err := dally.Run(ctx, jobs, dally.Slow(), c, nil)
	if err != nil {
		return played{}, err
	}
	t := r.Totals(jobs)
	return played{t.MeanJCT / 3600, t.Makespan / 3600, t.CommTime / 3600}, nil
}

func dallyCells(p study.Plan) ([]study.Cell, error) {
	s, err := dallyPlan(p)
	if err != nil {
		return nil, err
	}
	own, err := dallyOwn(p.Data)
	if err != nil {
		return nil, err
	}
	var cells []study.Cell
	all := []string{dallyAuto, dallyFixed, dallyAccept, dallyNever, dallyTiresias, dallyLAS, dallyGandiva}
	schedulers := func(key, workload, net, table string, labels map[string]string, congestion float64, policies []string, jobs func() ([]traces.Job, error), input any) {
		cells = append(cells, study.Cell{
			Key: key, Input: []any{dallyMethod, workload, net, congestion, policies, input},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				spec, err := dallyCluster(net, congestion)
				if err != nil {
					return nil, err
				}
				list, err := jobs()
				if err != nil {
					return nil, err
				}
				var rows []study.Row
				for i, policy := range policies {
					got, err := playDally(ctx, list, spec, policy)
					if err != nil {
						return nil, err
					}
					rows = append(rows, got.rows(table, with(labels, "policy", policy))...)
					if table == "schedulers" && slices.Contains(dallyTimers(), policy) {
						rows = append(rows, got.rows("timers", with(labels, "policy", policy))...)
					}
					b.Progress(int64(i+1), int64(len(policies)))
				}
				return rows, nil
			},
		})
	}
	for _, workload := range s.Workloads {
		for _, net := range s.Nets {
			for d := range s.Draws {
				labels := map[string]string{"workload": workload, "net": net, "draw": fmt.Sprint(d)}
				schedulers(fmt.Sprintf("schedulers/%s/%s/%d", workload, net, d), workload, net, "schedulers", labels, 0, all,
					func() ([]traces.Job, error) { return dallyJobs(workload, s.Jobs, d) }, []int{s.Jobs, d})
			}
		}
	}
	for _, o := range own {
		for _, net := range s.Nets {
			labels := map[string]string{"workload": o.name, "net": net, "draw": "0"}
			schedulers(fmt.Sprintf("schedulers/%s/%s", o.name, net), o.name, net, "schedulers", labels, 0, all, o.jobs, o.sha)
		}
	}
	some := []string{dallyAuto, dallyFixed, dallyNever, dallyTiresias, dallyLAS, dallyGandiva}
	for _, at := range s.CongestionAt {
		workload, net, _ := strings.Cut(at, "/")
		for _, c := range s.Congestion {
			for d := range s.CongestionDraws {
				labels := map[string]string{"workload": workload, "net": net, "congestion": dallyShare(c), "draw": fmt.Sprint(d)}
				schedulers(fmt.Sprintf("congestion/%s/%g/%d", at, c, d), workload, net, "congestion", labels, c, some,
					func() ([]traces.Job, error) { return dallyJobs(workload, s.Jobs, d) }, []int{s.Jobs, d})
			}
		}
	}
	for _, workload := range []string{"dally-batch", "dally-multi"} {
		for d := range s.PeerDraws {
			cells = append(cells, machinesCell(fmt.Sprintf("machines/%s/%d", workload, d), workload, fmt.Sprint(d),
				func() ([]traces.Job, error) { return dallyJobs(workload, s.PeerJobs, d) }, nil, []int{s.PeerJobs, d}))
		}
	}
	for _, o := range own {
		if o.exact != nil {
			cells = append(cells, machinesCell("machines/"+o.name, o.name, "0", o.jobs, o.exact, o.sha))
		}
	}
	return append(cells, acceptorCells(s)...), nil
}

// with is labels and one more.
func with(labels map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for k, v := range labels {
		all[k] = v
	}
	return all
}

// machinesCell plays a workload here and on the authors' machine, which gets the jobs of exact where there is that.
func machinesCell(key, workload, draw string, load func() ([]traces.Job, error), exact func() ([]dally.Job, error), input any) study.Cell {
	return study.Cell{
		Key: key, Input: []any{dallyMethod, workload, input},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			jobs, err := load()
			if err != nil {
				return nil, err
			}
			if exact == nil {
				exact = func() ([]dally.Job, error) { return simulate.PeerJobs(jobs) }
			}
			theirs, err := exact()
			if err != nil {
				return nil, err
			}
			spec, err := dallyCluster("slow", 0)
			if err != nil {
				return nil, err
			}
			here := map[string]string{dallyAuto: dallyAuto, dallyFixed: dallyFixed, "Tiresias": dallyTiresias, "Gandiva": dallyGandiva}
			var rows []study.Row
			done := 0
			for _, machine := range dallyMachines() {
				for _, policy := range []string{dallyAuto, dallyFixed, "Tiresias", "Gandiva"} {
					var got played
					switch {
					case machine == dallyMachines()[0]:
						got, err = playDally(ctx, jobs, spec, here[policy])
					default: // Gandiva has one variant, which stands in both
						got, err = playPeer(ctx, theirs, machine, policy)
					}
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", machine, policy, err)
					}
					rows = append(rows, got.rows("machines", map[string]string{"workload": workload, "draw": draw, "machine": machine, "policy": policy})...)
					done++
					b.Progress(int64(done), 12)
				}
			}
			return rows, nil
		},
	}
}

// ownWorkload is a real workload of --data.
type ownWorkload struct {
	name  string
	sha   string
	jobs  func() ([]traces.Job, error)
	exact func() ([]dally.Job, error) // of the authors' own files
}

// saturns is how many of the workloads drawn from Saturn's jobs are taken.
const saturns = 3

// dallyOwn finds real workloads below data: those of Dally's authors in dally/ (or beside it in groundtruth/dally), and
// jobs of Helios' cluster Saturn in sia-workloads/saturn.
func dallyOwn(data string) ([]ownWorkload, error) {
	if data == "" {
		return nil, nil
	}
	var own []ownWorkload
	for _, dir := range []string{filepath.Join(data, "dally"), filepath.Join(data, "..", "groundtruth", "dally")} {
		for _, name := range []string{"batch500", "multi411"} {
			path := filepath.Join(dir, name+".csv.gz")
			if _, err := os.Stat(path); err != nil || hasOwn(own, name) {
				continue
			}
			o, err := ownFile(name, path, "")
			if err != nil {
				return nil, err
			}
			o.exact = func() ([]dally.Job, error) {
				f, err := traces.OpenFile(path)
				if err != nil {
					return nil, err
				}
				defer f.Close() //nolint:errcheck // only read
				return dally.ReadJobs(f, path)
			}
			own = append(own, o)
		}
	}
	// Jobs of Helios' cluster Saturn, as Sia's authors drew them.
	for k := 1; k <= saturns; k++ {
		path := filepath.Join(data, "sia-workloads", "saturn", fmt.Sprintf("workload-%d.csv", k))
		if _, err := os.Stat(path); err != nil {
			continue
		}
		o, err := ownFile(fmt.Sprintf("saturn-%d", k), path, filepath.Join(data, "profiles-sia"))
		if err != nil {
			return nil, err
		}
		own = append(own, o)
	}
	if len(own) == 0 {
		return nil, workload.Mistake("data folder %s: it has neither dally/batch500.csv.gz nor sia-workloads/saturn/workload-1.csv", data)
	}
	return own, nil
}

func hasOwn(own []ownWorkload, name string) bool {
	for _, o := range own {
		if o.name == name {
			return true
		}
	}
	return false
}

// ownFile is a file of --data, with the table of throughputs that its run times need, "" where it has them.
func ownFile(name, path, profiles string) (ownWorkload, error) {
	sha, err := workload.HashFile(context.Background(), path)
	if err != nil {
		return ownWorkload{}, err
	}
	return ownWorkload{name: name, sha: sha, jobs: func() ([]traces.Job, error) {
		t := workload.DefaultTraceConfig()
		t.File, t.Profiles = path, profiles
		if profiles != "" {
			t.Reference = "aws" // the type of GPU on which run times are taken
		}
		list, _, err := workload.LoadTrace(t)
		if err != nil {
			return nil, err
		}
		for i := range list {
			// On like GPUs, with Dally's models where theirs say nothing of gradients.
			j := &list[i]
			j.GPUTypes, j.MinGPUs, j.MaxGPUs = nil, 0, 0
			if j.Profile == nil || authored.Profile(j.Profile.Name) == nil {
				j.Profile = nil
			}
		}
		return modelled(list, 1)
	}}, nil
}
