package htmlpage

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// plain is a stint as text: job, times in seconds, GPUs, how it began and ended.
func plain(job int, from, to float64, gpus []int, began, ended int) string {
	return fmt.Sprintf("job %d %.3f–%.3f on %v, %d to %d", job, from, to, gpus, began, ended)
}

// witness makes the list of stints in the simplest way.
type witness struct {
	open map[int]func(to time.Duration, ended int) // by position
	all  []string
	seen map[int]bool
	area float64 // GPUs × seconds
}

func (w *witness) Observe(v *sim.View, p *sim.Point) error {
	if w.open == nil {
		w.open, w.seen = map[int]func(time.Duration, int){}, map[int]bool{}
	}
	start := func(e sim.Event, began int) {
		pos, gpus, at := v.Pos(e.Job), []int{}, len(w.all)
		for _, g := range e.GPUs {
			gpus = append(gpus, int(g))
		}
		slices.Sort(gpus)
		w.all = append(w.all, "")
		w.open[pos] = func(to time.Duration, ended int) {
			w.all[at] = plain(pos, e.At.Seconds(), to.Seconds(), gpus, began, ended)
			w.area += float64(len(gpus)) * (to - e.At).Seconds()
			delete(w.open, pos)
		}
	}
	for _, e := range p.Events {
		if e.Job < 0 {
			continue
		}
		pos := v.Pos(e.Job)
		switch e.Kind {
		case sim.Start:
			began := 0
			if w.seen[pos] {
				began = 1
			}
			w.seen[pos] = true
			start(e, began)
		case sim.Finish:
			w.open[pos](e.At, 0)
		case sim.Preempt:
			w.open[pos](e.At, 1)
		case sim.Fail:
			w.open[pos](e.At, 2)
		case sim.Migrate:
			w.open[pos](e.At, 3)
			start(e, 2)
		case sim.Resize:
			w.open[pos](e.At, 4)
			start(e, 3)
		}
	}
	if v.Over() {
		for pos := range w.open {
			w.open[pos](p.Now, 5)
		}
	}
	return nil
}

// stintsOf returns the stints that a page shows in the form of the witness.
func stintsOf(r *readRun) (all []string) {
	s, t, at := r.Stints, int64(0), 0
	for i := range s.Job {
		t += s.Start[i]
		gpus := []int{}
		for range s.Spans[i] {
			for g := s.GPU[at]; g < s.GPU[at]+s.N[at]; g++ {
				gpus = append(gpus, int(g))
			}
			at++
		}
		k := strings.IndexByte(shades, s.Kind[i])
		all = append(all, plain(int(s.Job[i]), float64(t)/1e3, float64(t+s.Length[i])/1e3, gpus, k/6, k%6))
	}
	return all
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("stint %d: got  %s\nwant %s", i, g, w)
		}
	}
}

// The page shows all stints as they happened, in order, with preemptions and failing nodes.
func TestPageShowsEveryStint(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Failures.MTBF, cfg.Failures.MTTR, cfg.Seed = 20*time.Minute, time.Minute, 3
	p := New(2)
	for i, order := range []string{"fifo", "srtf"} {
		var w witness
		simulate(t, cfg, short(t, "3x2"), mixed(120), policy(t, order), p.Run(order), &w)
		d := decode(t, p)
		r := &d.Runs[i]
		if r.Stints == nil {
			t.Fatal("no stints")
		}
		same(t, stintsOf(r), w.all)
		if len(d.Jobs.ID) != 120 || d.Jobs.ID[7] != "j7" || d.Jobs.Submit[7] != 49_000 || d.Jobs.GPUs[7] != 2 ||
			d.Jobs.User.Names[d.Jobs.User.Of[7]] != "u2" {
			t.Errorf("jobs %+v", d.Jobs)
		}
		if d.GPUs != 6 || d.Nodes != 3 || fmt.Sprint(d.Node0) != "[0 2 4]" || d.Pool {
			t.Errorf("cluster %d GPUs, %d nodes from %v", d.GPUs, d.Nodes, d.Node0)
		}
		if r.Downs == nil || r.Downs.All != len(r.Downs.Node) || r.Ended[2] == 0 || order == "srtf" && r.Ended[1] == 0 ||
			r.Ended[0] != 120 {
			t.Errorf("%s: nothing failed or was preempted: %+v, ended %v", order, r.Downs, r.Ended)
		}
		checkArea(t, r, w.area, d.GPUs)
	}
}

// checkArea compares panels and map with the GPU-time in GPUs × seconds.
func checkArea(t *testing.T, r *readRun, want float64, gpus int) {
	t.Helper()
	s, got, sizesSum := &r.Series, 0.0, 0.0
	for i, v := range s.Values[used] {
		from, to := s.From+int64(i)*s.Width, s.From+int64(i+1)*s.Width
		if s.At != nil {
			from, to = s.At[i], r.To
			if i+1 < len(s.At) {
				to = s.At[i+1]
			}
		}
		span := float64(min(to, r.To)-from) / 1e3
		got += v * span
		for c := sizes; c < vars; c++ {
			sizesSum += s.Values[c][i] * span
		}
		if s.At == nil && (s.Low[used][i] > v+.001 || s.Top[used][i] < v-.001 || s.Top[used][i] > float64(gpus)) {
			t.Errorf("bucket %d: mean %v of GPUs in use is not between %v and %v", i, v, s.Low[used][i], s.Top[used][i])
		}
	}
	if math.Abs(got-want) > .002*want || math.Abs(sizesSum-want) > .002*want {
		t.Errorf("panel of GPUs in use: %v GPU-seconds, by size %v, want %v", got, sizesSum, want)
	}
	if r.Heat == nil {
		return
	}
	h, got := r.Heat, 0.0
	for row, cells := range h.Rows {
		for i := range cells {
			span := float64(min(h.From+int64(i+1)*h.Width, r.To)-(h.From+int64(i)*h.Width)) / 1e3
			got += float64(strings.IndexByte(shades, cells[i])) / 63 * span * float64(h.GPU0[row+1]-h.GPU0[row])
		}
	}
	if math.Abs(got-want) > .02*want {
		t.Errorf("map: %v GPU-seconds, want %v", got, want)
	}
}

// Two nodes of two GPUs. A moves at 4, stops at 10 and continues at 12. The horizon cuts B off.
func TestStintsAndPanelsByHand(t *testing.T) {
	jobs := []traces.Job{job("A", 5, 10, 2), job("B", 6, 100, 1)}
	cfg := sim.DefaultConfig()
	cfg.Horizon = 30 * second
	at := func(g ...cluster.GPU) []cluster.GPU { return g }
	p := New(1)
	simulate(t, cfg, short(t, "2x2"), jobs, script{
		5 * second: {{Op: sim.StartJob, Job: 0, GPUs: at(0, 2)}},
		6 * second: {{Op: sim.MigrateJob, Job: 0, GPUs: at(3, 2)}, {Op: sim.StartJob, Job: 1, GPUs: at(0)},
			{Op: sim.Wait, Until: 10 * second}},
		10 * second: {{Op: sim.PreemptJob, Job: 0}, {Op: sim.Wait, Until: 12 * second}},
		12 * second: {{Op: sim.StartJob, Job: 0, GPUs: at(1, 2)}},
	}, p.Run("by hand"))
	d := decode(t, p)
	r := &d.Runs[0]
	same(t, stintsOf(r), []string{ // seconds since the first submit, at 5
		"job 0 0.000–1.000 on [0 2], 0 to 3",
		"job 0 1.000–5.000 on [2 3], 2 to 1",
		"job 1 1.000–25.000 on [0], 0 to 5",
		"job 0 7.000–12.000 on [1 2], 1 to 0",
	})
	if got := fmt.Sprint(r.Series.At, r.Series.Values[used], r.Series.Values[queue], r.Series.Values[running],
		r.Series.Values[sizes+1], r.Series.Values[sizes+2]); got !=
		"[0 1000 5000 7000 12000] [2 3 1 3 1] [0 0 1 0 0] [1 2 1 2 1] [0 1 1 1 1] [2 2 0 2 0]" {
		t.Errorf("panels %s", got)
	}
	if r.From != 0 || r.To != 25_000 || d.End != 25_000 || r.JCT.Jobs != 1 || r.JCT.At[0] != 12_000 ||
		r.JCT.Share[0] != 1 {
		t.Errorf("%d to %d, %+v", r.From, r.To, r.JCT)
	}
}

// Decisions that are undone before time passes do not appear in the panels, but each makes a stint.
func TestInstantsAreStints(t *testing.T) {
	p := New(1)
	simulate(t, sim.DefaultConfig(), short(t, "pool:2"), []traces.Job{job("none", 0, 0, 1), job("some", 0, 3, 2)},
		policy(t, "fifo"), p.Run("fifo"))
	r := &decode(t, p).Runs[0]
	same(t, stintsOf(r), []string{"job 0 0.000–0.000 on [0], 0 to 0", "job 1 0.000–3.000 on [0 1], 0 to 0"})
	if fmt.Sprint(r.Series.Values[used]) != "[2]" {
		t.Errorf("in use %v", r.Series.Values[used])
	}
}

// On a pool every stint has lanes of its own, as many as the job holds, and consecutive ones if there is a gap.
func TestLanesOfACounter(t *testing.T) {
	p := New(1)
	simulate(t, sim.DefaultConfig(), short(t, "pool:7"), mixed(200), policy(t, "srtf"), p.Run("srtf"))
	d := decode(t, p)
	r := &d.Runs[0]
	type use struct{ from, to int64 }
	lanes := map[int64][]use{}
	at, now := 0, int64(0)
	for i := range r.Stints.Job {
		now += r.Stints.Start[i]
		n := 0
		for range r.Stints.Spans[i] {
			for g := r.Stints.GPU[at]; g < r.Stints.GPU[at]+r.Stints.N[at]; g++ {
				for _, u := range lanes[g] {
					if now < u.to {
						t.Fatalf("stint %d begins on lane %d, which is taken until %d", i, g, u.to)
					}
				}
				lanes[g] = append(lanes[g], use{now, now + r.Stints.Length[i]})
				n++
			}
			at++
		}
		if n != d.Jobs.GPUs[r.Stints.Job[i]] {
			t.Fatalf("stint %d has %d lanes, want %d", i, n, d.Jobs.GPUs[r.Stints.Job[i]])
		}
	}
	if len(lanes) != 7 || r.Heat != nil || !d.Pool {
		t.Errorf("%d lanes, heat %v", len(lanes), r.Heat)
	}
}

// On a pool neither Start nor Resize says how many GPUs the gang has. The second stint even ends before an observer
// sees it.
func TestElasticGangsOnACounter(t *testing.T) {
	j := job("elastic", 0, 30, 2)
	j.MinGPUs, j.MaxGPUs = 1, 6
	p := New(1)
	simulate(t, sim.DefaultConfig(), short(t, "pool:6"), []traces.Job{j, job("late", 5, 1, 1)}, script{
		0:          {{Op: sim.StartJob, Job: 0, N: 3}},
		5 * second: {{Op: sim.ResizeJob, Job: 0, N: 5}, {Op: sim.StartJob, Job: 1}},
		6 * second: {{Op: sim.ResizeJob, Job: 0, N: 4}},
	}, p.Run("script"))
	r := &decode(t, p).Runs[0]
	var sizesSeen []string
	at := 0
	for i := range r.Stints.Job {
		n := int64(0)
		for range r.Stints.Spans[i] {
			n += r.Stints.N[at]
			at++
		}
		sizesSeen = append(sizesSeen, fmt.Sprintf("job %d: %d", r.Stints.Job[i], n))
	}
	if got := strings.Join(sizesSeen, ", "); got != "job 0: 3, job 0: 5, job 1: 1, job 0: 4" {
		t.Error(got)
	}
	if fmt.Sprint(r.Series.Values[used]) != "[3 6 4]" {
		t.Errorf("in use %v", r.Series.Values[used])
	}
}

// Jobs that share a GPU are drawn side by side. Jobs without GPUs are counted but not drawn.
func TestSharesAndJobsWithoutGPUs(t *testing.T) {
	for _, name := range []string{"1x2", "pool:2"} {
		var jobs []traces.Job
		for i, milli := range []int{300, 500, 200, 700} {
			j := job(fmt.Sprint(i), 0, time.Duration(10+i), 1)
			j.GPUMilli = milli
			jobs = append(jobs, j)
		}
		none := job("cores", 0, 4, 0)
		none.CPUMilli = 1000
		jobs = append(jobs, none)
		p := New(1)
		simulate(t, sim.DefaultConfig(), short(t, name), jobs, policy(t, "fifo"), p.Run("fifo"))
		d := decode(t, p)
		r := &d.Runs[0]
		type area struct{ gpu, off, end int64 }
		var areas []area
		for i := range r.Stints.GPU {
			a := area{r.Stints.GPU[i], r.Stints.Off[i], r.Stints.Off[i] + r.Stints.Milli[i]}
			for _, b := range areas {
				if a.gpu == b.gpu && a.off < b.end && b.off < a.end {
					t.Errorf("%s: %v lies over %v", name, a, b)
				}
			}
			if a.end > 1000 || a.off < 0 {
				t.Errorf("%s: %v is more than a GPU", name, a)
			}
			areas = append(areas, a)
		}
		if len(areas) != 4 || r.CoreOnly != 1 || r.Series.Values[sizes][0] != 1.7 || r.Series.Values[running][0] != 5 {
			t.Errorf("%s: %v, %d without GPUs, %v", name, areas, r.CoreOnly, r.Series.Values)
		}
	}
}

// Beyond the limits the page shows buckets and the map, which agree with what happened.
func TestLongRunsAreCutToBuckets(t *testing.T) {
	for _, limit := range []string{"stints", "spans", "gpus", "jobs", "detail"} {
		p := New(1)
		p.limits.buckets, p.limits.columns, p.limits.rows, p.limits.downs, p.limits.curve = 64, 50, 2, 3, 20
		switch limit {
		case "stints":
			p.limits.stints = 150
		case "spans":
			p.limits.spans = 200
		case "gpus":
			p.limits.gpus = 5
		case "jobs":
			p.limits.jobs = 100
		case "detail":
			p.limits.detail = 5000
		}
		cfg := sim.DefaultConfig()
		cfg.Failures.MTBF, cfg.Failures.MTTR = time.Hour, time.Minute
		var w witness
		simulate(t, cfg, short(t, "3x2"), mixed(400), policy(t, "srtf"), p.Run("srtf"), &w)
		d := decode(t, p)
		r := &d.Runs[0]
		if r.Stints != nil || d.Jobs != nil {
			t.Errorf("%s: stints are drawn", limit)
		}
		if r.Series.At != nil || len(r.Series.Values[used]) > 64 || len(r.Series.Values[used]) <= 32 {
			t.Errorf("%s: %d buckets", limit, len(r.Series.Values[used]))
		}
		if len(r.Heat.Rows) != 2 || r.Heat.Nodes != 2 || fmt.Sprint(r.Heat.GPU0) != "[0 4 6]" || len(r.Heat.Rows[0]) > 50 ||
			len(r.Heat.Rows[0]) <= 25 {
			t.Errorf("%s: map %+v", limit, r.Heat)
		}
		if r.Downs.All <= 3 || len(r.Downs.Node) != 3 || r.JCT.Jobs != 400 || len(r.JCT.At) != 20 || r.JCT.Share[19] != 1 {
			t.Errorf("%s: %+v %+v", limit, r.Downs, r.JCT)
		}
		checkArea(t, r, w.area, 6)
	}
}

func TestWarmupAndTailDoNotCount(t *testing.T) {
	p := New(1)
	p.Warmup, p.Tail = 1, 2
	var jobs []traces.Job
	for i := range 5 {
		jobs = append(jobs, job(fmt.Sprint(i), 0, time.Duration(i+1), 1))
	}
	simulate(t, sim.DefaultConfig(), short(t, "pool:5"), jobs, policy(t, "fifo"), p.Run("fifo"))
	if c := decode(t, p).Runs[0].JCT; c.Jobs != 2 || fmt.Sprint(c.At, c.Share) != "[2000 3000] [0.5 1]" {
		t.Errorf("%+v, want the jobs of 2 s and 3 s", c)
	}
}

const hostile = `</script><script>document.documentElement.dataset.owned=1</script><img src=x onerror=alert(1)>`

// hostilePage returns a small page in which every text tries to become markup.
func hostilePage(t testing.TB) *Page {
	jobs := mixed(12)
	for i := range jobs {
		jobs[i].ID = []string{hostile, "<!--<script>", "a\u2028b\x00\xff", `"]}'`}[i%4] + fmt.Sprint(i)
		jobs[i].User, jobs[i].VC, jobs[i].Model = "<b>"+fmt.Sprint(i%3), "</style>"+fmt.Sprint(i%2), hostile+fmt.Sprint(i%2)
	}
	p := New(1)
	p.Title, p.Facts, p.Notes = hostile, [][2]string{{hostile, hostile}}, []string{hostile}
	p.Tables = []Table{{Title: hostile, Header: []string{"policy", hostile}, Rows: [][]string{{hostile, "<i>1</i>"}},
		Text: hostile}}
	simulate(t, sim.DefaultConfig(), short(t, "2x2"), jobs, policy(t, "srtf"), p.Run(hostile))
	return p
}

func TestTextsOfTracesStayTexts(t *testing.T) {
	p := hostilePage(t)
	page := string(written(t, p))
	for what, want := range map[string]int{"<script": 2, "</script": 2, "<!--": 0, "<img": 0, "<b>": 0, "</style": 1,
		"\u2028": 0} {
		if n := strings.Count(page, what); n != want {
			t.Errorf("%q is %d times in the page, want %d", what, n, want)
		}
	}
	d := decode(t, p)
	if d.Title != hostile || d.Tables[0].Rows[0][1] != "<i>1</i>" || d.Tables[0].Text != hostile ||
		d.Runs[0].Name != hostile || d.Jobs.ID[3] != `"]}'3` || d.Jobs.ID[1] != "<!--<script>1" ||
		d.Jobs.User.Names[0] != "<b>0" {
		t.Errorf("texts are changed: %+v", d)
	}
	if id := d.Jobs.ID[0]; len([]rune(id)) != 64 || !strings.HasPrefix(hostile, strings.TrimSuffix(id, "…")) {
		t.Errorf("a long name is %q", id)
	}
}

func TestPageNeedsNothingBesideItself(t *testing.T) {
	page := string(written(t, hostilePage(t)))
	markup, rest, _ := strings.Cut(page, dataTag)
	_, program, _ := strings.Cut(rest, "</script>")
	for _, part := range []string{markup, program} {
		part = strings.ReplaceAll(part, `"http://www.w3.org/2000/svg"`, "") // a name, not an address
		if m := regexp.MustCompile(
			`https?:|//[a-z]+\.|<[^>]*\bsrc=|@import|\burl\([^#]|\bfetch\(|XMLHttp|innerHTML|insertAdjacent|document\.write|\beval\(|import\(`).FindString(part); m != "" {
			t.Errorf("the page has %q", m)
		}
	}
	script := program[strings.Index(program, "<script>")+len("<script>") : strings.Index(program, "</script>")]
	style := markup[strings.Index(markup, "<style>")+len("<style>") : strings.Index(markup, "</style>")]
	for _, want := range []string{"default-src 'none'", "script-src '" + digest(script) + "'",
		"style-src '" + digest(style) + "'"} {
		if !strings.Contains(markup, want) {
			t.Errorf("the page's policy lacks %s", want)
		}
	}
}

func TestEqualRunsGiveEqualBytes(t *testing.T) {
	page := func() []byte {
		p := New(2)
		for _, o := range []string{"sjf", "las"} {
			simulate(t, sim.DefaultConfig(), short(t, "2x2"), mixed(80), policy(t, o), p.Run(o))
		}
		return written(t, p)
	}
	if a, b := page(), page(); !bytes.Equal(a, b) {
		t.Error("two pages of the same runs differ")
	}
}

func TestAPageWithoutRunsOrEvents(t *testing.T) {
	p := New(0)
	if d := decode(t, p); len(d.Runs) != 0 {
		t.Errorf("%+v", d)
	}
	p.Run("nothing")
	if d := decode(t, p); len(d.Runs) != 1 || d.Runs[0].Series.Values != nil {
		t.Errorf("%+v", d)
	}
}

// A page stays below 15 MB for any number of events.
func TestPagesStaySmall(t *testing.T) {
	const most = 15 << 20
	jobs := mixed(40_000)
	for i := range jobs {
		jobs[i].ID = strings.Repeat("<", 60) + fmt.Sprint(i) // six bytes for each
		jobs[i].User, jobs[i].VC, jobs[i].Model = jobs[i].ID, jobs[i].ID, jobs[i].ID
	}
	p := New(2)
	for _, o := range []string{"fifo", "sjf"} {
		simulate(t, sim.DefaultConfig(), short(t, "pool:400"), jobs, policy(t, o), p.Run(o))
	}
	if n := len(written(t, p)); n > most {
		t.Errorf("%d bytes for hostile names", n)
	}
	if testing.Short() {
		t.Skip("the rest takes long")
	}
	jobs = mixed(110_000)
	for i := range jobs {
		jobs[i].GPUs, jobs[i].Submit = 1+i*31%64, time.Duration(i)*100*time.Millisecond
	}
	cfg := sim.DefaultConfig()
	cfg.Failures.MTBF, cfg.Failures.MTTR = 10*time.Hour, time.Hour
	p = New(3)
	simulate(t, cfg, short(t, "1250x8"), jobs, policy(t, "fifo"), p.Run("fifo"))
	n := len(written(t, p))
	t.Logf("%d jobs on 10,000 GPUs under one of three policies: %d bytes", len(jobs), n)
	if 3*n > most {
		t.Errorf("%d bytes for one of three", n)
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{"": "", "abcde": "abcde", "abcdef": "abcd…", "äöüßé": "äöüßé",
		"äöüßéx": "äöüß…", "ab\xff\xfe\xfd\xfc": "ab\xff\xfe…"} {
		if got := shorten(in, 5); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A further stint allocates nothing once the lists have grown.
func BenchmarkObserve(b *testing.B) {
	jobs := mixed(2000)
	b.ReportAllocs()
	for b.Loop() {
		p := New(1)
		simulate(b, sim.DefaultConfig(), short(b, "3x2"), jobs, policy(b, "srtf"), p.Run("srtf"))
	}
	b.ReportMetric(float64(len(jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
}
