package mlflow

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// python is the environment variable with a Python that has MLflow. make mlflow sets it.
const python = "CLUSTERGYM_MLFLOW_PYTHON"

// A real tracking server has every step once, also after it was killed in between.
func TestMLflowTakesWhatIsSent(t *testing.T) {
	program := os.Getenv(python)
	if program == "" {
		t.Skip(python + " names no Python with MLflow (make mlflow does)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // the server takes it
	url := "http://127.0.0.1:" + port
	home := t.TempDir()
	start := func() (stop func()) {
		c := exec.Command(program, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", "1", //nolint:gosec // the caller's Python
			"--backend-store-uri", "sqlite:///"+home+"/mlflow.db", "--default-artifact-root", home+"/artifacts")
		c.Dir = home
		c.Env = append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=1")
		own(c)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for range 600 {
			if r, err := http.Get(url + "/health"); err == nil { //nolint:noctx // of this machine
				_ = r.Body.Close() // nothing is read
				if r.StatusCode == http.StatusOK {
					return func() { end(c) }
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
		end(c)
		t.Fatal("the server does not begin")
		return nil
	}
	f := &fake{t: t}
	dir := t.TempDir()
	o := options(f, url, dir)
	o.Patience, o.Every = time.Minute, 100*time.Millisecond
	for i := range 250 {
		o.Params = append(o.Params, [2]string{fmt.Sprintf("many.key_%d", i), "x"})
	}
	stop := start()
	write(t, dir, lines(1, 300), false)
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	history := func(key string) (steps []int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var page struct {
			Metrics []metric `json:"metrics"`
		}
		if err := s.get(ctx, "metrics/get-history?max_results=25000&run_id="+s.st.Run+"&metric_key="+key, &page); err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Metrics {
			steps = append(steps, m.Step)
		}
		return steps
	}
	f.until("the first 300 lines", func() bool {
		b, _ := os.ReadFile(dir + "/" + StateFile)
		var st state
		return json.Unmarshal(b, &st) == nil && st.Step == 3000
	})
	stop()
	write(t, dir, lines(301, 400), true)
	f.until("a warning", func() bool { return len(f.told) > 0 })
	stop = start()
	defer func() { stop() }()
	s.Close(Killed)
	write(t, dir, lines(1, 350), false) // a resumed run
	if s, err = Start(o); err != nil {
		t.Fatal(err)
	}
	write(t, dir, lines(351, 500), true)
	s.Close(Finished)
	for _, key := range []string{"rollout/ep_rew_mean", "train/policy_loss"} {
		got := history(key)
		if len(got) != 500 {
			t.Fatalf("%s has %d values, want 500; told %q", key, len(got), f.told)
		}
		seen := map[int64]bool{}
		for _, step := range got {
			seen[step] = true
		}
		if len(seen) != 500 {
			t.Errorf("%s has values of %d steps, want 500", key, len(seen))
		}
	}
	var run struct {
		Run struct {
			Info struct {
				Status string `json:"status"`
				Name   string `json:"run_name"`
			} `json:"info"`
			Data struct {
				Params []struct{ Key string } `json:"params"`
			} `json:"data"`
		} `json:"run"`
	}
	if err := s.get(t.Context(), "runs/get?run_id="+s.st.Run, &run); err != nil {
		t.Fatal(err)
	}
	if r := run.Run; r.Info.Status != string(Finished) || r.Info.Name != "mine" || len(r.Data.Params) != 252 {
		t.Errorf("run %+v with %d parameters", r.Info, len(r.Data.Params))
	}
}
