package control

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"clustergym/env"
)

// shown returns what Render writes.
func shown(t *testing.T, e env.Env) string {
	t.Helper()
	var b strings.Builder
	if err := e.(env.Renderer).Render(&b, "ansi"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRenderShowsTheState(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		id   string
		task []float64
		set  func(p problem)
		act  env.Action
		want string
	}{
		{
			"CartPole-v1", nil, func(p problem) { *p.(*cart) = cart{x: 1.2, v: 0.25, angle: 0.1} }, env.Action{Disc: []int32{1}},
			"CartPole-v1, step 1, reward 1\ncart_position: 1.2 m\ncart_velocity: 0.25 m/s\npole_angle: 0.1 rad\npole_velocity: 0 rad/s\n" +
				strings.Repeat(" ", 36) + "/\n" + strings.Repeat("-", 36) + "#" + strings.Repeat("-", 12) + "\n",
		},
		{
			"Acrobot-v1", nil, func(p problem) { *p.(*robot) = robot{acrobotState{0, 3, 0.5, -1}} },
			env.Action{Disc: []int32{1}},
			"Acrobot-v1, step 1, reward -1\nlink1_cos: 1\nlink1_sin: 0\nlink2_cos: -0.99\nlink2_sin: 0.1411\nvelocity1: 0.5 rad/s\nvelocity2: -1 rad/s\n" +
				"upper link 0 degrees from hanging down, lower link 172 from the upper; the tip is at height -0.01, the line at 1\n",
		},
		{
			"Nav2D-v1", []float64{0.5, -0.5}, nil, env.Action{Cont: []float32{-0.1, 0.1}},
			"Nav2D-v1, step 1, reward -0.8485\nposition: -0.1 0.1\n+---------------------+\n" +
				strings.Repeat("|                     |\n", 4) + "|        o            |\n" +
				strings.Repeat("|                     |\n",
					5) + "|                    X|\n+---------------------+\nhidden: the goal is at (0.500, -0.500), 0.849 away\n",
		},
		{
			"Bandit-v1", []float64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0.25}, nil, env.Action{Disc: []int32{0}},
			"Bandit-v1, step 1, reward 1\nconstant: 1\nhidden: the arms pay with 1.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.25\npull 1 of 100: arm 0, won\n",
		},
		{
			"ProbeMaskedTarget-v1", nil, nil, env.Action{Disc: []int32{1}},
			"ProbeMaskedTarget-v1, step 1, reward 1\nsignal: 1\nlegal: 0\n",
		},
		{
			"ProbeConstant-v1", nil, nil, env.Action{Disc: []int32{0}},
			"ProbeConstant-v1, step 1, reward 1, Terminated\nsignal: 0\n",
		},
	} {
		e := open(t, c.id)
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Task: c.task}, ts); err != nil {
			t.Fatal(err)
		}
		if err := e.Step(ctx, c.act, ts); err != nil {
			t.Fatal(err)
		}
		if f, ok := e.(*Env); ok && c.set != nil {
			c.set(f.p)
			f.p.observe(f.obs, f.mask)
		}
		if got := shown(t, e); got != c.want {
			t.Errorf("%s shows\n%swant\n%s", c.id, got, c.want)
		}
	}
}

func TestTheMountainCarStandsOnItsHill(t *testing.T) {
	e := instance(t, "MountainCar-v0")
	if err := e.Reset(context.Background(), env.Episode{}, env.NewTimeStep(e.Spec())); err != nil {
		t.Fatal(err)
	}
	e.p.(*car).x = -0.5235 // the bottom
	lines := strings.Split(strings.TrimRight(shown(t, e), "\n"), "\n")
	hill := lines[len(lines)-8:]
	if at := strings.IndexByte(hill[7], 'o'); at != 20 { // 0.6765 of 1.8, of 54 columns
		t.Errorf("the car is in column %d of the lowest row, want 20:\n%s", at, strings.Join(hill, "\n"))
	}
	if at := strings.IndexByte(strings.Join(hill[:2], ""), 'F'); at < 0 {
		t.Errorf("the flag is not near the top:\n%s", strings.Join(hill, "\n"))
	}
}

func TestRenderNeedsAnEpisodeAnOpenEnvironmentAndAKnownMode(t *testing.T) {
	e := instance(t, "CartPole-v1")
	if err := e.Render(io.Discard, "ansi"); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("before Reset: %v", err)
	}
	if err := e.Reset(context.Background(), env.Episode{}, env.NewTimeStep(e.Spec())); err != nil {
		t.Fatal(err)
	}
	if err := e.Render(io.Discard, "rgb_array"); err == nil ||
		!strings.Contains(err.Error(), `render mode "rgb_array", want ansi; Paint draws rgb_array`) {
		t.Errorf("another mode: %v", err)
	}
	_, w := io.Pipe()
	if err := w.CloseWithError(io.ErrShortWrite); err != nil {
		t.Fatal(err)
	}
	if err := e.Render(w, "ansi"); err == nil {
		t.Error("a writer's error is lost")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Render(io.Discard, "ansi"); !errors.Is(err, env.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
