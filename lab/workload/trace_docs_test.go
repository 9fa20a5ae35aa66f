package workload

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clustergym/lab/catalog"
	"clustergym/traces"
	"clustergym/traces/acme"
	"clustergym/traces/csv"
	"clustergym/traces/dlrm"
	"clustergym/traces/openb"
	"clustergym/traces/philly"
	"clustergym/traces/profile"
	"clustergym/traces/sacct"
	"clustergym/traces/tiresias"
)

// document returns a file of the repository's root or docs folder.
func document(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pagesOfFormats returns the pages in docs/reference/traces, by the name of the format.
func pagesOfFormats(t *testing.T) map[string]string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join("..", "..", "docs", "reference", "traces"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		pages[strings.TrimSuffix(f.Name(), ".md")] = document(t, "docs", "reference", "traces", f.Name())
	}
	return pages
}

// docs/reference/traces has one page for every format and no other page. A page says how the format is recognised, its
// columns, and the reasons for which rows are left out. docs/reference/traces.md has a table with links to all pages.
func TestEveryFormatHasAPage(t *testing.T) {
	page, pages := document(t, "docs", "reference", "traces.md"), pagesOfFormats(t)
	for name, text := range pages {
		if format(name) == nil {
			t.Errorf("docs/reference/traces/%s.md is not about a format", name)
		}
		if !strings.HasPrefix(text, "# `"+name+"`: ") {
			t.Errorf("docs/reference/traces/%s.md does not begin with the name of its format", name)
		}
	}
	plain := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "")), " ") }
	for _, f := range Formats() {
		text, ok := pages[f.Name]
		if !ok {
			t.Errorf("there is no docs/reference/traces/%s.md", f.Name)
			continue
		}
		if !strings.Contains(page, "\n| [`"+f.Name+"`](traces/"+f.Name+".md) | ") {
			t.Errorf("%s is not in the table of formats", f.Name)
		}
		if !strings.Contains(plain(text), "Known by "+plain(f.KnownBy)) {
			t.Errorf("the page of %s does not say: Known by %s", f.Name, f.KnownBy)
		}
		if f.Profiles != strings.Contains(text, "Run times are not in the file") {
			t.Errorf("the page of %s does not say whether run times are in the file: %v", f.Name, !f.Profiles)
		}
	}
	for _, c := range rows {
		text := pages[c.format]
		for _, column := range columnsOf(c.format, c.text) {
			if !strings.Contains(text, "`"+column+"`") {
				t.Errorf("the page of %s does not tell of %s", c.format, column)
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
				t.Errorf("the page of %s does not tell that rows are left out: %s", c.format, k.Reason)
			}
		}
	}
	for name, reasons := range map[string][]string{
		FormatCSV:   {csv.NeverStarted, csv.NotEnded, csv.NoDuration},
		formatSacct: {sacct.NeverStarted, sacct.NotEnded, sacct.NoRunTime, sacct.Duplicate},
		"acme":      {acme.NoRunTime}, "dlrm": {dlrm.Throughout, dlrm.Before, dlrm.After, dlrm.NoRunTime},
		"gavel": {noRunTime},
		"sia":   {noRunTime},
		"openb": {openb.NeverPlaced, openb.NoRunTime}, "philly-attempts": {philly.NeverRan}, "tiresias": {tiresias.NoRunTime},
	} {
		for _, reason := range reasons {
			if !strings.Contains(plain(pages[name]), "*"+plain(reason)+"*") {
				t.Errorf("the page of %s does not tell that rows are left out: %s", name, reason)
			}
		}
	}
	for field := 1; field <= 18; field++ {
		if !strings.Contains(pages[FormatSWF], fmt.Sprintf("\n| %d | ", field)) {
			t.Errorf("field %d of a log is missing", field)
		}
	}
}

// columnsOf returns the names in the header of a table, without those of GPU types, or the keys of a document.
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
	if name == formatSacct {
		header = strings.ReplaceAll(header, "|", ",")
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(header), ","), func(c string) bool { return c == "" })
}

var (
	getLine = regexp.MustCompile(`(?m)^gymctl trace get ((?:[a-z][a-z0-9-]* ?)+)`)
	ownLine = regexp.MustCompile(`(?m)^gymctl trace get slurm\b.*$`) // one's own cluster
	getName = regexp.MustCompile(`get:([a-z][a-z0-9-]*)`)
)

// Every public trace that the pages on traces name exists. A format's page fetches a trace of that format, with the
// throughput table that it needs.
func TestThePagesOfTracesNamePublicTraces(t *testing.T) {
	public := catalog.Public()
	pages, models := pagesOfFormats(t), document(t, "docs", "reference", "job-profiles.md")
	var named []string
	for _, page := range append(slices.Collect(maps.Values(pages)), models,
		document(t, "docs", "reference", "traces.md")) {
		for _, m := range getLine.FindAllStringSubmatch(ownLine.ReplaceAllString(page, ""), -1) {
			named = append(named, strings.Fields(m[1])...)
		}
		for _, m := range getName.FindAllStringSubmatch(page, -1) {
			named = append(named, m[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("the pages name %d files, want more", len(named))
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
		if e.Kind == catalog.KindProfiles && !strings.Contains(models, "`"+e.Name+"`") {
			t.Errorf("the table of throughput tables does not name %s", e.Name)
		}
	}
	for name, text := range pages {
		m := getLine.FindStringSubmatch(ownLine.ReplaceAllString(text, ""))
		if m == nil {
			if inCatalogue[name] {
				t.Errorf("the page of %s does not say how to get one", name)
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
			t.Errorf("the page of %s names %s of format %s; want the command%s", name, e.Name, e.Format, want)
		}
	}
}

// docs/reference/job-profiles.md has the figures from which mixes draw.
func TestThePageOfModelsHasTheFiguresOfMixes(t *testing.T) {
	page, rows := document(t, "docs", "reference", "job-profiles.md"), 0
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
			row := fmt.Sprintf("\n| `%s` | %s | %v | %s | %s | %v | %s | %s |\n", name, v.Name, v.MB, compute, batches, weight,
				memory, skewed)
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

var (
	formatCount = regexp.MustCompile(`(?i)(?:^|[^-a-z0-9])([a-z]+(?:-[a-z]+)?|[0-9]+) (?:public |trace )?formats\b`)
	numberWords = strings.Fields(
		"ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three")
	markdownLink = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
)

// Every document that states the number of formats states the number that gymctl trace formats lists.
func TestDocumentsAgreeOnTheNumberOfFormats(t *testing.T) {
	_, unreleased, ok := strings.Cut(document(t, "CHANGELOG.md"), "\n## ")
	if !ok {
		t.Fatal("the change log has no version")
	}
	unreleased, _, _ = strings.Cut(unreleased, "\n## ")
	for name, text := range map[string]string{"README.md": document(t, "README.md"),
		"docs/reference/traces.md": document(t, "docs", "reference", "traces.md"), "CHANGELOG.md": unreleased} {
		counts := 0
		for _, m := range formatCount.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if i := slices.Index(numberWords, strings.ToLower(m[1])); i >= 0 {
				n = 10 + i
			} else if err != nil {
				continue
			}
			counts++
			if n != len(Formats()) {
				t.Errorf("%s says %q; gymctl trace formats lists %d", name, m[0], len(Formats()))
			}
		}
		if counts == 0 && name != "CHANGELOG.md" {
			t.Errorf("%s does not say how many formats there are", name)
		}
	}
}

// The links between the pages on traces, models and clusters lead to files and headings.
func TestLinksOfThePagesOfTraces(t *testing.T) {
	anchors := func(text string) []string {
		var all []string
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			all = append(all, strings.ReplaceAll(strings.ToLower(strings.NewReplacer("`", "", ":", "").Replace(m[1])), " ", "-"))
		}
		return all
	}
	pages := []string{"docs/reference/traces.md", "docs/reference/job-profiles.md", "docs/reference/hardware.md"}
	for name := range pagesOfFormats(t) {
		pages = append(pages, "docs/reference/traces/"+name+".md")
	}
	links := 0
	for _, from := range pages {
		for _, m := range markdownLink.FindAllStringSubmatch(document(t, from), -1) {
			to := from
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(from), m[1])
			}
			links++
			if text := document(t, to); m[2] != "" && !slices.Contains(anchors(text), m[2]) {
				t.Errorf("%s links to %s, which has no heading %q", from, to, m[2])
			}
		}
	}
	if links < len(Formats()) {
		t.Errorf("%d links, want one to each format at least", links)
	}
}
