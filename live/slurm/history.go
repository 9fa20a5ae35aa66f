package slurm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/live"
)

// HistoryOptions say which part of the accounting is wanted.
type HistoryOptions struct {
	Since, Until time.Time
	// Accounts has the partition and the account of each job change places, so that what reads the result takes accounts
	// for virtual clusters.
	Accounts bool
	// Progress, if not nil, is called before each question with how many there are, and how many rows have been written.
	Progress func(done, all, rows int)
}

// HistoryCount is what a history has.
type HistoryCount struct {
	Rows   int // that were written
	Again  int // rows that two answers had
	Broken int // rows that a line break in a name cuts in two
}

// historyFields are the columns that are asked for. Names may have anything in them, so they come last.
var historyFields = []string{"JobID", "User", "Account", "Partition", "Cluster", "Submit", "Start", "End", "ElapsedRaw",
	"TimelimitRaw", "State", "NNodes", "NCPUS", "ReqMem", "AllocTRES", "ReqTRES",
	"NodeList", "Eligible", "JobName"}

// The places of some of them.
const (
	atSubmit = 5
	atStart  = 6
	atEnd    = 7
)

// apart stands between the fields of sacct's answers: nobody has it in a name.
const apart = "\x1f"

// History writes the jobs of all users from Since to Until as sacct -P prints them, with times as seconds since 1970.
// sacct is asked for a month at a time, because it holds its answer in memory. A job that runs over the end of a month
// comes once. In names, vertical bars become blanks.
func History(ctx context.Context, run Runner, o HistoryOptions, w io.Writer) (HistoryCount, error) {
	var count HistoryCount
	if !o.Since.Before(o.Until) {
		return count, fmt.Errorf("want a time before %s, where the history begins", o.Until.UTC().Format(time.DateTime))
	}
	header := slices.Clone(historyFields)
	if o.Accounts {
		header[2], header[3] = header[3], header[2]
	}
	out := bufio.NewWriter(w)
	if _, err := out.WriteString(strings.Join(header, "|") + "\n"); err != nil {
		return count, err
	}
	pieces := months(o.Since, o.Until)
	h := &history{out: out, count: &count, seen: map[string]bool{}}
	for i, p := range pieces {
		if o.Progress != nil {
			o.Progress(i, len(pieces), count.Rows)
		}
		h.until, h.next = p[1].Unix(), map[string]bool{}
		err := run.Run(ctx, Call{Out: h.read, Args: []string{
			"sacct", "-a", "-X", "-P", "-D", "-n", "--delimiter=" + apart, "-S", stamp(p[0]), "-E", stamp(p[1]), "-o",
			strings.Join(historyFields, ","),
		}})
		if err != nil {
			return count, accounting(err)
		}
		h.seen = h.next
	}
	if o.Progress != nil {
		o.Progress(len(pieces), len(pieces), count.Rows)
	}
	return count, out.Flush()
}

// accounting says what is wrong with the accounting.
func accounting(err error) error {
	exit, ok := errors.AsType[*ExitError](err)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return err
	case ok && strings.Contains(strings.ToLower(exit.Said), "accounting storage is disabled"):
		return fmt.Errorf(
			"%w: this Slurm keeps no accounts (slurm.conf has no AccountingStorageType=accounting_storage/slurmdbd), so sacct "+
				"knows no jobs that have ended", live.ErrUnsupported)
	}
	return understood(err)
}

// months divides a time into pieces of at most a calendar month.
func months(since, until time.Time) (pieces [][2]time.Time) {
	for from := since.UTC(); from.Before(until); {
		to := time.Date(from.Year(), from.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		if to.After(until) {
			to = until.UTC()
		}
		pieces = append(pieces, [2]time.Time{from, to})
		from = to
	}
	return pieces
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// history writes the answers of sacct, one after the other.
type history struct {
	out        *bufio.Writer
	count      *HistoryCount
	until      int64           // end of the piece
	seen, next map[string]bool // rows that the next piece may have again, of the last piece and of this one
}

func (h *history) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		fields := bytes.Split(lines.Bytes(), []byte(apart))
		if len(fields) != len(historyFields) {
			if len(bytes.TrimSpace(lines.Bytes())) > 0 && len(fields) < 3 { // the rest of a name
				h.count.Broken++
				continue
			}
			return fmt.Errorf("%w: sacct prints %d fields, want %d", live.ErrUnsupported, len(fields), len(historyFields))
		}
		key := string(fields[0]) + "|" + string(fields[atSubmit]) + "|" + string(fields[atStart])
		if end, err := strconv.ParseInt(string(fields[atEnd]), 10, 64); err != nil || end >= h.until {
			h.next[key] = true
		}
		if h.seen[key] {
			h.count.Again++
			continue
		}
		for i, f := range fields {
			if i > 0 {
				h.out.WriteByte('|') //nolint:errcheck // Flush returns it
			}
			if bytes.IndexByte(f, '|') >= 0 {
				f = bytes.ReplaceAll(f, []byte("|"), []byte(" "))
			}
			h.out.Write(f) //nolint:errcheck // likewise
		}
		if err := h.out.WriteByte('\n'); err != nil {
			return err
		}
		h.count.Rows++
	}
	return lines.Err()
}
