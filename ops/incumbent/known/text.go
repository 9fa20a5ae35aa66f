package known

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/traces"
)

const header = "JobID|JobIDRaw|User|Account|Partition|JobName|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|NCPUS|" +
	"ReqMem|AllocTRES|ReqTRES|NodeList\n"

// text returns what sacct -P -D prints of the jobs at Cut.
func (t *Truth) text() []byte {
	var b bytes.Buffer
	b.WriteString(header)
	names := t.Spec.NodeNames()
	waiting := map[string][]int{} // tasks that wait, by number of their array
	for i := range t.Jobs {
		if id, _, ok := strings.Cut(t.Jobs[i].ID, "_"); ok && !t.Started(&t.Jobs[i]) {
			waiting[id] = append(waiting[id], t.of[i].task)
		}
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Submit > t.Cut {
			continue
		}
		if !t.Started(j) {
			id, _, array := strings.Cut(j.ID, "_")
			if tasks := waiting[id]; array && len(tasks) > 1 {
				if t.of[i].task == tasks[0] { // sacct shows those that wait in one row
					t.row(&b, i, fmt.Sprintf("%s_[%s]", id, ranges(tasks)), stint{submit: j.Submit, start: -1}, "PENDING", nil)
				}
				continue
			}
			t.row(&b, i, j.ID, stint{submit: j.Submit, start: -1}, "PENDING", nil)
			continue
		}
		runs := t.Full.runs[j.ID]
		for k, r := range runs {
			state, last := "REQUEUED", k == len(runs)-1
			switch {
			case r.submit > t.Cut:
				continue
			case r.start > t.Cut:
				r.start, state = -1, "PENDING"
			case r.end > t.Cut:
				r.end, state = -1, "RUNNING"
			case last && t.of[i].timeout:
				state = "TIMEOUT"
			case last:
				state = strings.ToUpper(j.Status.String())
			}
			t.row(&b, i, j.ID, r, state, names)
		}
	}
	return b.Bytes()
}

// ranges writes numbers as Slurm writes those of tasks: 1-3,7.
func ranges(tasks []int) string {
	var names []string
	for _, n := range slices.Sorted(slices.Values(tasks)) {
		names = append(names, fmt.Sprint(n))
	}
	list := hostlist.Compress(names) // [1-3],7
	return strings.NewReplacer("[", "", "]", "").Replace(list)
}

// row writes one record. names are those of the nodes; nil = it has none.
func (t *Truth) row(b *bytes.Buffer, i int, id string, r stint, state string, names []string) {
	j, m := &t.Jobs[i], &t.of[i]
	at := func(d time.Duration) string { return t.Origin.Add(d).Format("2006-01-02T15:04:05") }
	start, end, elapsed, on := "Unknown", "Unknown", time.Duration(0), "None assigned"
	if r.start >= 0 {
		start, elapsed = at(r.start), t.Cut-r.start
		var list []string
		for _, n := range r.nodes {
			list = append(list, names[n])
		}
		on = hostlist.Compress(list)
		if state != "RUNNING" {
			end, elapsed = at(r.end), r.end-r.start
		}
	}
	limit := fmt.Sprint(int(j.Estimate.Minutes()))
	if m.unlimited {
		limit = "UNLIMITED"
	}
	asked := t.resources(j, strings.Join(j.GPUTypes, ""), i%7 == 3)
	had := ""
	if r.start >= 0 {
		had = t.resources(j, t.typeOf(r, j), false)
	}
	raw, _, _ := strings.Cut(id, "_")
	fmt.Fprintf(b, "%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%d|%s|%s|%d|%d|%dG|%s|%s|%s\n", id, raw, j.User, j.Group, m.partition, j.Name,
		at(r.submit), at(r.submit), start, end, int(elapsed.Seconds()), limit, state, j.Nodes, j.CPUMilli/1000,
		j.MemBytes>>30, had, asked, on)
}

// resources writes what j asks for, or had, of a type of GPU; "" = any.
func (t *Truth) resources(j *traces.Job, kind string, capitals bool) string {
	s := fmt.Sprintf("billing=%d,cpu=%d", j.CPUMilli/1000, j.CPUMilli/1000)
	if j.GPUs > 0 {
		s += fmt.Sprintf(",gres/gpu=%d", j.GPUs)
		if capitals {
			kind = strings.ToUpper(kind)
		}
		if kind != "" {
			s += fmt.Sprintf(",gres/gpu:%s=%d", kind, j.GPUs)
		}
	}
	return s + fmt.Sprintf(",mem=%dG,node=%d", j.MemBytes>>30, j.Nodes)
}

// typeOf returns the type of the GPUs that j had.
func (t *Truth) typeOf(r stint, j *traces.Job) string {
	if j.GPUs == 0 || len(r.nodes) == 0 {
		return ""
	}
	n := 0
	for _, of := range t.Spec.Racks[0].Nodes {
		if n += of.Count.N(); slices.Min(r.nodes) < n {
			return of.GPUType
		}
	}
	return ""
}

// Load returns what the jobs offer as a share of the GPUs, from the first submit to Cut.
func (t *Truth) Load() float64 {
	sum := 0.0
	for i := range t.Jobs {
		sum += t.Jobs[i].GPUHours()
	}
	return sum / (cmp.Or(t.Cut.Hours(), 1) * (8*a100s + 4*v100s))
}
