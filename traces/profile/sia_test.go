package profile

import (
	"strings"
	"testing"
	"time"
)

// smallSia has 1 and 2 nodes of one GPU: on rtx, measured with 10 and 20 examples on each GPU.
func smallSia(t testing.TB) *builder {
	t.Helper()
	b := newBuilder()
	a := b.application("net")
	for _, err := range []error{
		a.placements(
			strings.NewReader(
				"local_bsz,step_time,sync_time,placement\n10,1.0,0.2,1\n20,1.5,0.3,1\n10,1.1,0.3,11\n20,1.6,0.4,11\n10,1.5,0.5,12\n10,1.7,0.7,21\n"), "p", "rtx"),
		a.scalability(
			strings.NewReader("num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,4,10,1.25,0.5\n2,3,10,9,8\n"), "s",
			"rtx"),
		a.scalability(strings.NewReader("num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,1,10,0.5,0.1\n"), "s",
			"a100"),
		a.validation(strings.NewReader("progress,iteration,metric,grad_sqr,grad_var\n10.0,100,1,1,1\n20.5,200,1,1,1\n"), "v",
			10),
		a.validation(strings.NewReader("iteration,progress\n30,10\n70,20\n"), "v", 40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.finish(b)
	return b
}

func TestSiaByHand(t *testing.T) {
	s := smallSia(t).table()
	if got, want := strings.Join(s.Models(), "; "), "net (batch size 10); net (batch size 40)"; got != want {
		t.Errorf("models %s, want %s", got, want)
	}
	for _, c := range []struct {
		batch, gpus int
		gpu         string
		seconds     float64 // of an iteration; 0 = not known
	}{
		{10, 1, "rtx", 1},
		{10, 2, "rtx", 0},              // 5 examples on each were never run
		{40, 1, "rtx", 1.5 + 1.5 - .3}, // two parts of 20, one synchronisation
		{40, 2, "rtx", 1.6},            // 20 on each, on the only layout measured
		{40, 4, "rtx", 1.25},
		{40, 1, "a100", .5 + 3*.4}, // four parts of 10
	} {
		want := 0.0
		if c.seconds > 0 {
			want = 1 / c.seconds
		}
		if got, ok := s.Throughput(named("net", c.batch), c.gpu, c.gpus); !near(got, want) || ok != (want > 0) {
			t.Errorf("batch %d on %d %s: %v, %v; want %v", c.batch, c.gpus, c.gpu, got, ok, want)
		}
	}
	// On 3 GPUs two parts of 7 are too few: between 2 and 4 GPUs the throughput is linear.
	if got, ok := s.Throughput("net (batch size 40)", "rtx", 3); !ok || !near(got, (1/1.6+1/1.25)/2) {
		t.Errorf("batch 40 on 3 rtx: %v, %v", got, ok)
	}
	if d, ok := s.Work("net", 40, 4, 0, "rtx"); !ok || d != 87500*time.Millisecond {
		t.Errorf("70 iterations of 1.25 s take %v, %v", d, ok)
	}
	if d, ok := s.Work("net", 40, 4, 8, "rtx"); !ok || d != 10*time.Second {
		t.Errorf("8 iterations of 1.25 s take %v, %v", d, ok)
	}
	if d, ok := s.Work("net (batch size 10)", 0, 1, 0, "rtx"); !ok || d != 200*time.Second {
		t.Errorf("200 iterations of 1 s take %v, %v", d, ok)
	}
	if d, ok := s.Work("net", 0, 1, 0, "rtx"); !ok || d != 189*time.Second { // 70 of 2.7 s, shorter than 200 of 1 s
		t.Errorf("the shortest training takes %v, %v", d, ok)
	}
	// as on 4, the largest number measured
	if d, ok := s.Work("net", 40, 64, 0, "rtx"); !ok || d != 87500*time.Millisecond {
		t.Errorf("on 64 GPUs %v, %v", d, ok)
	}
	for _, c := range []struct {
		model       string
		batch, gpus int
	}{{"net", 20, 1}, {"net (batch size 10)", 40, 1}, {"net", 40, 0}, {"ten", 10, 1}} {
		if d, ok := s.Work(c.model, c.batch, c.gpus, 0, "rtx"); ok {
			t.Errorf("%+v take %v", c, d)
		}
	}
	if p, _ := s.Profile("net (batch size 40)", "rtx"); p.Compute != 2700*time.Millisecond ||
		!near(p.Speeds["a100"], 2.7/1.7) || len(p.Scaling) != 3 {
		t.Errorf("%+v", p)
	}
}

func TestSiaTakesTheMeanOfPlacementsAndPlacementsBeforeScalability(t *testing.T) {
	b := smallSia(t)
	for _, s := range b.sia[0].steps {
		if s.gpu == "rtx" && s.nodes == 2 && s.gpus == 3 && s.local == 10 && (s.time != 1.6 || s.sync != .6) {
			t.Errorf("%+v, want 1.6 and 0.6", s)
		}
	}
}

func TestSiaPipelines(t *testing.T) {
	b := newBuilder()
	a := b.application("gpt_pmp")
	if err := a.scalability(
		strings.NewReader(
			"num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,4,2,0.2,0.5\n2,8,1,0.1,0.7\n1,6,1,0.1,0.5\n"), "s",
		"rtx"); err != nil {
		t.Fatal(err)
	}
	if err := a.validation(strings.NewReader("progress,iteration\n1,10\n"), "v", 48); err != nil {
		t.Fatal(err)
	}
	a.finish(b)
	s := b.table()
	// 4 stages: 48 examples in one pipeline, 24 in each of two; 6 GPUs are not a whole number of pipelines.
	for gpus, seconds := range map[int]float64{4: 3*(3+48)*.1 + .5, 8: 3*(3+24)*.1 + .7} {
		if got, ok := s.Throughput("gpt_pmp", "rtx", gpus); !ok || !near(got, 1/seconds) {
			t.Errorf("%d GPUs: %v, %v; want %v", gpus, got, ok, 1/seconds)
		}
	}
	if p, _ := s.Profile("gpt_pmp", "rtx"); len(p.Scaling) != 2 {
		t.Errorf("%+v", p.Scaling)
	}
}

func TestSiaFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"placement,local_bsz,step_time,sync_time\n10,1,1,0\n",
			`f:2: placement: got "10", want digits from 1 to 9, the GPUs on each node`},
		{"placement,local_bsz,step_time,sync_time\n1,1,0,0\n", `f:2: step_time: got "0", want more than 0 seconds`},
		{"placement,local_bsz,step_time,sync_time\n1,1,2,3\n",
			`f:2: sync_time: got "3", want less than step_time, of which it is a part`},
		{"placement,step_time\n1,1\n", `f:1: got "placement,step_time", want a header with also local_bsz, sync_time`},
		{"placement,placement\n1,1\n", `f:1: placement: got "placement", want each column once in the header`},
	} {
		if err := newBuilder().application("a").placements(strings.NewReader(c.text), "f", "rtx"); err == nil ||
			err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	err := newBuilder().application("a").scalability(
		strings.NewReader("num_nodes,num_replicas,local_bsz,step_time,sync_time\n3,2,1,1,0\n"), "f", "rtx")
	if err == nil || err.Error() != `f:2: num_nodes: got "3", want a whole number from 1 to 2` {
		t.Error(err)
	}
	for _, c := range []struct{ text, want string }{
		{"progress,iteration\n1,5\n2,4\n", `f:3: iteration: got "4", want 5 or more, as in the row before`},
		{"progress,iteration\n", `f:1: got "", want a row with the iterations of an epoch`},
		{"progress,iteration\n1,0\n", `f:2: iteration: got "0", want a whole number, 1 or more`},
	} {
		if err := newBuilder().application("a").validation(strings.NewReader(c.text), "f", 8); err == nil ||
			err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}
