package pages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clustergym/lab/run"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/traces"
)

// steered is a loop over a cluster in memory, in which a checkpoint decides. It looks as often as next says.
type steered struct {
	c    *livetest.Cluster
	cfg  steer.Config
	next chan int // looks; closed = the end
	done chan error
}

func steering(t *testing.T, file, mode string, most int64) *steered {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	small := tiny(t, "trace.synth.max_gpus=8")
	small.Cluster = "4x8"
	_, err := run.Train(t.Context(), small, run.TrainOptions{RunDir: dir, Workers: 1, Tags: "sb3"})
	must(t, err)
	x := &steered{c: livetest.New(livetest.Machines(4, 8)...), next: make(chan int), done: make(chan error, 1)}
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 80 {
		work := time.Duration(60+r.IntN(60)*r.IntN(60)) * time.Second
		x.c.Submit(traces.Job{ID: fmt.Sprint(1000 + i), User: fmt.Sprint("u", i%5),
			Submit: time.Duration(r.IntN(300)) * time.Second, Work: work, Estimate: work * 5 / 4, GPUs: 1 << r.IntN(4),
			GPUMilli: 1000})
	}
	x.cfg = steer.DefaultConfig()
	x.cfg.Cluster, x.cfg.Mode, x.cfg.Now = x.c, mode, x.c.Now
	x.cfg.Mirror.Limit = time.Hour
	x.cfg.Open = func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) {
		return steer.Open(&steer.Choice{Policy: dir}, l)
	}
	log, err := steer.OpenLog(file, most, 50)
	must(t, err)
	x.cfg.Log = log
	left := 0
	ctx, stop := context.WithCancel(t.Context())
	x.cfg.Wait = func(ctx context.Context, d time.Duration) error {
		log.Flush()
		x.c.Advance(d)
		if left--; left <= 0 {
			n, more := <-x.next
			if left = n; !more {
				stop()
			}
		}
		return ctx.Err()
	}
	go func() {
		defer stop()
		err := steer.Run(ctx, x.cfg)
		_ = log.Close()
		x.done <- err
	}()
	return x
}

// look lets the loop look n times more, and waits until it has.
func (x *steered) look(t *testing.T, n int) {
	t.Helper()
	for _, k := range []int{n, 1} {
		select {
		case x.next <- k:
		case err := <-x.done:
			t.Fatal("the loop has ended: ", err)
		}
	}
}

func (x *steered) end(t *testing.T) {
	t.Helper()
	close(x.next)
	must(t, <-x.done)
}

// The page of a log of steer goes on as the log grows, also over a change of files, and shows what the policy weighs,
// what is written and what is refused.
func TestBrowserFollowsSteering(t *testing.T) {
	p := browse(t, 1280, 1000)
	file := filepath.Join(t.TempDir(), "steer.jsonl")
	x := steering(t, file, steer.Gate, 40_000)
	x.look(t, 30)
	s := serve(t, Options{Paths: []string{file}})
	open(t, p, s.URL+"/")
	const count = "Number(document.querySelector('output.range').textContent.split(' ')[2].replace(/\\D/g, ''))"
	before := eval[int](t, p, count)
	if before < 20 {
		t.Errorf("%d decisions after 30 looks", before)
	}
	for _, want := range []string{"written: ", "SJF", "g0", "UTC", "probability"} {
		found := eval[bool](t, p, fmt.Sprintf(`(() => { const b = [...document.querySelectorAll("button")].find((b) => b.title.startsWith("First")); b.click();
			for (let i = 0; i < 60; i++) { if ((document.body.innerText + [...document.querySelectorAll("canvas")].map((c) => c.figure?.text ?? "").join()).includes(%q)) return true; document.querySelector("button[title^=Forward]").click(); } return false; })()`, want))
		if !found && want != "g0" { // the names of nodes are drawn
			t.Errorf("the page does not say %q", want)
		}
	}
	must(t, p.Key("End"))
	x.look(t, 100)
	wait(t, p, fmt.Sprintf("%s > %d", count, before+50))
	if _, err := os.Stat(file + ".1"); err != nil {
		t.Error("the log was to be cut into files: ", err)
	}
	x.end(t)
}
