package external

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/lab/envs"
)

// desk is the server's side of a client's simulations.
type desk struct {
	t      testing.TB
	f      *factory
	b      *budget.Budget
	s      handle.Served
	id     uint32
	frames [][]byte // the replies
}

// newDesk returns a desk for clients that may name every file, with a budget of so many bytes.
func newDesk(t testing.TB, bytes int64) *desk {
	t.Helper()
	cfg := envs.DefaultRegistryConfig()
	cfg.OwnFiles = true
	r, err := envs.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, f: NewFactory(r, func() time.Duration { return 0 }).(*factory), b: budget.New(bytes)}
	d.f.UseBudget(d.b)
	return d
}

// trace writes rows of submit_time,duration,num_gpu and more columns to a file.
func trace(t testing.TB, more string, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.csv")
	text := "submit_time,duration,num_gpu" + more + "\n" + strings.Join(rows, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened is simulate. Policies are plays, "" = the client's, " room" = the client's that is asked where one fits.
func (d *desk) opened(kwargs wire.Map, policies ...string) (wire.Map, error) {
	var plays []any
	for _, p := range policies {
		p, ask, _ := strings.Cut(p, " ")
		m := wire.MapOf("policy", p, "seed", int64(1))
		if ask != "" {
			m.Add("ask", ask)
		}
		plays = append(plays, m)
	}
	w := wire.NewWriter(wire.Ext)
	lim := handle.Limits{MaxEnvs: 1, MaxFrameIn: 1 << 20, MaxFrameOut: 1 << 24, Workers: 1}
	s, err := d.f.Simulate(d.t.Context(), lim, &handle.Opening{
		Req: wire.MapOf("kwargs", kwargs, "plays", plays), Re: 1, H: 1, Log: slog.New(slog.DiscardHandler), Budget: d.b,
	}, w)
	if err != nil {
		if s != nil {
			d.t.Error("simulations come with an error")
		}
		return nil, err
	}
	d.s = s
	d.t.Cleanup(func() { s.Close() }) //nolint:errcheck // it never fails
	return d.read(w), nil
}

// must is opened of what must be right.
func (d *desk) must(kwargs wire.Map, policies ...string) wire.Map {
	d.t.Helper()
	m, err := d.opened(kwargs, policies...)
	if err != nil {
		d.t.Fatal(err)
	}
	return m
}

// read keeps and decodes a reply.
func (d *desk) read(w *wire.Writer) wire.Map {
	d.t.Helper()
	if !w.Complete() {
		d.t.Fatal("the reply is not complete")
	}
	b := bytes.Clone(w.Bytes())
	d.frames = append(d.frames, b)
	m, e := wire.Decode(b, wire.Ext, wire.Limits{Depth: 16, String: 1 << 16})
	if e != nil {
		d.t.Fatal(e)
	}
	return m
}

// decide sends decisions and returns the plays of the reply.
func (d *desk) decide(plays ...any) ([]wire.Map, error) {
	d.id++
	w := wire.NewWriter(wire.Ext)
	if err := d.s.Do(d.t.Context(), wire.OpDecide, d.id, wire.MapOf("plays", plays), w); err != nil {
		return nil, err
	}
	list := d.read(w).Get("plays").([]any)
	out := make([]wire.Map, len(list))
	for i := range list {
		out[i] = list[i].(wire.Map)
	}
	return out, nil
}

// one is decide for a desk with one play.
func (d *desk) one(plays ...any) wire.Map {
	d.t.Helper()
	got, err := d.decide(plays...)
	if err != nil || len(got) != 1 {
		d.t.Fatalf("%d plays, %v", len(got), err)
	}
	return got[0]
}

// ints returns the whole numbers at key.
func ints(t testing.TB, m wire.Map, key string) []int64 {
	t.Helper()
	v, e := m.Ints(key)
	if e != nil {
		t.Fatal(e)
	}
	return v
}

// rows returns the table at key, by row.
func rows(t testing.TB, m wire.Map, key string) [][]float64 {
	t.Helper()
	v := m.Get(key)
	if v == nil {
		return nil
	}
	a, ok := v.(wire.Array)
	if !ok || len(a.Shape) != 2 {
		t.Fatalf("%s is %v", key, v)
	}
	out := make([][]float64, a.Shape[0])
	for i := range out {
		for k := range a.Shape[1] {
			out[i] = append(out[i], a.Float(i*a.Shape[1]+k))
		}
	}
	return out
}

// sent is a list of decisions: op, job, op, job, ….
func sent(pairs ...int64) wire.Map {
	var op, job []int64
	for i := 0; i < len(pairs); i += 2 {
		op, job = append(op, pairs[i]), append(job, pairs[i+1])
	}
	return decoded(wire.MapOf("op", op, "job", job))
}

// decoded returns m as a server reads it.
func decoded(m wire.Map) wire.Map {
	w := wire.NewWriter(wire.Ext)
	w.Value(m)
	out, e := wire.Decode(bytes.Clone(w.Bytes()), wire.Ext, wire.DefaultLimits())
	if e != nil {
		panic(fmt.Sprint(e))
	}
	return out
}

func file(path, cluster string, more ...any) wire.Map {
	return append(wire.MapOf("trace.file", path, "cluster", cluster), wire.MapOf(more...)...)
}
