package hostlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a list. Slurm's own are lower, but for the length of a list, which it does not bound.
const (
	MaxHosts  = 1 << 17 // nodes that a list may name
	maxText   = 1 << 20 // bytes of a list
	maxName   = 255     // bytes of a name
	maxRanges = 8       // pairs of brackets in a name
)

// Expand returns the nodes of a list in the order in which it names them: g[01-03,07]-ib,h1. It returns nil for "". The
// error quotes the faulty item and says what would be right.
func Expand(list string) ([]string, error) {
	if len(list) > maxText {
		return nil, fmt.Errorf("a list of %d bytes, want at most %d", len(list), maxText)
	}
	var all []string
	for rest := list; rest != ""; {
		var item string
		item, rest = cut(rest)
		if rest == "" && strings.HasSuffix(list, ",") {
			return nil, fault(item + ",")
		}
		some, err := expand(item, maxRanges)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > MaxHosts {
			return nil, fmt.Errorf("a list of more than %d nodes", MaxHosts)
		}
	}
	return all, nil
}

// cut returns the first item of a list and what is behind its comma. Commas in brackets do not count.
func cut(list string) (item, rest string) {
	depth := 0
	for i := range len(list) {
		switch c := list[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

func fault(item string) error {
	const most = 80
	if len(item) > most {
		item = strings.ToValidUTF8(item[:most], "") + "…"
	}
	return fmt.Errorf("got %q, want a list of nodes as g[01-03,07]", item)
}

// expand returns the nodes of one item, from its first bracket to the last. It may have so many pairs of brackets.
func expand(item string, brackets int) ([]string, error) {
	head, rest, ranges := strings.Cut(item, "[")
	if !ranges {
		if item == "" || len(item) > maxName || strings.ContainsFunc(item, never) {
			return nil, fault(item)
		}
		return []string{item}, nil
	}
	body, tail, closed := strings.Cut(rest, "]")
	if !closed || brackets == 0 || strings.ContainsFunc(head, never) {
		return nil, fault(item)
	}
	tails := []string{""}
	if tail != "" {
		var err error
		if tails, err = expand(tail, brackets-1); err != nil {
			return nil, err
		}
	}
	longest := 0
	for _, t := range tails {
		longest = max(longest, len(t))
	}
	var all []string
	for r := range strings.SplitSeq(body, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, okA := number(from)
		b, okB := number(to)
		if !okA || !okB || b < a || b-a >= MaxHosts || len(all)+int(b-a+1)*len(tails) > MaxHosts ||
			len(head)+max(len(from), len(to))+longest > maxName {
			return nil, fault(item)
		}
		for i := a; i <= b; i++ {
			for _, t := range tails {
				all = append(all, fmt.Sprintf("%s%0*d%s", head, len(from), i, t))
			}
		}
	}
	return all, nil
}

// never reports whether no name of a node has r.
func never(r rune) bool { return r <= ' ' || r == '[' || r == ']' || r == ',' || r == 0x7f }

// number reads digits alone.
func number(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 40)
	return n, err == nil && len(s) <= maxName
}

// Compress returns a list of nodes, with ranges where their names count up: g[01-03],h.
func Compress(hosts []string) string {
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
