package sacct

import (
	"fmt"
	"strconv"
	"strings"

	"clustergym/internal/hostlist"
)

// mostWaiting bounds the tasks of arrays that wait, of all rows together, and so the memory for them.
const mostWaiting = 1 << 21

// tasks returns the ids of the tasks for which the row of id stands, if it stands for tasks that wait and each of them
// is to be a job.
func (p *parser) tasks(id string) (ids []string, is bool) {
	array, list, is := strings.Cut(id, "_[")
	if !is || !p.unended {
		return nil, false
	}
	list, _, _ = strings.Cut(list, "]")
	if cut := strings.Index(list, "..."); cut >= 0 {
		p.shortened++
		_, limit, _ := strings.Cut(list[cut:], "%")
		if list = strings.TrimRight(list[:cut], ",-:"); limit != "" {
			list += "%" + limit
		}
	}
	all, ok := taskBits(list)
	if !ok {
		var err error
		if all, _, err = hostlist.ParseTasks(list); err != nil {
			p.fail(colID, "tasks of an array as 123_[5-9%2]")
			return nil, true
		}
	}
	if all.Len() > mostWaiting-int64(p.waits) {
		p.fail(colID, fmt.Sprintf("at most %d tasks of arrays that wait, of all rows together", mostWaiting))
		return nil, true
	}
	p.waits += int(all.Len())
	for t := range all.All() {
		ids = append(ids, array+"_"+strconv.FormatInt(t, 10))
	}
	return ids, true
}

// taskBits reads tasks as bits of a hexadecimal number, 0x2a%2: the lowest is task 0.
func taskBits(list string) (all hostlist.Tasks, ok bool) {
	list, _, _ = strings.Cut(list, "%")
	digits, ok := strings.CutPrefix(list, "0x")
	for i := range len(digits) {
		d, err := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 8)
		if err != nil {
			return nil, false
		}
		for b := range int64(4) {
			if t := int64(4*i) + b; d>>b&1 == 1 {
				all = append(all, [2]int64{t, t})
			}
		}
	}
	return all, ok && digits != ""
}
