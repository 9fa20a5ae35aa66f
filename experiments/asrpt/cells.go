package asrpt

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
)

// generated is the label of our workloads.
const generated = "generated"

// Workloads are drawn from seeds from firstDraw on. Nothing was chosen on them; settings were chosen on those below
// 100.
const firstDraw = 1000

// The names of A-SRPT with a part taken away or exchanged.
const (
	whole       = "A-SRPT"
	noMachine   = "no virtual machine"
	noWait      = "no waiting for servers"
	noForest    = "mean of the group predicts"
	noPredictor = "nobody predicts"
	knowsAll    = "exact predictions"
	noHeaviest  = "stages in order"
	even1       = "even split over servers"
	noPlacement = "first fit"
	skips       = "later jobs pass"
	sorted      = "list by workload"
	eagerly     = "list by workload, none idle"
	greedy      = "WCS-Workload"
	greedyWait  = "WCS-Workload, waits"
	greedyFirst = "WCS-Workload, first fit"
	shortWait   = "WCS-Duration, waits"
)

// part is a variant of a scheduler.
type part struct {
	name    string
	rule    rule
	predict string
	how     string
}

// parts returns the variants of the table of parts.
func (s *settings) parts() []part {
	a := rule{order: aSRPT, wait: s.Wait}
	with := func(r rule, f func(r *rule)) rule {
		f(&r)
		return r
	}
	work, short := ruleOf(wcsWorkload, waiting{}), ruleOf(wcsDuration, waiting{})
	return []part{
		{whole, a, byForest, heaviest},
		{noMachine, rule{order: spwf, wait: s.Wait}, byForest, heaviest},
		{noWait, rule{order: aSRPT}, byForest, heaviest},
		{noHeaviest, a, byForest, ordered},
		{even1, a, byForest, evenly},
		{noPlacement, a, byForest, firstFit},
		{noForest, a, byMean, heaviest},
		{noPredictor, a, byNobody, heaviest},
		{knowsAll, a, byExact, heaviest},
		{skips, with(a, func(r *rule) { r.skip = true }), byForest, heaviest},
		{sorted, with(a, func(r *rule) { r.area = true }), byForest, heaviest},
		{eagerly, with(a, func(r *rule) { r.skip, r.area, r.eager = true, true, true }), byForest, heaviest},
		{greedy, work, byForest, heaviest},
		{greedyFirst, work, byForest, firstFit},
		{greedyWait, with(work, func(r *rule) { r.wait = s.Wait }), byForest, heaviest},
		{shortWait, with(short, func(r *rule) { r.wait = s.Wait }), byForest, heaviest},
	}
}

// cells returns the study's units of work.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	logs, _, err := s.given(p)
	if err != nil {
		return nil, err
	}
	own := *s
	own.Draws, own.Logs, own.Cuts = 0, nil, 0
	var all []study.Cell
	for d := range s.Draws {
		all = append(all, study.Cell{
			Key: fmt.Sprintf("draw/%d", d), Input: []any{method, d, own},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				m := newMaker(s.network(s.NIC), s.Servers)
				jobs := m.generate(uint64(firstDraw+d), s.History+s.Jobs)
				return s.playAll(ctx, b, generated, strconv.Itoa(d), jobs, s.History)
			},
		})
	}
	for _, gpus := range cutSizes() {
		all = append(all, study.Cell{
			Key: fmt.Sprintf("cut/%d", gpus), Input: []any{method, gpus, s.Cuts, s.network(s.NIC)},
			Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.cut(ctx, gpus) },
		})
	}
	for _, w := range logs {
		sha, err := workload.HashFile(context.Background(), nil, w.File)
		if err != nil {
			return nil, err
		}
		for k := range w.Windows {
			all = append(all, study.Cell{
				Key: fmt.Sprintf("log/%s/%d", w.Name, k), Input: []any{method, sha, k, w.Windows, own},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					m := newMaker(s.network(s.NIC), s.Servers)
					jobs, err := m.recorded(ctx, w.File)
					if err != nil {
						return nil, err
					}
					half := len(jobs) / 2
					first := half + k*(len(jobs)-half-s.Jobs)/max(1, w.Windows-1)
					if first+s.Jobs > len(jobs) || first < 200 || jobs[first].submit == jobs[first+s.Jobs-1].submit {
						return nil,
							fault.Mistakef("%s: %d of its jobs ask for 2 to %d GPUs, too few for windows of %d in its second half", w.File,
								len(jobs), widest, s.Jobs)
					}
					return s.playAll(ctx, b, w.Name, strconv.Itoa(k), jobs, first)
				},
			})
		}
	}
	return all, nil
}

// number formats a setting as a label.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// player plays one workload.
type player struct {
	s    *settings
	ctx  context.Context
	name string // of the workload
	draw string
	seed uint64
	rows []study.Row
}

// play returns what a policy makes of jobs.
func (p *player) play(net network, how string, jobs []job, pol policy) ([]outcome, error) {
	return newMachine(net, p.s.Servers, how, p.seed<<20, jobs).play(p.ctx, pol)
}

// policy returns a scheduler by its name.
func (p *player) policy(name string, jobs []job, by predictor) policy {
	switch name {
	case srtf, srsf:
		return &srpt{jobs: jobs, area: name == srsf}
	}
	return newList(ruleOf(name, p.s.Wait), jobs, p.s.Servers*p.s.GPUs, by)
}

// add adds the mean completion time of a schedule to a table, with labels besides the workload's.
func (p *player) add(table string, jobs []job, out []outcome, labels ...string) {
	p.rows = append(p.rows,
		study.NewRow(table, "jct_h", flow(jobs, out)/float64(len(jobs))/3600,
			append(labels, "workload", p.name, "draw", p.draw)...))
}

// put adds a number to a table.
func (p *player) put(table, metric string, v float64, labels ...string) {
	p.rows = append(p.rows, study.NewRow(table, metric, v, append(labels, "workload", p.name, "draw", p.draw)...))
}

// flow returns the sum of the times from submit to finish.
func flow(jobs []job, out []outcome) (sum float64) {
	for i := range jobs {
		sum += out[i].finish - jobs[i].submit
	}
	return sum
}

// playAll plays the workload that begins at position first of jobs, under all that the tables compare.
func (s *settings) playAll(ctx context.Context, b *study.Bench, name, draw string, jobs []job,
	first int) ([]study.Row, error) {
	seed, err := strconv.ParseUint(draw, 10, 32)
	if err != nil {
		return nil, err
	}
	p := &player{s: s, ctx: ctx, name: name, draw: draw, seed: seed}
	net, gpus := s.network(s.NIC), s.Servers*s.GPUs
	before, unscaled := window(jobs, first, s.Jobs, s.History)
	own := loaded(unscaled, gpus, s.Load)
	k, err := learn(before, own, s.Trees, seed, b.Workers)
	if err != nil {
		return nil, fault.Mistakef("%s: %v", name, err)
	}
	steps := []func() error{
		func() error { return p.loads(net, k, unscaled) },
		func() error { return p.theory(net, k) },
		func() error { return p.allParts(net, k) },
		func() error { return p.predictors(net, k) },
	}
	if name == generated {
		steps = append(steps, func() error { return p.errors(net, k) }, func() error { return p.networks(k) },
			func() error { return p.waits(net, k) }, func() error { return p.speeds(net, k) })
	}
	for i, f := range steps {
		if err := f(); err != nil {
			return nil, err
		}
		b.Progress(int64(i+1), int64(len(steps)))
	}
	return p.rows, nil
}

// at returns the knowledge with the submits of other jobs, which are the same but for these.
func (k *knowledge) at(jobs []job) *knowledge {
	own := *k
	own.jobs = jobs
	return &own
}

// loads plays all schedulers at all loads, with the forest's predictions. Those that stop jobs know everything.
func (p *player) loads(net network, k *knowledge, unscaled []job) error {
	gpus := p.s.Servers * p.s.GPUs
	for _, load := range p.s.Loads {
		jobs := loaded(unscaled, gpus, load)
		low := lower(jobs, gpus)
		for _, name := range orderings() {
			out, err := p.play(net, heaviest, jobs, p.policy(name, jobs, k.at(jobs).predictor(byForest)))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			labels := []string{"load", number(load), "scheduler", name}
			p.add("loads", jobs, out, labels...)
			bound := low.steady
			if name == srtf || name == srsf {
				bound = low.any
			}
			p.put("loads", "flow_bound", flow(jobs, out)/bound, labels...)
			p.put("loads", "slower", slower(jobs, out), labels...)
			p.put("loads", "late_h", late(jobs, out)/3600, labels...)
		}
	}
	return nil
}

// slower returns the mean of the jobs' iterations as they ran over their best ones.
func slower(jobs []job, out []outcome) (sum float64) {
	for i := range jobs {
		sum += out[i].iteration / jobs[i].best / float64(len(jobs))
	}
	return sum
}

// late returns the time from submit to finish that one job in a hundred exceeds.
func late(jobs []job, out []outcome) float64 {
	all := make([]float64, len(jobs))
	for i := range jobs {
		all[i] = out[i].finish - jobs[i].submit
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// theory compares schedules with exact predictions with the lower bound, and A-SRPT's with what is proved of it.
func (p *player) theory(net network, k *knowledge) error {
	gpus := p.s.Servers * p.s.GPUs
	for _, load := range p.s.Loads {
		jobs := loaded(k.jobs, gpus, load)
		low := lower(jobs, gpus)
		for _, name := range published() {
			out, err := p.play(net, heaviest, jobs, newList(ruleOf(name, waiting{}), jobs, gpus, k.at(jobs).predictor(byExact)))
			if err != nil {
				return err
			}
			labels := []string{"load", number(load), "scheduler", name}
			f := flow(jobs, out)
			p.put("theory", "complete", (f+low.submits)/(low.steady+low.submits), labels...)
			p.put("theory", "flow", f/low.steady, labels...)
			if name != aSRPT {
				continue
			}
			proved := guarantee(jobs, gpus, out)
			if f+low.submits > proved*(1+1e-9) {
				return fmt.Errorf("the completion times of A-SRPT add up to %v s, more than the %v s that are proved",
					f+low.submits, proved)
			}
			p.put("theory", "proved", proved/(low.steady+low.submits), labels...)
		}
	}
	return nil
}

// allParts plays A-SRPT with parts taken away.
func (p *player) allParts(net network, k *knowledge) error {
	for _, v := range p.s.parts() {
		out, err := p.play(net, v.how, k.jobs, newList(v.rule, k.jobs, p.s.Servers*p.s.GPUs, k.predictor(v.predict)))
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		p.add("parts", k.jobs, out, "variant", v.name)
		p.put("parts", "slower", slower(k.jobs, out), "variant", v.name)
	}
	return nil
}

// byPredictions are the schedulers of the tables of predictors and errors.
func byPredictions() []string {
	return []string{aSRPT, byArea, spwfWait, spjf, wcsDuration, wcsWorkload}
}

// predictors measures the predictors, and plays schedulers with their predictions.
func (p *player) predictors(net network, k *knowledge) error {
	for _, by := range named() {
		all := make([]predictors.Forecast, len(k.jobs))
		said := k.predictor(by)
		running := &ends{}
		apes := make([]float64, len(k.jobs))
		for i := range k.jobs {
			j := &k.jobs[i]
			running.until(j.submit, func(e int) { said.finished(j.submit, e) })
			n := said.submitted(j.submit, i)
			running.add(j.submit+j.solo(), i)
			all[i] = predictors.Forecast{Job: j.meta.ID, Submit: seconds(j.submit), Work: j.meta.Work}
			for q := range all[i].Q {
				all[i].Q[q] = seconds(n * j.best)
			}
			apes[i] = math.Abs(n/j.iterations - 1)
		}
		q := predictors.Measure(all)
		slices.Sort(apes)
		p.put("predictors", "ape", apes[len(apes)/2], "predictor", by)
		p.put("predictors", "pairs", q.Pairs, "predictor", by)
		p.put("predictors", "log_error", q.LogError, "predictor", by)
		for _, name := range byPredictions() {
			out, err := p.play(net, heaviest, k.jobs, p.policy(name, k.jobs, k.predictor(by)))
			if err != nil {
				return err
			}
			p.add("predicted", k.jobs, out, "predictor", by, "scheduler", name)
		}
	}
	return nil
}

// errors plays schedulers with predictions that are wrong by a known amount.
func (p *player) errors(net network, k *knowledge) error {
	for _, sigma := range p.s.Errors {
		for _, name := range byPredictions() {
			out, err := p.play(net, heaviest, k.jobs, p.policy(name, k.jobs, &noisy{k.jobs, sigma, p.seed}))
			if err != nil {
				return err
			}
			p.add("errors", k.jobs, out, "error", number(sigma), "scheduler", name)
		}
	}
	return nil
}

// networks plays placements on faster and slower networks. Jobs keep their iterations, so that they take longer on slow
// ones.
func (p *player) networks(k *knowledge) error {
	for _, nic := range p.s.NICs {
		net := p.s.network(nic)
		m := newMaker(net, p.s.Servers)
		jobs := slices.Clone(k.jobs)
		for i := range jobs {
			jobs[i] = m.job(jobs[i].graph, 0, jobs[i].meta)
			jobs[i].iterations, jobs[i].submit = k.jobs[i].iterations, k.jobs[i].submit
			jobs[i].meta = k.jobs[i].meta
		}
		for _, name := range []string{aSRPT, wcsWorkload, workWait} {
			for _, how := range placements() {
				out, err := p.play(net, how, jobs, p.policy(name, jobs, k.at(jobs).predictor(byForest)))
				if err != nil {
					return err
				}
				labels := []string{"NIC", number(nic), "scheduler", name, "placement", how}
				p.add("networks", jobs, out, labels...)
				p.put("networks", "slower", slower(jobs, out), labels...)
			}
		}
	}
	return nil
}

// waits plays A-SRPT, and the work-conserving scheduler, with several rules of waiting.
func (p *player) waits(net network, k *knowledge) error {
	for _, w := range append([]waiting{{}}, p.s.Waits...) {
		for _, name := range []string{aSRPT, wcsWorkload} {
			r := ruleOf(name, w)
			r.wait = w
			out, err := p.play(net, heaviest, k.jobs, newList(r, k.jobs, p.s.Servers*p.s.GPUs, k.predictor(byForest)))
			if err != nil {
				return err
			}
			labels := []string{"scheduler", name, "waits", w.String()}
			p.add("waits", k.jobs, out, labels...)
			p.put("waits", "slower", slower(k.jobs, out), labels...)
		}
	}
	return nil
}

// speeds plays A-SRPT with virtual machines that are slower or faster than the cluster.
func (p *player) speeds(net network, k *knowledge) error {
	for _, speed := range p.s.Speeds {
		for _, name := range []string{aSRPT, byArea} {
			r := ruleOf(name, p.s.Wait)
			r.speed = speed
			out, err := p.play(net, heaviest, k.jobs, newList(r, k.jobs, p.s.Servers*p.s.GPUs, k.predictor(byForest)))
			if err != nil {
				return err
			}
			p.add("speeds", k.jobs, out, "scheduler", name, "speed", number(speed))
		}
	}
	return nil
}

// String describes the rule.
func (w waiting) String() string {
	if w.Ratio == 0 {
		return "nobody"
	}
	return "from " + number(w.Ratio) + "×, for " + number(w.Patience)
}

// cutSizes are the gangs whose placements are compared with the best of all.
func cutSizes() []int { return []int{4, 8} }

// cut compares placements of every graph with as many GPUs in random states of four servers, in none of which the graph
// fits one server: there all but first fit and random are equal.
func (s *settings) cut(ctx context.Context, gpus int) ([]study.Row, error) {
	var rows []study.Row
	net := s.network(s.NIC)
	r := rng.Stream(uint64(gpus), "asrpt/cuts")
	const servers = 4
	for state := range s.Cuts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		free := make([]int, servers)
		for sum := 0; sum < gpus; {
			sum = 0
			for i := range free {
				free[i] = r.IntN(min(gpus, s.GPUs+1))
				sum += free[i]
			}
		}
		for _, g := range catalogue(gpus) {
			best := net.iteration(g, place(optimum, &net, g, free, 0))
			for _, how := range placements() {
				t := net.iteration(g, place(how, &net, g, free, uint64(state)))
				labels := []string{"GPUs", strconv.Itoa(gpus), "stages", stagesOf(g), "placement", how, "graph", g.name, "state",
					strconv.Itoa(state)}
				rows = append(rows, study.NewRow("cuts", "slower", t/best, labels...),
					study.NewRow("cuts", "best", indicator(t <= best*(1+1e-9)), labels...))
			}
		}
	}
	return rows, nil
}

// stagesOf returns the label of a graph's number of stages.
func stagesOf(g *graph) string {
	if len(g.stages) == 1 {
		return "one"
	}
	return "several"
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
