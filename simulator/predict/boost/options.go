package boost

import (
	"fmt"
	"math"

	"clustergym/internal/fault"
)

// Bounds of a model. They keep the memory of a fit, and of a model read from a file, within reason.
const (
	maxFeatures = 1024
	maxLevels   = 256
	maxName     = 256 // bytes
	maxTrees    = 10_000
	maxLeaves   = 1024
	maxBins     = 255   // one of the 256 values of a byte is left for cells without a value
	maxTarget   = 1e300 // differences stay finite
)

// Options are the settings of Fit. They have the meaning of LightGBM's parameters, whose names the comments give.
type Options struct {
	Trees       int     `yaml:"trees"`        // of each level at most (num_iterations)
	Leaves      int     `yaml:"leaves"`       // of a tree at most (num_leaves)
	Bins        int     `yaml:"bins"`         // of a feature at most, besides the one of rows without a value (max_bin)
	MinLeaf     int     `yaml:"min_leaf"`     // rows of a leaf at least (min_data_in_leaf)
	Rate        float64 `yaml:"rate"`         // share of a leaf's value that is added to the prediction (learning_rate)
	L2          float64 `yaml:"l2"`           // added to the rows of a leaf where gains are computed (lambda_l2)
	RowShare    float64 `yaml:"row_share"`    // of the rows, drawn anew for each tree (bagging_fraction, bagging_freq = 1)
	ColumnShare float64 `yaml:"column_share"` // of the features, drawn anew for each tree (feature_fraction)
	Seed        uint64  `yaml:"seed"`         // of these draws
}

// DefaultOptions returns the defaults of LightGBM.
func DefaultOptions() Options {
	return Options{Trees: 100, Leaves: 31, Bins: maxBins, MinLeaf: 20, Rate: 0.1, RowShare: 1, ColumnShare: 1}
}

// Validate reports all faults of o at once.
func (o Options) Validate() error {
	var l fault.List
	count := func(key string, v, low, high int) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	share := func(key string, v float64) {
		l.Add(v > 0 && v <= 1, key, v, "a number in (0, 1]")
	}
	count("trees", o.Trees, 1, maxTrees)
	count("leaves", o.Leaves, 2, maxLeaves)
	count("bins", o.Bins, 2, maxBins)
	count("min_leaf", o.MinLeaf, 1, 1<<30)
	share("rate", o.Rate)
	l.Add(o.L2 >= 0 && o.L2 <= 1e9, "l2", o.L2, "a number in [0, 1e+09]")
	share("row_share", o.RowShare)
	share("column_share", o.ColumnShare)
	return l.Err()
}

// checkNames returns what is wrong with the names of features.
func checkNames(names []string) error {
	if len(names) < 1 || len(names) > maxFeatures {
		return fmt.Errorf("%d features, want 1 to %d", len(names), maxFeatures)
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		switch {
		case name == "" || len(name) > maxName:
			return fmt.Errorf("the name of feature %d has %d bytes, want 1 to %d", i, len(name), maxName)
		case seen[name]:
			return fmt.Errorf("two features have the name %q", name)
		}
		seen[name] = true
	}
	return nil
}

// checkLevels returns what is wrong with the levels of quantiles.
func checkLevels(levels []float64) error {
	if len(levels) < 1 || len(levels) > maxLevels {
		return fmt.Errorf("%d levels, want 1 to %d", len(levels), maxLevels)
	}
	below := 0.0
	for i, level := range levels {
		if !(level > below && level < 1) {
			return fmt.Errorf("level %d is %v, want ascending levels between 0 and 1", i, level)
		}
		below = level
	}
	return nil
}

// checkTable returns what is wrong with the rows and targets of a fit.
func checkTable(features int, rows []float32, target []float64) error {
	if n := len(target); n < 1 || n > math.MaxInt32 || len(rows) != n*features {
		return fmt.Errorf("%d values of %d features for %d targets, want a row of values for each target", len(rows),
			features, n)
	}
	for i, x := range target {
		if !(math.Abs(x) <= maxTarget) {
			return fmt.Errorf("target %d is %v, want a finite number", i, x)
		}
	}
	return nil
}
