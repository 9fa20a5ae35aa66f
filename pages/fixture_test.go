package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/lab/config"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
)

// tiny is a training of a second.
func tiny(t *testing.T, sets ...string) config.Config {
	t.Helper()
	c := config.For("JobSelect-v1")
	c.Name = "tiny"
	c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatches = 32, 1, 2
	c.PPO.Network.Hidden = []int{8}
	c.DDQN.Buffer, c.DDQN.LearningStarts, c.DDQN.Batch, c.DDQN.TrainEvery = 200, 64, 16, 16
	c.DDQN.Network.Hidden = []int{8}
	c.Train.Steps, c.Train.Envs, c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = 256, 2, 64, 128, 128
	c.Eval.Validation, c.Eval.Windows, c.Eval.Whole = 2, 3, false
	for _, s := range append([]string{"trace.synth.jobs=1200", "env.window=24", "env.warm=24", "env.load=1.4"}, sets...) {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

var trained = map[string]*struct {
	once sync.Once
	dir  string
	err  error
}{"ppo": {}, "ddqn": {}}

// trainedRun returns the folder of a run of an agent, which all tests share and none may change.
func trainedRun(t *testing.T, agent string) string {
	t.Helper()
	x := trained[agent]
	x.once.Do(func() {
		var base string
		if base, x.err = os.MkdirTemp("", "live"); x.err != nil {
			return
		}
		x.dir = filepath.Join(base, "tiny-"+agent)
		_, x.err = run.Train(t.Context(), tiny(t, "agent="+agent), run.TrainOptions{RunDir: x.dir, Workers: 1, Tags: "sb3"})
	})
	if x.err != nil {
		t.Fatal(x.err)
	}
	return x.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, x := range trained {
		if x.dir != "" {
			_ = os.RemoveAll(filepath.Dir(x.dir)) // a temporary folder
		}
	}
	os.Exit(code)
}

// written makes the folder of a run with n lines of progress.
func written(t *testing.T, dir, name string, n int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config.For("CartPole-v1")
	cfg.Name = name
	cfg.Train.Steps = int64(10 * n)
	cfg.PPO.LR = 0.001 * float64(len(name))
	if err := rundir.WriteConfig(path, &cfg); err != nil {
		t.Fatal(err)
	}
	appendLines(t, path, 1, n)
	return path
}

// line is the line of step 10·i.
func line(i int) string {
	spike := 0.0
	if i == 4321 {
		spike = 1000
	}
	return fmt.Sprintf(
		`{"step":%d,"episodes":%d,"updates":%d,"kernels":"avx2","return_mean":%g,"length_mean":%d,"info":{"wait_s":1.5},"train":{"entropy":%g,"policy_loss":0.25,"value_loss":2},"timing":{"steps_per_s":100,"wall_s":%d}}`+"\n",
		10*i, i, i, float64(i%100)+spike, i%7, 1/float64(i), i)
}

// appendLines appends the lines of steps 10·from to 10·to.
func appendLines(t *testing.T, path string, from, to int) {
	t.Helper()
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString(line(i))
		if i%1000 == 0 {
			fmt.Fprintf(&b, `{"step":%d,"eval":{"episodes":3,"return_mean":%d,"best":true}}`+"\n", 10*i, i)
		}
	}
	f, err := os.OpenFile(filepath.Join(path, rundir.ProgressFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(b.String()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// serve serves paths.
func serve(t *testing.T, opt Options) *httptest.Server {
	t.Helper()
	if opt.Poll == 0 {
		opt.Poll = 20 * time.Millisecond
	}
	s := httptest.NewServer(New(opt))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// get returns the answer to a request.
func get(t *testing.T, url string, header ...string) (code int, body string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close() //nolint:errcheck // only read
	var b strings.Builder
	buf := make([]byte, 1<<16)
	for {
		n, err := a.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return a.StatusCode, b.String(), a.Header
		}
	}
}
