package assess

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"
)

// Row is where a job stands in its file.
type Row struct {
	Line   int       // of the file, from 1
	Submit time.Time // zero = the file's times are not dates
}

// Rows finds the rows of jobs in a table, by their ids: the first row of each. Files of other kinds have none.
func Rows(r io.Reader, ids ...string) map[string]Row {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<22)
	if !in.Scan() {
		return nil
	}
	header := strings.TrimPrefix(in.Text(), "\ufeff")
	by := ","
	for _, d := range []string{"|", "\t", ";"} {
		if strings.Count(header, d) > strings.Count(header, by) {
			by = d
		}
	}
	id, submit := -1, -1
	for i, name := range strings.Split(header, by) {
		switch strings.ToLower(strings.Trim(strings.TrimSpace(name), `"`)) {
		case "jobid", "job_id", "id":
			id = i
		case "submit", "submit_time", "submitted":
			submit = i
		}
	}
	if id < 0 {
		return nil
	}
	of := map[string]bool{}
	for _, x := range ids {
		of[x] = true
	}
	found := map[string]Row{}
	for line := 2; in.Scan() && len(found) < len(of); line++ {
		cells := strings.Split(in.Text(), by)
		if id >= len(cells) {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[id]), `"`)
		if _, again := found[name]; again || !of[name] {
			continue
		}
		x := Row{Line: line}
		if submit >= 0 && submit < len(cells) {
			x.Submit = date(strings.Trim(strings.TrimSpace(cells[submit]), `"`))
		}
		found[name] = x
	}
	return found
}

// first is the earliest time in seconds since 1970 that is taken to be one: lower numbers count from another origin.
const first = 500_000_000

// date reads a time; zero if it is none.
func date(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", time.RFC3339, "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= first && s < 1e11 {
		return time.Unix(int64(s), 0).UTC()
	}
	return time.Time{}
}
