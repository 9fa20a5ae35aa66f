package boost

import (
	"context"
	"fmt"
	"math"

	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// Fit fits a model to rows, which hold a value for each of names, row after row; NaN = not known. target has a finite
// number for each row. levels ascend, between 0 and 1. The result is the same for any number of workers, and the
// ensemble of a level does not depend on the other levels. Fit keeps none of its arguments. Besides the model it needs
// a byte for each value, about 30 bytes a row for each worker, and histograms: 2 KB a feature for each worker and leaf
// that can be split.
func Fit(ctx context.Context, names []string, rows []float32, target, levels []float64, o Options,
	workers int) (*Model, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	for _, err := range []error{checkNames(names), checkLevels(levels), checkTable(len(names), rows, target)} {
		if err != nil {
			return nil, fmt.Errorf("boost: %w", err)
		}
	}
	t, err := newTable(ctx, rows, len(names), o.Bins, workers)
	if err != nil {
		return nil, err
	}
	m := &Model{
		names:  append([]string(nil), names...),
		levels: append([]float64(nil), levels...),
		gains:  make([]float64, len(names)),
		parts:  make([]ensemble, len(levels)),
	}
	gains := make([][]float64, len(levels))
	err = par.For(ctx, workers, len(levels), func(_, i int) error {
		f := newFit(t, target, levels[i], o)
		for k := range o.Trees {
			grown, err := f.addTree(ctx, k)
			if err != nil {
				return err
			}
			if !grown && o.RowShare == 1 && o.ColumnShare == 1 {
				break // nor would the next one grow
			}
		}
		m.parts[i], gains[i] = f.ensemble, f.gains
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, part := range gains {
		for k, g := range part {
			m.gains[t.columns[k].feature] += g
		}
	}
	return m, nil
}

// fit is the fit of one ensemble.
type fit struct {
	ensemble
	*table
	Options
	level    float64
	gains    []float64 // by column
	residual []float64 // target minus prediction, by row
	out      []int32   // rows that are not in the present tree's sample
	scratch  []float64
	grower   *grower
}

func newFit(t *table, target []float64, level float64, o Options) *fit {
	f := &fit{
		table: t, Options: o, level: level, gains: make([]float64, len(t.columns)),
		residual: make([]float64, t.rows), scratch: append([]float64(nil), target...), grower: newGrower(t, o, level),
	}
	f.start = quantile(f.scratch, level)
	for r, x := range target {
		f.residual[r] = x - f.start
	}
	return f
}

// addTree adds tree number k and reports whether there is a split that it can make.
func (f *fit) addTree(ctx context.Context, k int) (grown bool, err error) {
	f.draw(rng.At(f.Seed, uint64(k)))
	g := f.grower
	if err := g.grow(ctx); err != nil || len(g.splits) == 0 {
		return false, err
	}
	first, values := len(f.nodes), len(f.values)
	for _, s := range g.splits {
		c := &f.columns[s.column]
		f.gains[s.column] += s.gain
		n := node{threshold: c.bounds[s.bin], feature: uint16(c.feature), missing: s.missing, child: s.child}
		for side, i := range n.child {
			if i >= 0 {
				n.child[side] = i + int32(first)
			} else {
				n.child[side] = i - int32(values)
			}
		}
		f.nodes = append(f.nodes, n)
	}
	f.roots = append(f.roots, int32(first))
	for i := range g.leaves {
		f.values = append(f.values, f.renew(g.order[g.leaves[i].begin:g.leaves[i].end]))
	}
	for _, r := range f.out {
		f.residual[r] -= f.values[values+g.leafOf(int(r))]
	}
	return true, nil
}

// renew returns the value of a leaf with these rows and takes it from their residuals.
func (f *fit) renew(rows []entry) float64 {
	v := f.scratch[:len(rows)]
	for i, e := range rows {
		v[i] = f.residual[e.row()]
	}
	value := f.Rate * quantile(v, f.level)
	for _, e := range rows {
		f.residual[e.row()] -= value
	}
	return value
}

// draw chooses the rows and columns of the next tree. They are the same for all levels, whose ensembles cross less
// then.
func (f *fit) draw(seed uint64) {
	g := f.grower
	g.order, f.out = g.order[:0], f.out[:0]
	choose(f.rows, f.RowShare, seed, "boost/rows", func(r int, in bool) {
		if in {
			g.order = append(g.order, newEntry(r, f.residual[r] <= 0))
		} else {
			f.out = append(f.out, int32(r))
		}
	})
	g.chosen = g.chosen[:0]
	choose(len(f.columns), f.ColumnShare, seed, "boost/columns", func(k int, in bool) {
		if in {
			g.chosen = append(g.chosen, k)
		}
	})
}

// choose calls each for every i < n in order. in is true for a share of them, at least one, which the stream called
// name draws (Knuth, "The Art of Computer Programming" 2, algorithm S of section 3.4.2). A share of 1 draws nothing.
func choose(n int, share float64, seed uint64, name string, each func(i int, in bool)) {
	wanted := min(n, max(1, int(math.Round(share*float64(n)))))
	src := rng.Source(seed, name)
	for i := range n {
		in := wanted == n-i || wanted > 0 && rng.Uniform(src.Uint64())*float64(n-i) < float64(wanted)
		if in {
			wanted--
		}
		each(i, in)
	}
}
