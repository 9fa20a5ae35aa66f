package sweep

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"clustergym/distributed/workqueue"
	"clustergym/lab/run"
)

// testToken is the token of the queue of a test.
const testToken = "a-token-of-tests"

// Trials that workers train are those of one machine, and so is the file of their results.
func TestTrialsOnWorkersAreThoseOfOneMachine(t *testing.T) {
	cfg, base := sweepOf(t, tinySweep), tinyProblem()
	here, away := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "s")
	want, err := Run(t.Context(), cfg, base, Options{Dir: here, Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	got,
		err := Run(t.Context(), cfg, base,
		Options{Dir: away, Workers: 1, Queue: func(ctx context.Context) (*workqueue.Coordinator, error) {
			q, err := workqueue.Listen(ctx, workqueue.Options{
				Listen: "127.0.0.1:0", Dir: filepath.Join(away,
					"queue"), Job: "test", Token: testToken, Build: "test", Workers: 1, Here: 1,
			})
			if err != nil {
				return nil, err
			}
			for range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					if err := workqueue.Work(t.Context(), workqueue.WorkOptions{
						URL: q.URL(), Token: testToken, Build: "test", Dir: t.TempDir(),
						Handlers: map[string]workqueue.Handler{run.TrainKind: run.TrainHandler()},
					}); err != nil {
						t.Error(err)
					}
				}()
			}
			return q, nil
		}})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Trials {
		if g, w := jsonOf(got.Trials[i]), jsonOf(want.Trials[i]); g != w {
			t.Errorf("place %d: %s, want %s", i, g, w)
		}
	}
	for _, name := range []string{trialsFile, sweepFile, baseFile} {
		g, err := os.ReadFile(filepath.Join(away, name))
		if err != nil {
			t.Fatal(err)
		}
		w, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(g) != string(w) {
			t.Errorf("%s:\n%s\nwant\n%s", name, g, w)
		}
	}
	best, err := filepath.Rel(here, want.Best[0])
	if err != nil {
		t.Fatal(err)
	}
	if weights(t, filepath.Join(away, best)) != weights(t, filepath.Join(here, best)) {
		t.Error("the best trial has other weights")
	}
}
