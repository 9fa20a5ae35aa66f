package operate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/env"
	"clustergym/env/jobselect"
)

// Go clients are advised, of one environment and of a vector, only by the policies that the flags allow, and it is
// counted.
func TestServeAdvises(t *testing.T) {
	s := serve(t, "--advise", "sjf@slots,rollout:sjf@slots", "--budget", "32")
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{URL: "ws://" + s.addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test has ended
	e, err := c.Open(ctx, jobselect.V1,
		map[string]any{"window": 12, "warm": 4, "load": 3.0, "cluster": "2x4", "trace.synth.jobs": 400})
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 1, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	v, err := c.OpenVec(ctx, jobselect.V1,
		map[string]any{"window": 12, "warm": 4, "cluster": "2x4", "trace.synth.jobs": 400}, 3, client.VecConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b := env.NewBatch(v.Spec(), 3)
	v.Seed(1)
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	if rows, err := v.Advise(ctx, "sjf@slots", ""); err != nil || len(rows) != 3 || len(rows[2]) != 1 {
		t.Errorf("three rows are advised %v, %v", rows, err)
	}
	for !ts.Kind.Last() {
		a, err := e.Advise(ctx, "rollout:sjf@slots", "32")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := e.Advise(ctx, "rollout:sjf@slots", ""); err != nil || !slices.Equal(a, b) {
			t.Fatalf("advised %v, then %v, %v", a, b, err)
		}
		if err := e.Step(ctx, env.Action{Disc: a}, ts); err != nil {
			t.Fatal(err)
		}
	}
	for policy, code := range map[string]wire.Code{"sjf@slots": wire.NeedsReset, "fifo@slots": wire.Unsupported,
		"x@slots": wire.BadRequest} {
		var w *wire.Error
		_, err := e.Advise(ctx, policy, "")
		if !errors.Is(err, env.ErrResetNeeded) && (!errors.As(err, &w) || w.Code != code) {
			t.Errorf("%s: %v, want %s", policy, err, code)
		}
	}
	resp, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(resp.Body)
	if page := string(body); err != nil || !strings.Contains(page, "clustergym_advice_total ") ||
		strings.Contains(page, "clustergym_advice_total 0\n") {
		t.Error("advice is not counted")
	}
}
