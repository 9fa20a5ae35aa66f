package speed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
	"clustergym/internal/texttable"
	"clustergym/lab/envs"
)

// BridgeRow is one measurement of environments that a Python program steps over the bridge or with Gymnasium's own
// vector environments, or of bare frames on the same transport. It is the best of three rounds.
type BridgeRow struct {
	What      string  `json:"what"`
	Envs      int     `json:"envs"`
	Rate      float64 `json:"rate"`        // environment steps per second of wall time
	Trips     float64 `json:"trips"`       // round trips or calls of step, per second
	P50       float64 `json:"p50_us"`      // percentiles of one round trip
	P90       float64 `json:"p90_us"`      //
	P99       float64 `json:"p99_us"`      //
	ClientCPU float64 `json:"client_us"`   // processor time of the Python program per environment step, µs
	ServerCPU float64 `json:"server_us"`   // processor time of the server per environment step, µs; 0 without a server
	Bytes     float64 `json:"bytes"`       // both directions, per environment step; 0 if nothing is sent
	Frame     int     `json:"frame_bytes"` // of one reply
	Runs      int     `json:"runs"`        // round trips in the best round
}

// BridgeRatio compares two rows of one run.
type BridgeRatio struct {
	What string  `json:"what"`
	Is   float64 `json:"is"`
	Mark float64 `json:"mark"`           // the project's target
	Most bool    `json:"most,omitempty"` // Mark is an upper bound
}

// pythonRow is one line of the Python program's output.
type pythonRow struct {
	BridgeRow
	Error string `json:"error"`
}

// Trivial-v1 costs nothing to step, so its measurements are those of the bridge.
const (
	trivialID     = "Trivial-v1"
	trivialObs    = 64
	trivialLength = 1000
)

var _ env.Env = (*trivial)(nil)

// trivial is Trivial-v1: 64 numbers, of which one changes at every step.
type trivial struct {
	obs           [trivialObs]float32
	step          int
	begun, closed bool
}

func trivialSpec() env.Spec {
	return env.Spec{
		ID:     trivialID,
		Obs:    []env.Field{{Name: "obs", Shape: []int{trivialObs}, Low: 0, High: 1, Unit: "fraction", Doc: "noise"}},
		Action: env.ActionSpec{Sizes: []int{2}}, MaxSteps: trivialLength, NoOp: 0,
	}
}

func (t *trivial) Spec() env.Spec { return trivialSpec() }

func (t *trivial) Close() error {
	t.closed = true
	return nil
}

func (t *trivial) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if t.closed {
		return env.ErrClosed
	}
	t.begun = false
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(ep.Task) > 0 || ep.Split != "" {
		return fmt.Errorf("%s has neither tasks nor splits", trivialID)
	}
	r := rng.Stream(ep.Seed, "bench/trivial")
	for i := range t.obs {
		t.obs[i] = r.Float32()
	}
	t.step, t.begun = 0, true
	t.fill(ts, env.First)
	return nil
}

func (t *trivial) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	switch err := ctx.Err(); {
	case t.closed:
		return env.ErrClosed
	case err != nil:
		return err
	case !t.begun:
		return env.ErrResetNeeded
	case len(a.Disc) != 1 || len(a.Cont) > 0 || a.Disc[0] < 0 || a.Disc[0] > 1:
		return env.ErrIllegalAction
	}
	t.step++
	t.obs[t.step%trivialObs] = float32(a.Disc[0])
	kind := env.Mid
	if t.step == trivialLength {
		kind, t.begun = env.Truncated, false
	}
	t.fill(ts, kind)
	return nil
}

func (t *trivial) fill(ts *env.TimeStep, k env.Kind) {
	ts.Kind, ts.Elapsed, ts.Reward = k, 0, 0
	if k != env.First {
		ts.Reward = 1
	}
	copy(ts.Obs, t.obs[:])
	for i := range ts.Mask {
		ts.Mask[i] = true
	}
}

// factory makes Trivial-v1 in addition to the environments of server.Factory.
type factory struct{ server.Factory }

func (f factory) Make(ctx context.Context, id string, kwargs wire.Map, n int) (*server.Made, error) {
	if id != trivialID {
		return f.Factory.Make(ctx, id, kwargs, n)
	}
	m := &server.Made{}
	for range n {
		m.Envs = append(m.Envs, new(trivial))
	}
	return m, nil
}

// bridge starts a server and a Python program, which measures the bridge and prints one JSON object per line.
func (b *bench) bridge(ctx context.Context) error {
	b.say("bridge: starting the server and " + b.cfg.Python)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	registry, err := envs.NewRegistry(envs.DefaultRegistryConfig())
	if err != nil {
		return err
	}
	srv, err := server.New(server.DefaultConfig(), factory{envs.NewFactory(registry)}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	served, echoed := make(chan error, 1), make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	bare := &http.Server{Handler: http.HandlerFunc(serveBare), ReadHeaderTimeout: 5 * time.Second}
	go func() { echoed <- bare.Serve(echo) }()
	err = b.python(ctx, "ws://"+l.Addr().String(), "ws://"+echo.Addr().String())
	if err == nil {
		err = b.inProcess(ctx, envs.NewFactory(registry))
	}
	if err == nil {
		err = b.ratios()
	}
	stop()
	if e := bare.Close(); err == nil {
		err = e
	}
	if e := <-echoed; err == nil && !errors.Is(e, http.ErrServerClosed) {
		err = e
	}
	if e := <-served; err == nil && !errors.Is(e, context.Canceled) {
		err = e
	}
	return err
}

// serveBare answers every frame with a frame whose size is the number in the first four bytes. It measures the
// transport alone.
func serveBare(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{ReadBufferSize: 64 << 10, WriteBufferSize: 1 << 20, Subprotocols: []string{wire.SubMsgpack}}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close() //nolint:errcheck // there is nothing left to lose
	reply := make([]byte, 16<<20)
	for {
		_, p, err := c.ReadMessage()
		if err != nil || len(p) < 4 {
			return
		}
		n := binary.LittleEndian.Uint32(p)
		if int(n) > len(reply) || c.WriteMessage(websocket.BinaryMessage, reply[:n]) != nil {
			return
		}
	}
}

// python runs the Python program and collects its rows.
func (b *bench) python(ctx context.Context, url, bare string) error {
	args := []string{"-m", "clustergym.bench", "--url", url, "--bare", bare}
	if b.cfg.Quick {
		args = append(args, "--quick")
	}
	cmd := exec.CommandContext(ctx, b.cfg.Python, args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fault.Mistakef("%s %s: %w; want a Python 3.10 or later in which the package of python/ is installed: pip "+
			"install './python[gymnasium]'", fault.Key("python"), b.cfg.Python, err)
	}
	lines := bufio.NewScanner(out)
	var bad error
	for lines.Scan() {
		var row pythonRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			bad = fmt.Errorf("%s printed %.200q, want JSON: %w", b.cfg.Python, lines.Text(), err)
			break
		}
		if row.Error != "" {
			bad = errors.New(row.Error)
			break
		}
		b.say(fmt.Sprintf("bridge: %s, %s", row.What, plain.Count(row.Envs, "environment", "environments")))
		b.report.Bridge = append(b.report.Bridge, row.BridgeRow)
	}
	_, _ = io.Copy(io.Discard, out) // so that the program can end
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bad != nil:
		return bad
	case err != nil && strings.Contains(complaint.String(), "ModuleNotFoundError"):
		return fault.Mistakef("%s %s: %s; want a Python in which the package of python/ is installed: pip install "+
			"'./python[gymnasium]'", fault.Key("python"), b.cfg.Python, lastLine(complaint.String()))
	case err != nil:
		return fmt.Errorf("%s -m clustergym.bench: %w: %s", b.cfg.Python, err, lastLine(complaint.String()))
	}
	return nil
}

// lastLine returns the last line of s, without blanks around it.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// The names of the rows from which ratios are computed. The Python program uses the same names.
const (
	rowTrivial   = trivialID + " over the bridge"
	rowAlone     = trivialID + " over the bridge, request and reply alone"
	rowJobSelect = "JobSelect-v1 over the bridge"
	rowInTurn    = "JobSelect-v1 over the bridge, two in turn, without copies"
	rowSent      = "JobSelect-v1 over the bridge, all of it sent"
	rowBare      = "frames of JobSelect-v1's size, nothing else"
	rowLocal     = "JobSelect-v1 in one Go process"
	rowSync      = "the same in Python, SyncVectorEnv"
	rowAsync     = "the same in Python, AsyncVectorEnv"
	bridgeEnvs   = 64
)

// inProcess measures the JobSelect-v1 that f makes without a bridge, under the policy that the Python side plays: the
// first legal action.
func (b *bench) inProcess(ctx context.Context, f server.Factory) error {
	made, err := f.Make(ctx, jobselect.ID, nil, bridgeEnvs)
	if err != nil {
		return err
	}
	v, err := vec.New(vec.Config{Workers: runtime.GOMAXPROCS(0), Autoreset: vec.SameStep}, made.Envs...)
	if err != nil {
		return err
	}
	batch, actions := env.NewBatch(v.Spec(), bridgeEnvs), env.NewActions(v.Spec(), bridgeEnvs)
	if err := v.Reset(ctx, nil, nil, batch); err != nil {
		return err
	}
	m, best := v.Spec().MaskLen(), BridgeRow{What: rowLocal, Envs: bridgeEnvs}
	for range rounds {
		begin, cpu, n := b.hooks.Now(), processorTime(), 0
		for b.hooks.Now().Sub(begin) < b.least() {
			for i := range bridgeEnvs {
				actions.Disc[i] = 0
				for k, ok := range batch.Mask[i*m : (i+1)*m] {
					if ok {
						actions.Disc[i] = int32(k)
						break
					}
				}
			}
			if err := v.Step(ctx, nil, actions, batch); err != nil {
				return errors.Join(err, v.Close())
			}
			n++
		}
		wall := b.hooks.Now().Sub(begin).Seconds()
		if rate := float64(n*bridgeEnvs) / wall; rate > best.Rate {
			best.Rate, best.Trips, best.Runs = rate, float64(n)/wall, n
			best.ServerCPU = 1e6 * (processorTime() - cpu).Seconds() / float64(n*bridgeEnvs)
		}
	}
	b.report.Bridge = append(b.report.Bridge, best)
	return v.Close()
}

// ratios compares rows with each other and with the project's targets.
func (b *bench) ratios() error {
	find := func(what string, envs int) *BridgeRow {
		for i := range b.report.Bridge {
			if r := &b.report.Bridge[i]; r.What == what && r.Envs == envs {
				return r
			}
		}
		return &BridgeRow{}
	}
	one, many := find(rowAlone, 1), find(rowTrivial, bridgeEnvs)
	sync, async := find(rowSync, bridgeEnvs), find(rowAsync, bridgeEnvs)
	jobs, turns, sent := find(rowJobSelect, bridgeEnvs), find(rowInTurn, bridgeEnvs), find(rowSent, bridgeEnvs)
	bare, local := find(rowBare, bridgeEnvs), find(rowLocal, bridgeEnvs)
	for _, r := range []*BridgeRow{one, many, sync, async, jobs, turns, sent, bare, local} {
		if r.Rate == 0 {
			return errors.New(
				"clustergym.bench did not measure everything that is compared: it is of another version than gymctl")
		}
	}
	// The frames of a step can be sent only after the step, so their times add up.
	limit := 1 / (1/bare.Rate + 1/local.Rate)
	b.report.Ratios = []BridgeRatio{
		{What: "round trips per second, 1 environment", Is: one.Trips, Mark: 10_000},
		{What: "env steps per second, 64 environments", Is: many.Rate, Mark: 500_000},
		{What: "64 environments, bridge over AsyncVectorEnv", Is: many.Rate / async.Rate, Mark: 10},
		{What: "64 environments, bridge over SyncVectorEnv", Is: many.Rate / sync.Rate},
		{What: "JobSelect-v1, one Go process over the bridge, two in turn", Is: local.Rate / turns.Rate, Mark: 1.5,
			Most: true},
		{What: "JobSelect-v1, one Go process over the bridge, one batch", Is: local.Rate / jobs.Rate, Mark: 1.5, Most: true},
		{What: "JobSelect-v1, one process and bare frames one after the other, over all of it sent", Is: limit / sent.Rate,
			Mark: 1.5, Most: true},
	}
	return nil
}

// bridgeSheets are the tables of the bridge's rows and ratios.
func (r *Report) bridgeSheets() []texttable.Sheet {
	var rows, ratios [][]string
	micro := func(v float64) string {
		if v == 0 {
			return ""
		}
		return threeDigits(v)
	}
	for _, x := range r.Bridge {
		rows = append(rows, []string{
			x.What, strconv.Itoa(x.Envs), thousands(x.Rate), thousands(x.Trips), micro(x.P50), micro(x.P90), micro(x.P99),
			micro(x.ClientCPU), micro(x.ServerCPU), micro(x.Bytes),
		})
	}
	for _, x := range r.Ratios {
		mark := ""
		switch {
		case x.Mark > 0 && x.Most:
			mark = "at most " + thousands(x.Mark)
		case x.Mark > 0:
			mark = "at least " + thousands(x.Mark)
		}
		ratios = append(ratios, []string{x.What, thousands(x.Is), mark})
	}
	return []texttable.Sheet{{
		Header: []string{"bridge", "envs", "env steps/s", "calls/s", "p50 µs", "p90 µs", "p99 µs", "client µs", "server µs",
			"bytes"},
		Rows: rows, Left: 1, Least: []string{"bytes", "server µs", "client µs", "p90 µs", "p50 µs", "calls/s"},
		Below: "p50, p90, p99: of one call of step. client, server: processor time per env step. bytes: both ways per env " +
			"step.\n",
	}, {Header: []string{"compared", "is", "mark"}, Rows: ratios, Left: 1}}
}
