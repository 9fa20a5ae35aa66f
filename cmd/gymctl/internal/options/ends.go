package options

import (
	"bufio"
	"compress/gzip"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/ordinary"
)

// LastEnd returns the time at which the last job of a sacct table ended. The table gives times in seconds since 1970, or
// without a zone, as sacct prints them by itself; those count if zone says which it is. found is false if the file is
// not such a table.
func LastEnd(file string, zone *time.Location) (last time.Time, found bool) {
	f, err := ordinary.Open(file)
	if err != nil {
		return last, false
	}
	defer f.Close() //nolint:errcheck // only read
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return last, false
		}
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<22)
	if !in.Scan() {
		return last, false
	}
	header := strings.Split(in.Text(), "|")
	at := slices.Index(header, "End")
	if at < 0 || !slices.Contains(header, "JobID") {
		return last, false
	}
	for in.Scan() {
		row := strings.Split(in.Text(), "|")
		if len(row) != len(header) {
			continue
		}
		end := time.Time{}
		if s, err := strconv.ParseInt(row[at], 10, 64); err == nil {
			end = time.Unix(s, 0)
		} else if zone != nil {
			end, _ = time.ParseInLocation("2006-01-02T15:04:05", row[at], zone) // zero if it has not ended
		}
		if end.After(last) {
			last, found = end, true
		}
	}
	return last, found
}
