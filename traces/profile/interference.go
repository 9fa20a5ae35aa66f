package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// Interference says how much throughput jobs keep beside each other, by the names of their models. It does not change
// after creation; its methods are safe for concurrent use and allocate nothing.
type Interference struct {
	index  map[string]int32 // index of a name in kept
	n      int              // names
	kept   []float64        // [victim*n + other], 0 = not known
	seed   uint64
	seeded bool
}

// anyModel stands for every model in an interference file.
const anyModel = "*"

// Kept returns the part of its throughput, in (0, 1], that victim keeps beside other, or 1 if it is not known. A job's
// name is that of its profile, or else Model. An unknown name that ends in parentheses is looked up without them.
func (x *Interference) Kept(victim, other *traces.Job) float64 {
	if x.seeded {
		v, o := modelName(victim), modelName(other)
		if v == "" || o == "" {
			return 1
		}
		return seededKept(rng.At(x.seed, interferenceKey, rng.Hash(v), rng.Hash(o)))
	}
	v, o := x.find(victim), x.find(other)
	if v < 0 || o < 0 {
		return 1
	}
	if k := x.kept[int(v)*x.n+int(o)]; k > 0 {
		return k
	}
	return 1
}

func modelName(j *traces.Job) string {
	if j.Profile != nil && j.Profile.Name != "" {
		return j.Profile.Name
	}
	return j.Model
}

// find returns the index of a job's name, or -1.
func (x *Interference) find(j *traces.Job) int32 {
	if j.Profile != nil {
		if i, ok := x.lookup(j.Profile.Name); ok {
			return i
		}
	}
	if i, ok := x.lookup(j.Model); ok {
		return i
	}
	if i, ok := x.index[anyModel]; ok {
		return i
	}
	return -1
}

func (x *Interference) lookup(name string) (int32, bool) {
	i, ok := x.index[name]
	if !ok {
		i, ok = x.index[baseOf(name)]
	}
	return i, ok && name != anyModel
}

// Interference returns what the table measured for models that share a GPU, see Kept. It is an error if the table has
// no such measurements, or too many models for a square table.
func (t *Table) Interference() (*Interference, error) {
	if len(t.kept) == 0 {
		return nil,
			errors.New("the table has no co-locations, want one of Gavel or Lucid, or a file with the columns " +
				strings.Join(interferenceColumns, ","))
	}
	names := t.Models()
	for _, m := range t.models {
		names = append(names, m.base)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxNames {
		return nil, fmt.Errorf("got %d names of models, want at most %d", len(names), maxNames)
	}
	x := newInterference(names)
	for v, i := range x.index { // pairs are independent, so order does not matter
		for o, k := range x.index {
			x.kept[int(i)*x.n+int(k)], _ = t.Kept(v, o)
		}
	}
	return x, nil
}

// newInterference returns an Interference for names, which must be distinct, without any measurement.
func newInterference(names []string) *Interference {
	n := len(names)
	x := &Interference{index: make(map[string]int32, n), n: n, kept: make([]float64, n*n)}
	for i, name := range names {
		x.index[name] = int32(i)
	}
	return x
}

// interferenceColumns are the columns of an interference file.
var interferenceColumns = []string{"model", "other", "kept"}

// maxNames bounds the square table of an interference file.
const maxNames = 4096

// ReadInterference reads a CSV file with the columns model, other and kept: what model keeps of its throughput beside
// other, in (0, 1]. "*" stands for every model. If several rows match a pair, the row that names both goes first, then
// the row that names model, then the row that names other. Pairs without a row keep everything. Names that contain
// commas must be quoted. file is the name used in messages.
func ReadInterference(r io.Reader, file string) (*Interference, error) {
	d, err := newRows(r, file, interferenceColumns...)
	if err != nil {
		return nil, err
	}
	type row struct{ model, other string }
	kept := map[row]float64{}
	names := []string{anyModel}
	seen := map[string]bool{anyModel: true}
	for d.next() {
		k := row{d.name("model"), d.name("other")}
		v, ok := measure(d.cell("kept"))
		if !ok || v == 0 || v > 1 {
			d.fail("kept", "a number in (0, 1]")
		}
		if kept[k] != 0 {
			d.fail("other", "each pair of model and other once")
		}
		kept[k] = v
		for _, name := range [...]string{k.model, k.other} {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		if len(names) > maxNames {
			d.fail("model", fmt.Sprintf("at most %d different models", maxNames-1))
		}
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, &traces.RowError{File: file, Line: d.Line(), Value: "no rows", Want: "at least one pair of models"}
	}
	x := newInterference(names)
	for v, i := range x.index { // pairs are independent, so order does not matter
		for o, k := range x.index {
			for _, r := range [...]row{{v, o}, {v, anyModel}, {anyModel, o}, {anyModel, anyModel}} {
				if at := &x.kept[int(i)*x.n+int(k)]; *at == 0 {
					*at = kept[r]
				}
			}
		}
	}
	return x, nil
}

// Seeded returns a random interference: for each ordered pair of names, what the first model keeps is drawn from seed
// and the two names alone. The distribution is that of DeepShare's measurements of jobs that share a network (36 by 36
// configurations; the figures are computed from its published table): 0.123 to 1, mean 0.789, 65 % of the pairs below
// 0.9.
func Seeded(seed uint64) *Interference {
	return &Interference{seed: seed, seeded: true}
}

var interferenceKey = rng.Hash("traces/profile/interference")

// seededKept maps random bits to a share kept. The upper 35 % are uniform from 0.9 to 1, with mean 0.95. The others
// are 0.123 + 0.777 u^a, whose mean is 0.123 + 0.777/(1+a); it must be (0.789 - 0.35 · 0.95)/0.65 = 0.7023, which
// gives a.
func seededKept(bits uint64) float64 {
	const low, edge, below, mean = 0.123, 0.9, 0.65, 0.789
	const a = (edge-low)/((mean-(1-below)*(1+edge)/2)/below-low) - 1
	u := rng.Uniform(bits)
	if u < below {
		return low + (edge-low)*math.Pow(u/below, a)
	}
	return edge + (1-edge)*(u-below)/(1-below)
}

// LoadInterference reads what spec names: "seeded:<seed>" for Seeded, else the path of a file for ReadInterference, or
// of a table for LoadIn that has co-locations (Gavel, Lucid). from opens files.
func LoadInterference(ctx context.Context, from *traces.Files, spec string) (*Interference, error) {
	if s, ok := strings.CutPrefix(spec, "seeded:"); ok {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("interference: got %q, want seeded:<seed> with a whole number from 0 to %d", spec,
				uint64(math.MaxUint64))
		}
		return Seeded(seed), nil
	}
	open := func(path string) (io.ReadCloser, error) { return from.Open(ctx, path) }
	files, err := tableFiles(ctx, from, spec)
	if err != nil {
		return nil, err
	}
	if len(files) == 1 {
		data, err := readAll(files[0], open)
		if err != nil {
			return nil, err
		}
		if isInterference(data) {
			return ReadInterference(bytes.NewReader(data), files[0])
		}
	}
	t, err := load(spec, files, open, from.Abs)
	if err != nil {
		return nil, fmt.Errorf("interference: got neither a file with the columns %s nor a table: %w",
			strings.Join(interferenceColumns, ","), err)
	}
	x, err := t.Interference()
	if err != nil {
		return nil, fmt.Errorf("interference %s: %w", spec, err)
	}
	return x, nil
}

// isInterference reports whether the header has at least two of the three columns; a fault then names the missing one.
func isInterference(data []byte) bool {
	d, err := newRows(bytes.NewReader(data), "")
	if err != nil {
		return false
	}
	n := 0
	for _, c := range interferenceColumns {
		if slices.Contains(d.Columns(), c) {
			n++
		}
	}
	return n >= 2
}
