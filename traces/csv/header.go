package csv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/nearest"
	"clustergym/traces"
)

// delimiters are what may stand between fields, in the order in which a header is tried.
const delimiters = ",;\t|"

// delimiter returns what stands between the fields of a header: that by which most of its names are known, else that
// which makes most fields.
func (o *Options) delimiter(header []byte) byte {
	if o.Delimiter != 0 {
		return o.Delimiter
	}
	best, most, given := byte(','), 0, slices.Collect(maps.Values(o.Columns))
	for _, c := range []byte(delimiters) {
		fields := split(header, c)
		score := len(fields)
		for _, f := range fields {
			if slices.Contains(plainNames, plain(f)) || slices.Contains(given, f) {
				score += 1 << 20
			}
		}
		if score > most {
			best, most = c, score
		}
	}
	return best
}

// split returns the names in a header, without quotes and blanks around them.
func split(header []byte, delimiter byte) []string {
	var names []string
	for _, f := range bytes.Split(header, []byte{delimiter}) {
		names = append(names, strings.Trim(string(f), " \t\r\""))
	}
	return names
}

// plain returns a name without what programs change in it: capitals, and what stands between words.
func plain(name string) string {
	b := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		switch {
		case c == ' ' || c == '_' || c == '-' || c == '.':
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// plains returns plain of each of names.
func plains(names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = plain(n)
	}
	return all
}

// plainNames are those by which a delimiter is recognised: columns whose names have no other meaning elsewhere.
var plainNames = plains(names[:colName])

// aliases are what people call some of the optional columns, without capitals and what stands between words. The first
// that the file has is read, if it has no column of the format's name.
var aliases = map[int][]string{
	colName: {"jobname", "scriptname", "script", "executable", "appname", "app", "applicationname", "application",
		"command"},
	colGroup:    {"groupname", "usergroup", "account", "project", "grouptag", "tag"},
	colNodes:    {"nnodes", "numnodes", "allocnodes"},
	colHosts:    {"nodelist", "hostlist"},
	colEligible: {"eligible"},
}

// header is the names of a file's columns.
type header struct{ names, plain []string }

func newHeader(names []string) *header { return &header{names, plains(names)} }

// find returns the index of the column that is called name, or is but for capitals and what stands between words; -1 if
// there is none. If there are several, others has their names. It passes over the columns in taken.
func (h *header) find(name string, taken map[int]bool) (at int, others []string) {
	if at = slices.Index(h.names, name); at >= 0 && !taken[at] {
		return at, nil
	}
	at = -1
	name = plain(name)
	for i, p := range h.plain {
		if p == name && !taken[i] {
			at, others = i, append(others, h.names[i])
		}
	}
	if len(others) > 1 {
		return -1, others
	}
	return at, nil
}

// place returns the index of the column of each name, -1 where the file has none. says is the fault in words if given
// names one that the file does not have, or if two columns could be meant.
func (h *header) place(given map[string]string) (at [columns]int, says string) {
	taken := map[int]bool{}
	for i, name := range names {
		at[i] = -1
		file, ok := given[name]
		if !ok {
			continue
		}
		col, others := h.find(file, nil)
		switch {
		case others != nil:
			return at, fmt.Sprintf("columns: %s=%s can be %s; want its name as it stands there", name, file,
				quoted(others, " or "))
		case col < 0:
			near := ""
			if n := nearest.Name(file, h.some()); n != "" {
				near = fmt.Sprintf("; did you mean %q?", n)
			}
			return at, fmt.Sprintf("columns: %s=%s names no column of the file, which has %s%s", name, file,
				quoted(h.names, ", "), near)
		}
		at[i], taken[col] = col, true
	}
	for i, name := range names {
		if at[i] >= 0 || i == colWorkers {
			continue
		}
		col, others := h.find(name, taken)
		for _, alias := range aliases[i] {
			if col >= 0 || others != nil {
				break
			}
			col, others = h.find(alias, taken)
		}
		if others != nil && i >= colNodes {
			continue
		} else if others != nil {
			return at, fmt.Sprintf("%s can be %s: say which with --columns %s=NAME (trace.columns)", name,
				quoted(others, " or "), name)
		}
		at[i] = col
	}
	return at, ""
}

// quoted joins names, at most as many as fit a message.
func quoted(names []string, by string) string {
	var b strings.Builder
	for i, n := range names {
		if b.Len() > 160 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(by)
		}
		if n == "" || strings.ContainsFunc(n,
			func(r rune) bool { return !strconv.IsPrint(r) || strings.ContainsRune(` ,;|"`, r) }) {
			n = strconv.Quote(n)
		}
		b.WriteString(n)
	}
	return b.String()
}

// hints are parts of the names that people give to the required columns, without capitals and what stands between
// words, the most telling first; those after = are whole names. They serve messages only: no column is read because of
// them.
var hints = map[int][]string{
	colSubmit: {"submit", "submission", "arriv", "queuedat", "creat", "enqueue", "timestamp", "=queued", "=time",
		"=date"},
	colDuration: {"durat", "elapsed", "runtime", "walltime", "runningtime", "servicetime", "=seconds", "=length"},
	colGPU:      {"gpucount", "gpus", "=gpu", "ngpu", "accelerators", "=devices"},
	colStart:    {"start", "begin", "began"},
	colEnd:      {"end", "finish", "stop"},
}

// some returns the columns to which messages compare a name. A line of more fields is hardly a header.
func (h *header) some() []string { return h.names[:min(len(h.names), 256)] }

// likely returns the column that is probably meant by the i-th name, "" if none is.
func (h *header) likely(i int, at [columns]int) string {
	var free []string
	for k, h := range h.some() {
		if !slices.Contains(at[:], k) {
			free = append(free, h)
		}
	}
	if n := nearest.Name(names[i], free); n != "" {
		return n
	}
	for _, hint := range hints[i] {
		for _, h := range free {
			if whole, ok := strings.CutPrefix(hint, "="); plain(h) == whole || !ok && strings.Contains(plain(h), hint) {
				return h
			}
		}
	}
	return ""
}

// missing returns the fault in words of a header that lacks required columns, "" if it has them.
func (h *header) missing(at [columns]int) string {
	lacks, proposal := h.lacks(at)
	switch len(lacks) {
	case 0:
		return ""
	case 1:
		return "no column " + lacks[0] + proposal + "; the file has " + quoted(h.names, ", ")
	}
	return "no columns " + strings.Join(lacks, ", ") + proposal + "; the file has " + quoted(h.names, ", ")
}

// lacks returns the required columns that are not there, and a proposal what to do.
func (h *header) lacks(at [columns]int) (lacks []string, proposal string) {
	var near, use []string
	need := func(i int, as string) {
		if at[i] >= 0 {
			return
		}
		lacks = append(lacks, as)
		file := h.likely(i, at)
		if file == "" {
			use = append(use, names[i]+"=NAME")
			return
		}
		near = append(near, strconv.Quote(file))
		use = append(use, names[i]+"="+file)
	}
	need(colSubmit, names[colSubmit])
	switch {
	case at[colDuration] >= 0 || at[colStart] >= 0 && at[colEnd] >= 0:
	case at[colStart] >= 0: // the end is all that is lacking
		need(colEnd, "end_time (or duration)")
	case at[colEnd] >= 0:
		need(colStart, "start_time (or duration)")
	default:
		need(colDuration, "duration (or start_time and end_time)")
	}
	need(colGPU, names[colGPU])
	switch len(near) {
	case 0:
	case 1:
		proposal = "; the nearest is " + near[0]
	default:
		proposal = "; the nearest are " + strings.Join(near, " and ")
	}
	arg := strings.Join(use, ",")
	if strings.ContainsAny(arg, " |;&()\"") {
		arg = "'" + arg + "'"
	}
	return lacks, proposal + ": use --columns " + arg + " (trace.columns)"
}

// Sniff returns how many of the columns that a file needs the header has that head, the first bytes of an unpacked
// file, begins with. start_time and end_time together count as duration.
func Sniff(head []byte, o Options) int {
	at, says := newHeader(headerOf(head, o)).place(o.Columns)
	if says != "" {
		return 0
	}
	found := 0
	for i, there := range at {
		if there >= 0 && (i <= colGPU || i == colEnd && at[colStart] >= 0 && at[colDuration] < 0) {
			found++
		}
	}
	return found
}

// Lacks says in words which columns the format needs and which of them a header of no known format has and lacks; "" if
// head does not begin with a line of several fields.
func Lacks(head []byte, o Options) string {
	names := headerOf(head, o)
	if len(names) < 2 || strings.HasPrefix(names[0], "{") || strings.HasPrefix(names[0], "[") ||
		slices.ContainsFunc(names, func(h string) bool {
			return len(h) > 40 || strings.ContainsFunc(h, func(r rune) bool { return !strconv.IsPrint(r) })
		}) {
		return ""
	}
	h := newHeader(names)
	at, says := h.place(o.Columns)
	if says != "" {
		return says
	}
	lacks, proposal := h.lacks(at)
	if lacks == nil {
		return ""
	}
	var found []string
	for _, i := range [...]int{colSubmit, colDuration, colStart, colEnd, colGPU} {
		if at[i] >= 0 {
			found = append(found, h.names[at[i]])
		}
	}
	had := "none of them"
	if found != nil {
		had = quoted(found, ", ")
	}
	return "csv needs submit_time, duration (or start_time and end_time) and num_gpu and found " + had + proposal
}

func headerOf(head []byte, o Options) []string {
	line := traces.HeaderLine(head)
	if len(line) == 0 {
		return nil
	}
	return split(line, o.delimiter(line))
}
