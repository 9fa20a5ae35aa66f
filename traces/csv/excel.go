package csv

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"clustergym/traces"
)

// Excel counts days from the end of 1899, or from 1904; these are days from 1970 to 2100 in either.
const (
	firstDay = 24107
	lastDay  = 73050
	dayUnit  = 1_000_000_000_000 // a day in the fixed point of serial
)

// sampled is the number of rows by which excel decides.
const sampled = 200

// excel returns a fault if the times of a file look like the days that Excel shows for cells without a date format,
// such as 45321.4166666667: all of them are days of our time, some with a fraction, and the fractions are whole
// seconds. Seconds since an origin are all of that only where a short trace begins half a day after it.
func excel(head []byte, at [columns]int, open func(io.Reader) (*traces.Table, error)) error {
	if end := bytes.LastIndexAny(head, "\n\r"); len(head) == 1<<16 && end > 0 {
		head = head[:end] // the last row may be cut
	}
	t, err := open(bytes.NewReader(head))
	if err != nil {
		return nil //nolint:nilerr // the header has been read, so the fault is where head is cut
	}
	var first *traces.RowError
	fraction, precise := false, false
	least, most := int64(lastDay*dayUnit), int64(0)
	for range sampled {
		if t.Next() != nil {
			break // likewise
		}
		for _, col := range [...]int{colSubmit, colStart, colEnd} {
			if col != colSubmit && traces.NotGiven(t.Text(at[col])) {
				continue
			}
			s := serialOf(t, at[col])
			if !s.day {
				if col != colSubmit {
					continue // a label perhaps
				}
				return nil
			}
			fraction, precise = fraction || s.v%dayUnit != 0, precise || s.precise
			least, most = min(least, s.v), max(most, s.v)
			if first == nil {
				first = t.Fault(at[col],
					fmt.Sprintf(
						"seconds, or a date such as %s, which these days of Excel mean in its usual calendar; give the cells a date "+
							"format, yyyy-mm-dd hh:mm:ss, "+
							"before you save them as CSV (if they are seconds, count them from the first job)", s.date()))
			}
		}
	}
	if first == nil || !fraction || !precise && most-least > 366*dayUnit {
		return nil
	}
	return first
}

// serial is a number that may be a day as Excel counts them.
type serial struct {
	v       int64 // in 1/dayUnit days
	day     bool  // it can be one
	precise bool  // it has enough decimals to tell that it is a whole second
}

func serialOf(t *traces.Table, col int) (s serial) {
	v, _, err := t.Decimal(col, 12)
	if err != nil || v < firstDay*dayUnit || v >= lastDay*dayUnit {
		return s
	}
	b := t.Text(col)
	decimals := 0
	if i := bytes.LastIndexAny(b, ".,"); i >= 0 {
		decimals = len(b) - i - 1
	}
	// How far the number may be from a whole second because its decimals are cut, in 1/dayUnit seconds.
	off := int64(86400 * dayUnit / 1000 / 2)
	for range decimals {
		off /= 10
	}
	off = off*1000 + dayUnit/1000
	rest := v % dayUnit * 86400 % dayUnit
	s.v, s.precise = v, decimals >= 7 && v%dayUnit != 0
	s.day = min(rest, dayUnit-rest) <= off
	return s
}

// date returns the time in the calendar that begins with 1900.
func (s serial) date() string {
	seconds := (s.v/dayUnit-25569)*86400 + (s.v%dayUnit*86400+dayUnit/2)/dayUnit
	return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04:05")
}
