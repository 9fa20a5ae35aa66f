package sacct

import (
	"bytes"
	"slices"
	"strings"
)

// usual are the bytes between fields that are known by themselves.
const usual = "|,;\t"

// between returns what stands between the fields of a header: what is chosen, else the usual byte that finds most
// columns, else what stands behind the first name, as --delimiter of sacct takes any text.
func (o *Options) between(header []byte) string {
	if o.Delimiter != 0 {
		return string(o.Delimiter)
	}
	by, most := "|", 0
	for i := range len(usual) {
		if n := known(header, usual[i:i+1]); n > most {
			by, most = usual[i:i+1], n
		}
	}
	if most < 2 {
		if other := behind(header); known(header, other) >= 3 {
			return other
		}
	}
	return by
}

// behind returns what stands behind the first word of a header, "" if that is nothing or blanks.
func behind(header []byte) string {
	header = bytes.TrimLeft(bytes.TrimPrefix(header, []byte(mark)), " \t\"")
	first := bytes.IndexFunc(header, func(r rune) bool { return !letter(r) })
	if first <= 0 {
		return ""
	}
	rest := header[first:]
	if n := bytes.IndexFunc(rest, letter); n > 0 && len(bytes.TrimSpace(rest[:n])) > 0 {
		return string(rest[:n])
	}
	return ""
}

func letter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// delimiter returns what stands between the fields of a header as a byte. sacct quotes nothing; what has commas between
// fields came from another program, which does.
func (o *Options) delimiter(header []byte) (delimiter byte, raw bool) {
	by := o.between(header)
	return by[0], by != ","
}

// known counts the columns in a header by which sacct is recognised: all that are read, but for two that other programs
// have.
func known(header []byte, by string) (n int) {
	if by == "" {
		return 0
	}
	for f := range bytes.SplitSeq(header, []byte(by)) {
		f = bytes.Trim(f, " \r\n\"")
		if slices.ContainsFunc(names[:colName], func(name string) bool { return strings.EqualFold(name, string(f)) }) {
			n++
		}
	}
	return n
}

// isHeader reports whether line has the names of jobs' columns between by.
func isHeader(line []byte, by string) bool {
	has := func(names ...string) bool {
		for f := range bytes.SplitSeq(line, []byte(by)) {
			f = bytes.Trim(f, " \r\n\"")
			if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, string(f)) }) {
				return true
			}
		}
		return false
	}
	return by != "" && has("JobID") && known(line, by) >= 3 && (by == "|" || has("AllocTRES", "ReqTRES", "ReqGRES"))
}

// again reports whether a line among rows is a header: names alone, where a row has an id and times.
func (o *Options) again(line []byte) bool {
	if !bytes.Contains(line, []byte("JobID")) && !bytes.Contains(line, []byte("jobid")) {
		return false
	}
	by := o.between(line)
	if !isHeader(line, by) {
		return false
	}
	for f := range bytes.SplitSeq(line, []byte(by)) {
		if f = bytes.Trim(f, " \r\n\""); bytes.ContainsFunc(f, func(r rune) bool { return !letter(r) && r != '_' }) {
			return false
		}
	}
	return true
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with a header of sacct: the columns of a job
// between vertical bars, or between others if one is of generic resources, or the columns of fixed width that NewReader
// refuses; or is a document of sacct --json. Messages of sacct may stand before it.
func Sniff(head []byte) bool {
	line, rest := lineOf(head)
	for message(line) && len(rest) > 0 {
		head = rest
		line, rest = lineOf(head)
	}
	if message(line) || sniffJSON(head) || fixed(line, rest) {
		return true
	}
	for i := range len(usual) {
		if isHeader(line, usual[i:i+1]) {
			return true
		}
	}
	return isHeader(line, behind(line))
}

// Mistaken returns in a sentence what head is if Slurm's commands have printed it and NewReader cannot read it, "" for
// other files: rows of sacct without a header, and jobs of squeue and scontrol.
func Mistaken(head []byte) string {
	line, rest := lineOf(head)
	for message(line) && len(rest) > 0 {
		line, rest = lineOf(rest)
	}
	switch trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(mark)), " \t\r\n"); {
	case headless(line):
		return noHeader
	case document(trimmed) && bytes.Contains(head, []byte(`"job_state"`)) && bytes.Contains(head, []byte(`"job_id"`)):
		return ofSqueue
	}
	return ""
}

const (
	noHeader = "these are rows of sacct without its header, so which column is which is not known; run it without -n " +
		"(--noheader), or put the header in front, JobID|User|… as in its -o"
	ofSqueue = "this is what squeue --json or scontrol --json prints: jobs that wait and run now; want sacct --json, " +
		"which has those that ended"
)

// headless reports whether line is a row of sacct: it has a job's id, how the job ended, and times or resources;
// between bars, a state in full will do.
func headless(line []byte) bool {
	for _, by := range []string{"|", ",", ";", "\t", string(single)} {
		fields := bytes.Split(line, []byte(by))
		if len(fields) < 3 {
			continue
		}
		var id, ends, full, times, tres bool
		for i, f := range fields {
			f = bytes.Trim(f, " \r\n\"")
			if i < 2 && len(f) > 0 && f[0] >= '0' && f[0] <= '9' {
				id = true
			}
			status, how, after := state(f)
			if status != 0 || how != ended || after == requeued {
				ends, full = true, full || len(f) > 5
			}
			times = times || len(f) == len("2024-03-01T12:00:00") && f[4] == '-' && f[10] == 'T'
			tres = tres || bytes.Contains(f, []byte("cpu=")) || bytes.Contains(f, []byte("gres/gpu"))
		}
		if id && ends && (tres || (times || full) && by == "|") {
			return true
		}
	}
	return false
}

// lineOf returns the first line that is not blank, and what is behind it.
func lineOf(head []byte) (line, rest []byte) {
	rest = bytes.TrimPrefix(head, []byte(mark))
	for len(rest) > 0 && len(bytes.TrimSpace(line)) == 0 {
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
	}
	return line, rest
}

// fixed reports whether line and the line after it are the head of a table of fixed width.
func fixed(line, rest []byte) bool {
	rule, _, _ := bytes.Cut(rest, []byte{'\n'})
	isID := func(f []byte) bool {
		return bytes.EqualFold(f, []byte("JobID")) || bytes.EqualFold(f, []byte("JobIDRaw"))
	}
	return slices.ContainsFunc(bytes.Fields(line),
		isID) && bytes.Count(rule, []byte{'-'}) > 8 && len(bytes.Trim(rule, "- \r")) == 0
}
