package study

import (
	"context"
	"fmt"
	"testing"
)

// How an experiment stands can be seen while it goes on, with the tables of the cells that are done.
func TestAnExperimentIsShownAsItStands(t *testing.T) {
	dir := t.TempDir()
	s := Study{Name: "toy", Title: "A toy", Cite: "nobody"}
	var seen []string
	s.Cells = func(p Plan) (cells []Cell, err error) {
		for i := range 3 {
			cells = append(cells, Cell{Key: fmt.Sprintf("cell/%d", i), Input: i,
				Run: func(context.Context, *Bench) ([]Row, error) {
					st, err := ProgressOf(s, dir)
					if err != nil {
						return nil, err
					}
					done := 0
					for _, c := range st.Cells {
						if c.Done {
							done++
						}
					}
					rows := 0
					for _, t := range st.Sheets {
						rows += len(t.Lines)
					}
					seen = append(seen, fmt.Sprintf("%d of %d cells, %d rows", done, len(st.Cells), rows))
					return []Row{{"t", map[string]string{"policy": fmt.Sprint("p", i)}, "m", float64(i)}}, nil
				}})
		}
		return cells, nil
	}
	s.Tables = func(Plan) []Table {
		return []Table{{Name: "t", Title: "T", By: []string{"policy"}, Columns: []Column{{Title: "m", Metric: "m"}}}}
	}
	if _, err := Run(t.Context(), s, Options{Dir: dir, Plan: Plan{Workers: 1}}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(seen); got != "[0 of 3 cells, 0 rows 1 of 3 cells, 1 rows 2 of 3 cells, 2 rows]" {
		t.Errorf("seen %s", got)
	}
	if NameIn(dir) != "toy" || NameIn(t.TempDir()) != "" {
		t.Error("the folder does not say what is run there")
	}
	if _, err := ProgressOf(s, t.TempDir()); err == nil {
		t.Error("a folder without an experiment stands somewhere")
	}
}
