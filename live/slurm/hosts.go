package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxHosts is how many nodes a list may name.
const maxHosts = 1 << 17

// expandHosts returns the nodes of a list as Slurm writes it: g[01-03,07]-ib,h1.
func expandHosts(list string) ([]string, error) {
	var all []string
	for list != "" {
		item := list
		list = ""
		depth := 0
		for i, c := range item {
			if c == '[' {
				depth++
			} else if c == ']' {
				depth--
			} else if c == ',' && depth == 0 {
				item, list = item[:i], item[i+1:]
				break
			}
		}
		some, err := expandHost(item)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > maxHosts {
			return nil, fmt.Errorf("a list of more than %d nodes", maxHosts)
		}
	}
	return all, nil
}

// expandHost returns the nodes of one item, from its first bracket to the last.
func expandHost(item string) ([]string, error) {
	head, rest, ranges := strings.Cut(item, "[")
	if !ranges {
		if item == "" || strings.ContainsAny(item, "[] ") {
			return nil, fmt.Errorf("got %q, want a list of nodes as g[01-03,07]", item)
		}
		return []string{item}, nil
	}
	body, tail, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("got %q, want a list of nodes as g[01-03,07]", item)
	}
	tails := []string{""}
	if tail != "" {
		var err error
		if tails, err = expandHost(tail); err != nil {
			return nil, err
		}
	}
	var all []string
	for r := range strings.SplitSeq(body, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 40)
		b, errB := strconv.ParseUint(to, 10, 40)
		if errA != nil || errB != nil || b < a || b-a >= maxHosts || (len(all)+int(b-a))*len(tails) > maxHosts {
			return nil, fmt.Errorf("got %q, want a list of nodes as g[01-03,07]", item)
		}
		for i := a; i <= b; i++ {
			for _, t := range tails {
				all = append(all, fmt.Sprintf("%s%0*d%s", head, len(from), i, t))
			}
		}
	}
	return all, nil
}

// compressHosts returns a list of nodes, with ranges where their names count up: g[01-03],h.
func compressHosts(hosts []string) string {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b string) int { // g2 before g10
		x, y := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
		return cmp.Or(strings.Compare(x, y), len(a)-len(b), strings.Compare(a, b))
	})
	var b strings.Builder
	for i := 0; i < len(hosts); {
		head := strings.TrimRight(hosts[i], "0123456789")
		digits := hosts[i][len(head):]
		next := i + 1
		if n, err := strconv.ParseUint(digits, 10, 40); err == nil {
			for next < len(hosts) && hosts[next] == fmt.Sprintf("%s%0*d", head, len(digits), n+uint64(next-i)) {
				next++
			}
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if next == i+1 {
			b.WriteString(hosts[i])
		} else {
			fmt.Fprintf(&b, "%s[%s-%s]", head, digits, hosts[next-1][len(head):])
		}
		i = next
	}
	return b.String()
}

// tasks are the numbers of an array's tasks, as ranges in order.
type tasks [][2]int64

// parseTasks reads 1-10:2,15%4: the tasks that one record stands for, and how many run at a time; limit 0 = all.
func parseTasks(s string) (all tasks, limit int64, err error) {
	fault := fmt.Errorf("got %q, want tasks as 1-10,15%%4", s)
	s, at, limited := strings.Cut(s, "%")
	if limited {
		if limit, err = strconv.ParseInt(at, 10, 32); err != nil {
			return nil, 0, fault
		}
	}
	for r := range strings.SplitSeq(s, ",") {
		r, step, stepped := strings.Cut(r, ":")
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseInt(from, 10, 32)
		b, errB := strconv.ParseInt(to, 10, 32)
		by := int64(1)
		if stepped {
			by, err = strconv.ParseInt(step, 10, 32)
		}
		if errA != nil || errB != nil || err != nil || a < 0 || b < a || by < 1 {
			return nil, 0, fault
		}
		if by == 1 {
			all = append(all, [2]int64{a, b})
			continue
		}
		if (b-a)/by > maxHosts {
			return nil, 0, fault
		}
		for ; a <= b; a += by {
			all = append(all, [2]int64{a, a})
		}
	}
	return all, limit, nil
}

func (t tasks) len() (n int64) {
	for _, r := range t {
		n += r[1] - r[0] + 1
	}
	return n
}

func (t tasks) has(task int64) bool {
	return slices.ContainsFunc(t, func(r [2]int64) bool { return r[0] <= task && task <= r[1] })
}
