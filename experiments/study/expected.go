package study

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Deviation describes how the figures of a run differ from those recorded in expected.csv.
type Deviation struct {
	Commit  string      `json:"commit"`            // of the program that made the recorded figures
	Figures int         `json:"figures"`           // number of figures compared
	Equal   int         `json:"equal"`             // equal to nine digits
	Inside  int         `json:"inside"`            // not equal, but inside the recorded interval
	Missing []string    `json:"missing,omitempty"` // recorded figures that the run does not have
	Others  []Deviating `json:"others,omitempty"`  // outside, the farthest first
	Skipped string      `json:"skipped,omitempty"` // why nothing was compared
}

// Deviating is a figure outside its recorded interval.
type Deviating struct {
	Figure   string  `json:"figure"`
	Value    float64 `json:"value"`
	Expected float64 `json:"expected"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// nine is the relative difference up to which figures count as equal.
const nine = 1e-9

// ExpectedCSV returns expected.csv, unpacked; it is empty if the study has no such file.
func (s *Study) ExpectedCSV() ([]byte, error) {
	if !bytes.HasPrefix(s.Expected, zstdMagic) {
		return s.Expected, nil
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	text, err := z.DecodeAll(s.Expected, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: expected.csv.zst: %w", s.Name, err)
	}
	return text, nil
}

// zstdMagic begins every zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// recorded returns the rows of expected.csv without the header, nil if the study has no such file.
func (s *Study) recorded() ([][]string, error) {
	text, err := s.ExpectedCSV()
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: expected.csv: %w", s.Name, err)
	}
	if !slices.Equal(rows[0], resultsHeader) {
		return nil, fmt.Errorf("%s: expected.csv: its header is %q, want %q", s.Name, rows[0], resultsHeader)
	}
	return rows[1:], nil
}

// deviate compares the report with the rows of expected.csv that are labelled with its form. A run with recorded
// workloads is compared with the rows labelled "--data" too, which count first. It returns nil if the study has no
// expected.csv.
func (r *Report) deviate() (*Deviation, error) {
	rows, err := r.Study.recorded()
	if rows == nil {
		return nil, err
	}
	d := &Deviation{}
	if r.Plan.Seeds > 0 {
		d.Skipped = "--seeds was given"
		return d, nil
	}
	if n := len(r.Plan.changed()); n > 0 {
		d.Skipped = "settings are changed (above)"
		return d, nil
	}
	now := map[string]Value{}
	r.each(func(t *Table, l *Line, c *Column, v Value) {
		now[strings.Join([]string{t.Name, t.label(l.Labels), c.Title}, ", ")] = v
	})
	// A figure that was recorded with --data is not the one without.
	label, figureOf := r.Plan.label(), func(row []string) string { return strings.Join(row[1:4], ", ") }
	own := map[string]bool{}
	for _, row := range rows {
		own[figureOf(row)] = own[figureOf(row)] || row[0] == label
	}
	for i, row := range rows {
		if row[0] != label && (row[0] != r.Plan.Mode() || own[figureOf(row)]) {
			continue
		}
		want, err := strconv.ParseFloat(row[6], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: expected.csv:%d: value %q, want a number", r.Study.Name, i+2, row[6])
		}
		low, high := number0(row[7], want), number0(row[8], want)
		figure := figureOf(row)
		v, ok := now[figure]
		if !ok {
			if r.Missing == 0 {
				d.Missing = append(d.Missing, figure)
			}
			continue
		}
		d.Figures++
		d.Commit = row[12]
		switch {
		case v.Value == want || math.Abs(v.Value-want) <= nine*math.Max(math.Abs(want), 1e-9):
			d.Equal++
		case v.Value >= low && v.Value <= high:
			d.Inside++
		default:
			d.Others = append(d.Others, Deviating{figure, v.Value, want, low, high})
		}
	}
	slices.SortStableFunc(d.Others, func(a, b Deviating) int { return cmp.Compare(b.far(), a.far()) })
	return d, nil
}

// far returns the distance from the expected value as a share of it.
func (d *Deviating) far() float64 {
	return math.Abs(d.Value-d.Expected) / math.Max(math.Abs(d.Expected), 1e-9)
}

// number0 returns the number s, or or if s is not a number.
func number0(s string, or float64) float64 {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v
	}
	return or
}

// String describes the deviation in words. It returns "" for nil, and if there was nothing to compare.
func (d *Deviation) String() string {
	if d == nil {
		return ""
	}
	if d.Skipped != "" {
		return fmt.Sprintf("Not compared with expected.csv: %s.\n", d.Skipped)
	}
	if d.Figures == 0 && len(d.Missing) == 0 {
		return ""
	}
	var b strings.Builder
	at := ""
	if d.Commit != "" {
		at = " of commit " + d.Commit[:min(9, len(d.Commit))]
	}
	fmt.Fprintf(&b, "Beside expected.csv%s: of %d figures %d are equal, %d inside the interval written down, %d outside",
		at, d.Figures, d.Equal, d.Inside, len(d.Others))
	if len(d.Missing) > 0 {
		fmt.Fprintf(&b, "; %d are missing, such as %s", len(d.Missing), d.Missing[0])
	}
	b.WriteString(".\n")
	const most = 10
	for _, o := range d.Others[:min(most, len(d.Others))] {
		fmt.Fprintf(&b, "  %s: %s, expected %s [%s, %s]\n", o.Figure, digits(o.Value), digits(o.Expected), digits(o.Low),
			digits(o.High))
	}
	if len(d.Others) > most {
		fmt.Fprintf(&b, "  and %d more\n", len(d.Others)-most)
	}
	return b.String()
}
