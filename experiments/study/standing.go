package study

import (
	"encoding/json"
	"path/filepath"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
)

// planFile is the file in the folder that says what is run there, so that others can show how it stands.
const planFile = "plan.json"

// planned is the contents of planFile.
type planned struct {
	Study   string  `json:"study"`
	Quick   bool    `json:"quick"`
	Data    string  `json:"data,omitempty"`
	Seeds   int     `json:"seeds,omitempty"`
	Agents  []Agent `json:"agents,omitempty"`
	Changes Changes `json:"changes"`
	Only    string  `json:"only,omitempty"`
}

// writePlan writes planFile.
func writePlan(s *Study, opt *Options) error {
	p := &opt.Plan
	b, err := json.MarshalIndent(planned{s.Name, p.Quick, p.Data, p.Seeds, p.Agents, p.Changes, opt.Only}, "", " ")
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(opt.Dir, planFile), append(b, '\n'))
}

// Progress is how an experiment stands, which may be going on.
type Progress struct {
	Name, Title string
	Facts       [][2]string
	Cells       []CellState
	Sheets      []Sheet // of the cells that are done
}

// CellState is a cell and whether its rows are kept.
type CellState struct {
	Key  string
	Done bool
	Wall float64 // seconds that it took, 0 = not done
}

// Sheet is a table as text. The first Left columns are labels.
type Sheet struct {
	Title  string
	Header []string
	Lines  [][]string
	Left   int
	Notes  []string
}

// NameIn returns the name of the experiment in a folder, "" if there is none.
func NameIn(dir string) string {
	var p planned
	b, err := ordinary.Read(filepath.Join(dir, planFile), ordinary.Document)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return ""
	}
	return p.Study
}

// ProgressOf returns how the experiment s stands in a folder. It reads what is kept and changes nothing.
func ProgressOf(s Study, dir string) (*Progress, error) {
	b, err := ordinary.Read(filepath.Join(dir, planFile), ordinary.Document)
	if err != nil {
		return nil, fault.Mistakef("%s holds no experiment that says what it runs: %w", dir, err)
	}
	var p planned
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fault.Mistakef("%s: %w", filepath.Join(dir, planFile), err)
	}
	opt := Options{Dir: dir, Only: p.Only,
		Plan: Plan{Quick: p.Quick, Data: p.Data, Seeds: p.Seeds, Workers: 1, Agents: p.Agents, Changes: p.Changes,
			heard: new(heard)}}
	cells, err := s.Cells(opt.Plan)
	if err != nil {
		return nil, err
	}
	if err := s.check(cells, opt.Plan); err != nil {
		return nil, err
	}
	at, err := places(s.Name, dir, cells)
	if err != nil {
		return nil, err
	}
	out := &Progress{Name: s.Name, Title: s.Title}
	var rows []Row
	missing := 0
	for i := range cells {
		own, _, ok, err := at[i].read()
		c := CellState{Key: cells[i].Key, Done: ok && err == nil}
		if c.Done {
			rows = append(rows, own...)
			c.Wall = at[i].wall()
		} else {
			missing++
		}
		out.Cells = append(out.Cells, c)
	}
	res, err := aggregate(rows, s.Tables(opt.Plan))
	if err != nil {
		return nil, err
	}
	r, err := newReport(&s, &opt, res, len(cells), missing)
	if err != nil {
		return nil, err
	}
	out.Facts = r.facts()
	for i := range res.tables {
		t := r.sheet(&res.tables[i], true)
		if len(t.lines) > 0 {
			out.Sheets = append(out.Sheets, Sheet{t.title, t.header, t.lines, t.left, res.tables[i].Notes})
		}
	}
	return out, nil
}

// wall returns how many seconds the cell took, 0 if that is not known.
func (p *place) wall() float64 {
	var k struct {
		Timing struct {
			Wall float64 `json:"wall_s"`
		} `json:"timing"`
	}
	b, err := ordinary.Read(p.file, ordinary.Document)
	if err != nil || json.Unmarshal(b, &k) != nil {
		return 0
	}
	return k.Timing.Wall
}
