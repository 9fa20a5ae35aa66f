package swf

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/traces"
)

// Write reads s to its end, writes it as a log, line by line, and returns how many jobs it wrote. h is the header,
// which may be nil; Write adds a Version if it has none.
//
// The format has whole processors, and numbers for names, so the fields become:
//
//	ID                whole and above the number of the job before: as it is, else that number + 1
//	Waited            wait time, if the job has Started
//	Submit, Work      seconds, with decimals if they are not whole
//	GPUs              allocated and requested processors; a share of a GPU and a job without GPUs are errors
//	Estimate          requested time
//	MemBytes          requested memory in KB for each processor, rounded up
//	Status            1, 0 or 5; -1 where unknown
//	User, VC, Model   user, group and executable: a number as it is, another name as the smallest number that its
//	                  field has not used so far, -1 for ""
//	Group, Name       group and executable of a job without VC and Model, likewise
//
// All other fields are -1. What a log has no field for (elastic ranges, GPU types, cores, iterations, priorities,
// deadlines, profiles and task graphs) is not written. Jobs that were read from a log are equal after writing and
// reading again. Errors of s and w are returned unchanged; a job that the format cannot express is an error that names
// it.
func Write(w io.Writer, s traces.Stream, h Header) (n int, err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := writeHeader(b, h); err != nil {
		return 0, err
	}
	var (
		j    traces.Job
		line []byte
		nums [3]numbers
		id   int64
	)
	for ; ; n++ {
		if err := s.Next(&j); err == io.EOF {
			return n, b.Flush()
		} else if err != nil {
			_ = b.Flush() // keep what was read; report the stream's fault
			return n, err
		}
		if err := check(&j); err != nil {
			_ = b.Flush()
			return n, fmt.Errorf("swf: job %d (%q): %w", n, j.ID, err)
		}
		if v, ok := number(j.ID); ok && v > id {
			id = v
		} else {
			id++
		}
		line = strconv.AppendInt(line[:0], id, 10)
		line = seconds(line, j.Submit)
		line = given(line, j.Started, func(b []byte) []byte { return seconds(b, j.Waited) })
		line = seconds(line, j.Work)
		line = whole(line, int64(j.GPUs))
		line = append(line, " -1 -1"...)
		line = whole(line, int64(j.GPUs))
		line = given(line, j.Estimate > 0, func(b []byte) []byte { return seconds(b, j.Estimate) })
		line = given(line, j.MemBytes > 0, func(b []byte) []byte {
			per := int64(j.GPUs) << 10
			return whole(b, 1+(j.MemBytes-1)/per)
		})
		line = whole(line,
			[...]int64{traces.StatusUnknown: -1, traces.Completed: 1, traces.Failed: 0, traces.Cancelled: 5}[j.Status])
		for i, name := range [...]string{j.User, cmp.Or(j.VC, j.Group), cmp.Or(j.Model, j.Name)} {
			least := int64(0)
			if i == 2 {
				least = 1 // an executable's number is positive
			}
			line = given(line, name != "", func(b []byte) []byte { return whole(b, nums[i].of(name, least)) })
		}
		line = append(line, " -1 -1 -1 -1\n"...)
		if _, err := b.Write(line); err != nil {
			return n, err
		}
	}
}

func check(j *traces.Job) error {
	switch {
	case j.Submit < 0 || j.Work < 0 || j.Estimate < 0 || j.MemBytes < 0:
		return fmt.Errorf("times and memory must be 0 or more (submit %v, work %v, estimate %v, %d bytes)", j.Submit, j.Work,
			j.Estimate, j.MemBytes)
	case j.GPUs < 1 || j.GPUs > maxProcs || j.GPUMilli != 1000:
		return fmt.Errorf("%d GPUs at %d thousandths each: the format holds 1 to %d whole processors", j.GPUs, j.GPUMilli,
			maxProcs)
	case j.Status > traces.Cancelled:
		return fmt.Errorf("status %d: not one of those known", j.Status)
	}
	return nil
}

func whole(b []byte, v int64) []byte { return strconv.AppendInt(append(b, ' '), v, 10) }

func seconds(b []byte, d time.Duration) []byte { return traces.AppendSeconds(append(b, ' '), d) }

// given appends what value appends if ok, else -1.
func given(b []byte, ok bool, value func([]byte) []byte) []byte {
	if !ok {
		return append(b, " -1"...)
	}
	return value(b)
}

// number reads a name that is a whole number as Write would write it.
func number(name string) (int64, bool) {
	if name == "" || len(name) > maxDigits || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	v := int64(0)
	for i := range len(name) {
		c := name[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	return v, true
}

// numbers assigns distinct numbers to the names of one field.
type numbers struct {
	by   map[string]int64
	used map[int64]bool
	next int64
}

func (n *numbers) of(name string, least int64) int64 {
	if v, ok := n.by[name]; ok {
		return v
	}
	if n.by == nil {
		n.by, n.used, n.next = map[string]int64{}, map[int64]bool{}, 1
	}
	v, ok := number(name)
	if !ok || v < least || n.used[v] {
		for n.used[n.next] {
			n.next++
		}
		v = n.next
	}
	n.by[name], n.used[v] = v, true
	return v
}

// first are the keys that the standard puts first, in its order.
var first = []string{"Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "MaxJobs",
	"MaxRecords", "Preemption",
	"UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxNodes", "MaxProcs", "MaxRuntime",
	"MaxMemory", "AllowOveruse",
	"MaxQueues", "Queues", "Queue", "MaxPartitions", "Partitions", "Partition", "Note"}

// writeHeader writes the standard's keys in its order, then others sorted by name.
func writeHeader(b *bufio.Writer, h Header) error {
	keys := slices.Clone(first)
	for _, k := range slices.Sorted(maps.Keys(h)) {
		if !slices.Contains(first, k) {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		v, ok := h[k]
		if k == "Version" && !ok {
			v, ok = "2.2", true
		}
		if !ok {
			continue
		}
		if k == "" || strings.ContainsAny(k, ":; \t/\r\n") || strings.Contains(v, "\r") {
			return fmt.Errorf("swf: header key %q: must be one word without : ; and /, and its value without carriage returns",
				k)
		}
		for line := range strings.SplitSeq(v, "\n") {
			if _, err := fmt.Fprintf(b, "; %s: %s\n", k, strings.TrimSpace(line)); err != nil {
				return err
			}
		}
	}
	return nil
}
