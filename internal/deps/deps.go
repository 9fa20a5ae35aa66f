// Package deps keeps in go.mod the libraries that no other package imports yet.
package deps

import (
	_ "github.com/jedib0t/go-pretty/v6/table"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "go.yaml.in/yaml/v3"
	_ "go4.org/unsafe/assume-no-moving-gc"
	_ "golang.org/x/exp/constraints"
	_ "golang.org/x/term"
	_ "gorgonia.org/gorgonia"
	_ "gorgonia.org/tensor"
	_ "pgregory.net/rapid"
)
