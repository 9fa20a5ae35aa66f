package workload

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/experiments/catalog"
	"clustergym/traces"
	"clustergym/traces/acme"
	"clustergym/traces/csv"
	"clustergym/traces/dlrm"
	"clustergym/traces/openb"
	"clustergym/traces/philly"
	"clustergym/traces/profile"
	"clustergym/traces/tiresias"
)

// pageOfTraces is docs/traces.md.
func pageOfTraces(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "traces.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sectionsOfFormats are the sections on formats, by name.
func sectionsOfFormats(t *testing.T) map[string]string {
	t.Helper()
	_, formats, ok := strings.Cut(pageOfTraces(t), "\n## Formats\n")
	formats, _, end := strings.Cut(formats, "\n## ")
	if !ok || !end {
		t.Fatal("docs/traces.md has no part on formats")
	}
	sections := map[string]string{}
	for _, s := range strings.Split(formats, "\n### `")[1:] {
		name, text, _ := strings.Cut(s, "`\n")
		sections[name] = text
	}
	return sections
}

// docs/traces.md has a section on every format, and no other, which tells by what it is known, its columns, and why rows
// are left out.
func TestThePageOfTracesHasEveryFormat(t *testing.T) {
	page, sections := pageOfTraces(t), sectionsOfFormats(t)
	for name := range sections {
		if format(name) == nil {
			t.Errorf("there is a section on %s, which is no format", name)
		}
	}
	plain := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "")), " ") }
	for _, f := range Formats() {
		text := sections[f.Name]
		if !strings.Contains(page, "\n| `"+f.Name+"` | ") {
			t.Errorf("%s is not in the table of formats", f.Name)
		}
		if !strings.Contains(plain(text), "Known by "+plain(f.KnownBy)) {
			t.Errorf("the section on %s does not say: Known by %s", f.Name, f.KnownBy)
		}
		if f.Profiles != strings.Contains(text, "Run times are not in the file") {
			t.Errorf("the section on %s does not say whether run times are in the file: %v", f.Name, !f.Profiles)
		}
	}
	for _, c := range rows {
		text := sections[c.format]
		for _, column := range columnsOf(c.format, c.text) {
			if !strings.Contains(text, "`"+column+"`") {
				t.Errorf("the section on %s does not tell of %s", c.format, column)
			}
		}
		cfg := DefaultTraceConfig()
		cfg.File = file(t, "trace", c.text)
		tr, err := OpenUntimed(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := traces.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		for _, k := range tr.Info().Skipped {
			if !strings.Contains(plain(text), "*"+k.Reason) {
				t.Errorf("the section on %s does not tell that rows are left out: %s", c.format, k.Reason)
			}
		}
	}
	for name, reasons := range map[string][]string{
		"acme": {acme.NoRunTime}, "dlrm": {dlrm.Throughout, dlrm.Before, dlrm.After, dlrm.NoRunTime}, "gavel": {noRunTime}, "sia": {noRunTime},
		"openb": {openb.NeverPlaced, openb.NoRunTime}, "philly-attempts": {philly.NeverRan}, "tiresias": {tiresias.NoRunTime},
	} {
		for _, reason := range reasons {
			if !strings.Contains(plain(sections[name]), "*"+plain(reason)+"*") {
				t.Errorf("the section on %s does not tell that rows are left out: %s", name, reason)
			}
		}
	}
	for field := 1; field <= 18; field++ {
		if !strings.Contains(sections[FormatSWF], fmt.Sprintf("\n| %d | ", field)) {
			t.Errorf("field %d of a log is missing", field)
		}
	}
}

// columnsOf are the names in the header of a table, without those of GPU types, or the keys of a document.
func columnsOf(name, text string) []string {
	header, _, _ := strings.Cut(text, "\n")
	switch name {
	case FormatSWF, "gavel":
		return nil
	case "tpch":
		return []string{"edges", "spark_stage_id", "stages", "fresh_durations", "first_wave", "rest_wave"}
	case FormatCSV:
		var b bytes.Buffer
		if _, err := csv.Write(&b, &traces.Slice{}); err != nil { // the header has every column
			panic(err)
		}
		header = b.String()
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(header), ","), func(c string) bool { return c == "" })
}

var (
	getLine = regexp.MustCompile(`(?m)^gymctl trace get ((?:[a-z][a-z0-9-]* ?)+)`)
	getName = regexp.MustCompile(`get:([a-z][a-z0-9-]*)`)
)

// Every public trace that docs/traces.md names exists and is of the format of its section, and comes with the throughput
// table that it needs.
func TestThePageOfTracesNamesPublicTraces(t *testing.T) {
	public := catalog.Public()
	page := pageOfTraces(t)
	var named []string
	for _, m := range getLine.FindAllStringSubmatch(page, -1) {
		named = append(named, strings.Fields(m[1])...)
	}
	for _, m := range getName.FindAllStringSubmatch(page, -1) {
		named = append(named, m[1])
	}
	for _, name := range named {
		if _, err := public.Find(name); err != nil {
			t.Error(err)
		}
	}
	inCatalogue := map[string]bool{}
	for i := range public.Entries {
		e := &public.Entries[i]
		if e.Kind == catalog.KindTrace {
			inCatalogue[e.Format] = true
		}
		if e.Kind == catalog.KindProfiles && !strings.Contains(page, "`"+e.Name+"`") {
			t.Errorf("the table of throughput tables does not name %s", e.Name)
		}
	}
	for name, text := range sectionsOfFormats(t) {
		m := getLine.FindStringSubmatch(text)
		if m == nil {
			if inCatalogue[name] {
				t.Errorf("the section on %s does not say how to get one", name)
			}
			continue
		}
		e, err := public.Find(strings.Fields(m[1])[0])
		if err != nil {
			t.Error(err)
			continue
		}
		want := "\ngymctl trace stats get:" + e.Name
		if e.Profiles != "" {
			want += " --profiles get:" + e.Profiles + " --reference " + e.Reference
		}
		if e.Format != name || !strings.Contains(text, want) || !strings.Contains(m[1], e.Profiles) {
			t.Errorf("the section on %s names %s of format %s; want the command%s", name, e.Name, e.Format, want)
		}
	}
}

// The figures of mixes in docs/traces.md are those that are drawn from.
func TestThePageOfTracesHasTheFiguresOfMixes(t *testing.T) {
	page, rows := pageOfTraces(t), 0
	for _, name := range profile.Names() {
		m, err := profile.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("the table of mixes has no %s", name)
		}
		for i, v := range m.Models {
			compute, batches, weight, memory, skewed := fmt.Sprintf("%v ms", v.Ms), fmt.Sprint(v.Batch), 1.0, "–", ""
			if v.Ms == 0 {
				compute = fmt.Sprintf("%v GFLOPs", v.GFLOPs)
			}
			if v.Batch == 0 {
				batches = strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Batches), " ", ", "), "[]")
			}
			if m.Weights != nil {
				weight = m.Weights[i]
			}
			if v.MemMB > 0 {
				memory = fmt.Sprint(v.MemMB)
			}
			if v.Skewed {
				skewed = "yes"
			}
			row := fmt.Sprintf("\n| `%s` | %s | %v | %s | %s | %v | %s | %s |\n", name, v.Name, v.MB, compute, batches, weight, memory, skewed)
			if !strings.Contains(page, row) {
				t.Errorf("the table of models has no row%s", row)
			}
			rows++
		}
	}
	if n := len(regexp.MustCompile("(?m)^\\| `[a-z0-9-]+` \\|(?:[^|\n]*\\|){7}$").FindAllString(page, -1)); n != rows {
		t.Errorf("the table of models has %d rows, want %d", n, rows)
	}
}
