package demo

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// usualNode is how many GPUs a node has if nothing says otherwise.
const usualNode = 8

// guessedUse is which share of the GPUs is taken to have been in use, where a history does not say when jobs ran.
const guessedUse = 0.85

// Guess returns nodes for a history that does not say on which machines it ran, and why these: as many as were ever in
// use at once, by type.
func Guess(jobs []traces.Job) (nodes []live.Node, why string) {
	all, most, started, withGPUs := map[string][]traces.Job{}, map[string]int{}, 0, 0
	for i := range jobs {
		j := jobs[i]
		if j.GPUs < 1 || j.Work <= 0 {
			continue
		}
		t := ""
		if len(j.GPUTypes) > 0 {
			t = strings.ToLower(j.GPUTypes[0])
		}
		all[t] = append(all[t], j)
		most[t] = max(most[t], j.GPUs)
		if withGPUs++; j.Started {
			started++
		}
	}
	recorded := float64(started) >= mostlyStarted*float64(withGPUs)
	peak, total := map[string]int{}, 0
	for t := range all {
		if peak[t] = offered(all[t]); recorded {
			peak[t] = busiest(all[t])
		}
		peak[t] = max(peak[t], most[t])
		total += peak[t]
	}
	size := usualNode
	if total < usualNode {
		size = 1 << bits.Len(uint(max(1, total)-1))
	}
	typed := ""
	for t := range peak { // jobs of any type run on those of the type that most have
		if t != "" && (typed == "" || cmp.Or(cmp.Compare(peak[t], peak[typed]), cmp.Compare(typed, t)) > 0) {
			typed = t
		}
	}
	if typed != "" {
		peak[typed] += peak[""]
		delete(peak, "")
	}
	var list []string
	for t := range peak {
		list = append(list, t)
	}
	slices.Sort(list)
	var forms []string
	for _, t := range list {
		n := (peak[t] + size - 1) / size
		for range n {
			nodes = append(nodes, live.Node{GPUs: size, GPUType: t})
		}
		form := fmt.Sprintf("%dx%d", n, size)
		if t != "" {
			form += ":" + t
		}
		forms = append(forms, form)
	}
	what := "the file does not say when jobs started, so their GPU time is taken for 85 % of the cluster's"
	if recorded {
		what = fmt.Sprintf("at most %d GPUs were in use at once", total)
	}
	return Named(nodes), strings.Join(forms, "+") + " is guessed: " + what
}

// busiest returns the most GPUs that jobs held at once.
func busiest(jobs []traces.Job) (most int) {
	type change struct {
		at   time.Duration
		gpus int
	}
	var all []change
	for i := range jobs {
		j := &jobs[i]
		all = append(all, change{j.Submit + j.Waited, j.GPUs}, change{j.Submit + j.Waited + j.Work, -j.GPUs})
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.gpus, b.gpus)) })
	held := 0
	for _, c := range all {
		held += c.gpus
		most = max(most, held)
	}
	return most
}

// offered returns how many GPUs the jobs would keep as busy as is usual, from the first submit to the last.
func offered(jobs []traces.Job) int {
	var hours float64
	first, last := jobs[0].Submit, jobs[0].Submit
	for i := range jobs {
		hours += jobs[i].Work.Hours() * float64(jobs[i].GPUs)
		first, last = min(first, jobs[i].Submit), max(last, jobs[i].Submit)
	}
	return int(hours/max(1, (last-first).Hours())/guessedUse) + 1
}

// Named gives nodes names in their order: n1, or n01 if there are ten.
func Named(nodes []live.Node) []live.Node {
	width := len(fmt.Sprint(len(nodes)))
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("n%0*d", width, i+1)
	}
	return nodes
}
