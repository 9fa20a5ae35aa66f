package incumbent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/plain"
	"clustergym/traces"
)

// Who goes before others is looked for among pairs of jobs with the same number of GPUs, of which one arrived before
// the other: how often does the later one start first, if it is of a certain account, and how often if it is not?
const (
	lookBack  = 60  // earlier jobs of the same size that a job is compared with
	leastJobs = 30  // pairs that it takes
	overtakes = .75 // the share in which a favoured account's later jobs start first, of the pairs in which both waited
)

// favoured returns models in which accounts, or users, whose jobs overtake those of others in the first half go before
// all others.
func (p *Past) favoured() []Model {
	var all []Model
	for _, x := range []struct {
		what  string
		owner func(j *traces.Job) string
	}{
		{"account", func(j *traces.Job) string { return j.Group }},
		{"user", User},
		{"partition", func(j *traces.Job) string { return j.VC }},
	} {
		names := p.overtaking(x.owner)
		if len(names) == 0 {
			continue
		}
		said := make([]string, len(names))
		for i, n := range names {
			said[i] = plain.Clip(n, 30)
		}
		all = append(all, Model{Name: "first-" + x.what + "+easy",
			Text: fmt.Sprintf("%s %s before all others, then first come, with back-filling", x.what,
				strings.Join(said, ", ")),
			own: &Ranking{First: names, Owner: x.owner}})
	}
	return all
}

// overtaking returns the owners whose jobs start before earlier ones of others of the same size: at most three, the
// clearest first.
func (p *Past) overtaking(owner func(j *traces.Job) string) []string {
	h := p.Halves()
	type count struct{ first, of float64 }
	counts := map[string]*count{}
	var names []string
	bySize := map[int][]int{} // the latest jobs of a size
	for _, i := range h.First {
		j := &p.Jobs[i]
		mine := owner(j)
		before := bySize[j.GPUs]
		for _, k := range before[max(0, len(before)-lookBack):] {
			// both waited when the later one arrived, and one of them still did when the other one started
			if other := owner(&p.Jobs[k]); other == mine || p.Starts[k] <= j.Submit || p.Starts[k] == p.Starts[i] {
				continue
			}
			c := counts[mine]
			if c == nil {
				c = &count{}
				counts[mine], names = c, append(names, mine)
			}
			c.of++
			if p.Starts[i] < p.Starts[k] {
				c.first++
			}
		}
		bySize[j.GPUs] = append(before, i)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		c := counts[n]
		return n == "" || c.of < leastJobs || c.first/c.of < overtakes
	})
	slices.SortStableFunc(names, func(a, b string) int {
		return -cmp.Compare(counts[a].first/counts[a].of, counts[b].first/counts[b].of)
	})
	return names[:min(3, len(names))]
}
