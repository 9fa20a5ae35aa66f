package speed

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the program of the peer
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"clustergym/distributed/ranks"
	"clustergym/internal/texttable"
)

// RanksRow is how long processes on this machine take to sum a vector of float32, over loopback: the best of three
// rounds.
type RanksRow struct {
	Ranks  int     `json:"ranks"`
	Floats int     `json:"floats"`
	P50    float64 `json:"p50_us"`
	P90    float64 `json:"p90_us"`
	// GlooP50 and GlooP90 are of torch.distributed's gloo, measured by turns with ours; 0 if the Python has no PyTorch.
	GlooP50 float64 `json:"gloo_p50_us,omitempty"`
	GlooP90 float64 `json:"gloo_p90_us,omitempty"`
}

// ratio is ours over gloo's, 0 without gloo.
func (r *RanksRow) ratio() float64 {
	if r.GlooP50 == 0 {
		return 0
	}
	return r.P50 / r.GlooP50
}

//go:embed ranks.py
var glooProgram []byte

// rankSizes are the vectors that are summed, and how often.
func rankSizes(quick bool) (sizes [][2]int) {
	sizes = [][2]int{{10, 1000}, {10_000, 1000}, {100_000, 200}, {1_000_000, 100}}
	if quick {
		for i := range sizes {
			sizes[i][1] /= 10
		}
	}
	return sizes
}

// sumTimes is what a rank 0 prints for a size.
type sumTimes struct {
	Floats  int     `json:"floats"`
	P50     float64 `json:"p50_us"`
	P90     float64 `json:"p90_us"`
	Version string  `json:"version"`
}

// Rank is the process of a rank that is measured: it sums vectors with the others and, as rank 0, writes their address,
// then how long it took.
func Rank(ctx context.Context, rank, world int, rendezvous string, quick bool, now func() time.Time,
	w io.Writer) error {
	cfg := ranks.DefaultConfig()
	cfg.Rank, cfg.World, cfg.Rendezvous = rank, world, rendezvous
	cfg.Listening = func(addr string) error {
		_, err := fmt.Fprintln(w, addr)
		return err
	}
	g, err := ranks.Join(ctx, cfg)
	if err != nil {
		return err
	}
	err = sums(g, quick, now, w)
	g.Close(err)
	return err
}

func sums(g *ranks.Group, quick bool, now func() time.Time, w io.Writer) error {
	for _, s := range rankSizes(quick) {
		x, took := make([]float32, s[0]), make([]float64, s[1])
		few := make([]float64, 6) // as a gradient has
		for i := range x {
			x[i] = 1e-3 * float32(g.Rank()+1)
		}
		shrink := func() {
			for i := range x {
				x[i] *= 1 / float32(g.World())
			}
		}
		for range max(5, s[1]/10) {
			if err := g.Sum(g.Rank(), x, few); err != nil {
				return err
			}
			shrink()
		}
		for i := range took {
			begin := now()
			if err := g.Sum(g.Rank(), x, few); err != nil {
				return err
			}
			took[i] = float64(now().Sub(begin).Nanoseconds()) / 1e3
			shrink()
		}
		if g.Rank() > 0 {
			continue
		}
		slices.Sort(took)
		if err := json.NewEncoder(w).Encode(sumTimes{Floats: s[0], P50: took[len(took)/2], P90: took[len(took)*9/10]}); err !=
			nil {
			return err
		}
	}
	_, err := g.Any(false)
	return err
}

// ranks measures sums over processes, ours and gloo's by turns.
func (b *bench) ranks(ctx context.Context) error {
	worlds := []int{2, 4, 8}
	gloo := exec.CommandContext(ctx, b.cfg.Python, "-c", "import torch.distributed").Run() == nil //nolint:gosec // the caller's Python
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !gloo {
		b.say(fmt.Sprintf("ranks: %s has no PyTorch, so there is no gloo to compare with (--python)", b.cfg.Python))
	}
	dir, err := os.MkdirTemp("", "gymctl-bench-ranks-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a script
	script := filepath.Join(dir, "ranks.py")
	if err := os.WriteFile(script, glooProgram, 0o600); err != nil {
		return err
	}
	for _, world := range worlds {
		rows := make([]RanksRow, 0, 4)
		for _, s := range rankSizes(b.cfg.Quick) {
			rows = append(rows, RanksRow{Ranks: world, Floats: s[0]})
		}
		for round := range rounds {
			b.say(fmt.Sprintf("ranks: %d, round %d of %d", world, round+1, rounds))
			list, err := b.ourRanks(ctx, world)
			if err != nil {
				return err
			}
			for i := range rows {
				better(&rows[i].P50, &rows[i].P90, list[i])
			}
			if !gloo {
				continue
			}
			if list, err = b.glooRanks(ctx, script, world); err != nil {
				return err
			}
			for i := range rows {
				better(&rows[i].GlooP50, &rows[i].GlooP90, list[i])
			}
		}
		b.report.Ranks = append(b.report.Ranks, rows...)
	}
	return nil
}

// better keeps the round with the lower median.
func better(p50, p90 *float64, t sumTimes) {
	if *p50 == 0 || t.P50 < *p50 {
		*p50, *p90 = t.P50, t.P90
	}
}

// ourRanks starts a group of this program and returns its times by size.
func (b *bench) ourRanks(ctx context.Context, world int) ([]sumTimes, error) {
	if b.hooks.Rank == nil {
		return nil, errors.New("bench: ranks need a program to start")
	}
	at := "127.0.0.1:0"
	return b.group(world, func(k int) *exec.Cmd { return b.hooks.Rank(ctx, k, world, at, b.cfg.Quick) },
		func(line string) { at = line })
}

// glooRanks is ourRanks with gloo.
func (b *bench) glooRanks(ctx context.Context, script string, world int) ([]sumTimes, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return nil, err
	}
	var work []string
	for _, s := range rankSizes(b.cfg.Quick) {
		work = append(work, fmt.Sprintf("%dx%d", s[0], s[1]))
	}
	return b.group(world, func(k int) *exec.Cmd {
		c := exec.CommandContext(ctx, b.cfg.Python, script, strconv.Itoa(k), strconv.Itoa(world), port, strings.Join(work, ",")) //nolint:gosec // the caller's Python
		return c
	}, nil)
}

// group starts a process for every rank and returns what rank 0 prints. If first is not nil, the others start once it
// was given rank 0's first line.
func (b *bench) group(world int, start func(k int) *exec.Cmd, first func(line string)) (list []sumTimes, err error) {
	var (
		all   sync.WaitGroup
		procs []*exec.Cmd
		said  = make([]bytes.Buffer, world)
		errs  = make([]error, world)
	)
	defer func() {
		if err != nil {
			for _, p := range procs {
				_ = p.Process.Kill() // those that still run
			}
		}
		all.Wait()
		if err == nil {
			return
		}
		for k := range errs {
			if errs[k] != nil && said[k].Len() > 0 {
				err = fmt.Errorf("%w; rank %d: %s", err, k, lastLine(said[k].String()))
				return
			}
		}
	}()
	var out *bufio.Reader
	for k := range world {
		c := start(k)
		c.Stderr = &said[k]
		if k == 0 {
			pipe, err := c.StdoutPipe()
			if err != nil {
				return nil, err
			}
			out = bufio.NewReader(pipe)
		}
		if err := c.Start(); err != nil {
			return nil, err
		}
		procs = append(procs, c)
		if k > 0 {
			all.Go(func() { errs[k] = c.Wait() })
		} else if first != nil {
			line, err := out.ReadString('\n')
			if err != nil {
				all.Go(func() { errs[0] = c.Wait() })
				return nil, fmt.Errorf("rank 0 does not begin: %w", err)
			}
			first(strings.TrimSpace(line))
		}
	}
	for d := json.NewDecoder(out); ; {
		var t sumTimes
		if err = d.Decode(&t); err != nil {
			break
		}
		if t.Version != "" {
			b.report.Torch = t.Version
			continue
		}
		list = append(list, t)
	}
	all.Go(func() { errs[0] = procs[0].Wait() })
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(list) != len(rankSizes(b.cfg.Quick)) {
		return nil, fmt.Errorf("rank 0 measured %d sizes of %d", len(list), len(rankSizes(b.cfg.Quick)))
	}
	return list, nil
}

// ranksSheet is the table of sums over ranks.
func (r *Report) ranksSheet() texttable.Sheet {
	var rows [][]string
	cell := func(v float64) string {
		if v == 0 || math.IsNaN(v) {
			return ""
		}
		return thousands(v)
	}
	for i := range r.Ranks {
		x := &r.Ranks[i]
		ratio := ""
		if q := x.ratio(); q > 0 {
			ratio = fmt.Sprintf("%.2f", q)
		}
		rows = append(rows, []string{
			strconv.Itoa(x.Ranks), thousands(float64(x.Floats)), cell(x.P50), cell(x.P90), cell(x.GlooP50), cell(x.GlooP90),
			ratio,
		})
	}
	with := ""
	if r.Torch != "" {
		with = ", beside all_reduce of gloo in PyTorch " + r.Torch + " in the same minutes"
	}
	return texttable.Sheet{
		Header: []string{"ranks", "float32", "p50 µs", "p90 µs", "gloo p50 µs", "gloo p90 µs", "p50 over gloo's"}, Rows: rows,
		Below: fmt.Sprintf("One sum over processes on this machine, over loopback%s; the best of %d rounds. Mark: at most "+
			"1.00 of "+
			"gloo's.\n", with, rounds),
	}
}
