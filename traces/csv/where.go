package csv

import (
	"bytes"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/traces"
)

// where reads on how many nodes the job was, on which, and when it was eligible. Submit is as in the file.
func (d *Reader) where(j *traces.Job) {
	if d.given(colNodes) && d.at[colWorkers] < 0 {
		if v, exact, err := d.rows.Decimal(d.at[colNodes], 0); err == nil && exact && v > 0 && v <= traces.MaxGPUs {
			j.Nodes = int(v)
		} else if list := d.hosts(colNodes); list != nil {
			j.Hosts = d.lists.Get(list)
		}
	}
	if d.given(colHosts) {
		if list := d.hosts(colHosts); list != nil {
			j.Hosts = d.lists.Get(list)
		}
	}
	if d.given(colEligible) {
		if at, ok := d.soft(colEligible); ok && at > j.Submit {
			j.Eligible = at - j.Submit
		}
	}
}

// hosts returns a cell that names nodes, nil for other cells; a number is how many there are.
func (d *Reader) hosts(col int) []byte {
	b := d.rows.Text(d.at[col])
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' && bytes.Trim(b, "0123456789") == nil {
		return nil
	}
	if list, err := hostlist.Expand(string(b)); err != nil || len(list) == 0 {
		return nil
	}
	return b
}

// state returns the column that says how a job ended or where it is, in small letters and without what is behind its
// first word.
func (d *Reader) state() string {
	b := d.cell(colStatus)
	if len(b) == 0 {
		b = d.cell(colState)
	}
	word, _, _ := bytes.Cut(bytes.ToLower(bytes.TrimSpace(b)), []byte{' '})
	return string(word)
}

// unended returns where the job of the row is, by what the row says of it.
func (d *Reader) unended() traces.Open {
	if !d.o.Unended {
		return traces.Ended
	}
	switch d.state() {
	case "running", "r", "suspended", "s":
		return traces.StillRunning
	case "pending", "pd", "queued", "waiting", "held", "submitted", "requeued", "rq":
		return traces.StillWaiting
	}
	return traces.Ended
}

// over reports whether the row says of a job without a start or an end that it will have none.
func (d *Reader) over() bool {
	return d.unended() == traces.Ended && traces.ParseStatus(d.state()) != traces.StatusUnknown
}

// Until returns the latest time that the file has mentioned so far, on the clock of the jobs' Submit.
func (d *Reader) Until() time.Duration {
	if d.based {
		return max(0, d.latest-d.first)
	}
	return d.latest
}
