package asrpt

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// widest is the largest gang.
const widest = 32

// sizes are the gangs of generated jobs, and shares how many of a hundred recurring jobs have them.
var sizes, shares = []int{1, 2, 4, 8, 16, 32}, []int{35, 15, 20, 18, 8, 4}

// maker makes jobs with their graphs, of which it keeps one for each model and number of GPUs.
type maker struct {
	net     network
	servers int
	graphs  map[int][]*graph
}

func newMaker(net network, servers int) *maker {
	return &maker{net: net, servers: servers, graphs: map[int][]*graph{}}
}

// of returns the graphs with as many GPUs.
func (m *maker) of(gpus int) []*graph {
	if m.graphs[gpus] == nil {
		m.graphs[gpus] = catalogue(gpus)
	}
	return m.graphs[gpus]
}

// job returns a job that takes about so many seconds on the empty cluster.
func (m *maker) job(g *graph, run float64, meta traces.Job) job {
	free := make([]int, m.servers)
	for i := range free {
		free[i] = m.net.Server
	}
	j := job{graph: g, meta: meta, least: m.net.least(g), worst: m.net.alone(g)}
	j.best = m.net.iteration(g, place(heaviest, &m.net, g, free, 0))
	j.iterations = max(1, math.Round(run/j.best))
	j.meta.GPUs, j.meta.GPUMilli, j.meta.Work = g.gpus, 1000, seconds(j.solo())
	j.submit = meta.Submit.Seconds()
	return j
}

// habit is a recurring job of a user.
type habit struct {
	user, name string
	graph      *graph
	log, sigma float64 // of its run times, which are log-normal
}

// generate draws n jobs. Three quarters are repetitions of their users' recurring jobs, whose run times differ by a few
// percent or by a factor of three; the others come once.
func (m *maker) generate(seed uint64, n int) []job {
	r := rng.Stream(seed, "asrpt/jobs")
	var habits []habit
	var weights []int
	const users = 40
	level := make([]float64, users)
	for u := range users {
		level[u] = math.Log(1800) + .8*r.NormFloat64()
		for k := range 2 + r.IntN(7) {
			sigma := [...]float64{.1, .1, .4, 1}[r.IntN(4)]
			habits = append(habits, habit{
				fmt.Sprintf("u%d", u), fmt.Sprintf("h%d", k), m.graph(r), level[u] + r.NormFloat64(), sigma,
			})
			weights = append(weights, 10000/((u+3)*(k+2))) // a few users have most of the jobs
		}
	}
	jobs := make([]job, n)
	at := 0.0
	for i := range jobs {
		at += 60 * r.ExpFloat64()
		h := habits[draw(r, weights)]
		if r.Float64() < .25 {
			u, _ := strconv.Atoi(h.user[1:])
			h.name, h.graph, h.log, h.sigma = fmt.Sprintf("once%d", i), m.graph(r), level[u]+r.NormFloat64(), .5
		}
		run := min(2*86400, max(60, math.Exp(h.log+h.sigma*r.NormFloat64())))
		jobs[i] = m.job(h.graph, run, traces.Job{
			ID: strconv.Itoa(i), User: h.user, Name: h.name, Group: h.user + "/" + h.name, Submit: seconds(at),
		})
	}
	return jobs
}

// graph draws the graph of a recurring job.
func (m *maker) graph(r *rand.Rand) *graph {
	all := m.of(sizes[draw(r, shares)])
	return all[r.IntN(len(all))]
}

// draw returns an index with a probability in proportion to its weight.
func draw(r *rand.Rand, weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	u := r.IntN(sum)
	for k, w := range weights {
		if u -= w; u < 0 {
			return k
		}
	}
	panic("asrpt: draw")
}

// recorded are the jobs of a log of two GPUs and more, up to the widest. A log knows no models: jobs of one virtual
// cluster or user, and of one size, have the same graph.
func (m *maker) recorded(ctx context.Context, file string) ([]job, error) {
	c := workload.DefaultTraceConfig()
	c.File = file
	all, _, err := workload.LoadTraceContext(ctx, c)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for i := range all {
		t := all[i]
		if t.GPUs < 2 || t.GPUs > widest || t.Work < time.Second || t.GPUMilli != 0 && t.GPUMilli != 1000 {
			continue
		}
		g := m.of(t.GPUs)
		own := g[rng.Mix(rng.Hash(fmt.Sprintf("%s|%s|%d", t.User, t.VC, t.GPUs)))%uint64(len(g))]
		jobs = append(jobs, m.job(own, t.Work.Seconds(), traces.Job{
			ID: t.ID, User: t.User, VC: t.VC, Name: t.Name, Group: t.Group, Submit: t.Submit,
		}))
	}
	return jobs, nil
}

// window returns n jobs from position first on, the first of which is submitted at 0, and the up to kept jobs before
// them.
func window(jobs []job, first, n, kept int) (before, own []job) {
	before = append(before, jobs[max(0, first-kept):first]...)
	own = append(own, jobs[first:first+n]...)
	begin := own[0].submit
	for _, list := range [][]job{before, own} {
		for i := range list {
			list[i].submit -= begin
		}
	}
	return before, own
}

// loaded returns the jobs with submits stretched so that, until the last one, the jobs ask for load times as much as so
// many GPUs can do.
func loaded(jobs []job, gpus int, load float64) []job {
	work := 0.0
	for i := range jobs {
		work += jobs[i].solo() * float64(jobs[i].graph.gpus)
	}
	own := slices.Clone(jobs)
	stretch := work / (load * float64(gpus) * own[len(own)-1].submit)
	for i := range own {
		own[i].submit *= stretch
	}
	return own
}

// given returns the logs that p's folder has, and the names of the others.
func (s *settings) given(p study.Plan) (logs []record, absent []string, err error) {
	return workload.Given(p.Data, s.Logs, func(w *record) (string, *string) { return w.Name, &w.File })
}
