package slurm

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/live"
	"clustergym/traces"
)

// builder makes a snapshot of what Slurm tells, one node and one job at a time.
type builder struct {
	*live.Snapshot
	gpus   map[string][]gpus // by machine
	arrays map[int64]*array
	hets   map[int64]int // place of the heterogeneous job in Jobs
	raw    []string      // the number that Slurm gave each of Jobs
	max    int
	owner  string            // whose comments may have marks of ours
	cleans map[string]string // the job that keeps a machine from taking others, though it has ended
	used   map[string]int    // GPUs of machines that Slurm counts as taken
	moving map[string]bool   // machines that a job has just left
	// Machines whose GPUs are divided, and how many of their GPUs jobs hold by shares.
	divided map[string]*divided
	whole   map[string]int
	shared  map[string]string   // texts that many jobs have
	lists   map[string][]string // expanded lists of nodes
}

// array is what of an array waits and runs.
type array struct {
	limit, running int64
	waiting        []int // places in Jobs
}

// down are the states in which nothing can start on a node.
var down = []string{"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "UNKNOWN", "INVAL",
	"INVALID_REG", "MAINT", "NOT_RESPONDING", "NO_RESPOND",
	"POWERING_DOWN", "REBOOT_ISSUED", "REBOOT_REQUESTED", "REBOOT", "PERFCTRS"}

// node adds a machine: a node for each type of its GPUs.
func (b *builder) node(m *machine) error {
	if m.name == "" {
		return fmt.Errorf("%w: a node has no name", live.ErrUnsupported)
	}
	if slices.Contains(m.states, "FUTURE") {
		return nil // it does not exist yet
	}
	all, err := parseGres(m.gres)
	if err != nil {
		return fmt.Errorf("%w: node %s: %w", live.ErrUnsupported, m.name, err)
	}
	var kinds []gpus // by type, as gres.conf may have several lines of one
	for _, g := range all {
		if i := slices.IndexFunc(kinds, func(k gpus) bool { return k.kind == g.kind }); i >= 0 {
			kinds[i].n += g.n
		} else if g.n > 0 {
			kinds = append(kinds, g)
		}
	}
	b.gpus[m.name] = kinds
	if taken, err := parseGres(m.used); err == nil { // it is only compared
		b.used[m.name], _ = count(taken)
	}
	n := live.Node{Name: m.name, CPUMilli: m.cpus * 1000, MemBytes: m.mem << 20}
	for _, p := range m.partitions {
		n.VCs = append(n.VCs, b.share(p))
	}
	for _, s := range m.states {
		if n.Down = slices.Contains(down, s); n.Down {
			n.Why = strings.ToLower(s)
			if m.reason != "" {
				n.Why += ": " + m.reason
			}
			break
		}
	}
	if len(kinds) == 0 {
		b.Nodes = append(b.Nodes, n)
		return nil
	}
	total, _ := count(kinds)
	b.divide(m, total)
	whole := n
	for i, k := range kinds {
		n.Name, n.GPUType, n.GPUs = nodeName(m.name, kinds, k.kind), b.share(k.kind), k.n
		if len(kinds) > 1 { // cores and memory by GPUs; the first has what is left over
			n.CPUMilli, n.MemBytes = whole.CPUMilli*int64(k.n)/int64(total), whole.MemBytes/int64(total)*int64(k.n)
		}
		if i == 0 {
			for _, o := range kinds[1:] {
				n.CPUMilli = whole.CPUMilli - whole.CPUMilli*int64(o.n)/int64(total)
			}
		}
		b.Nodes = append(b.Nodes, n)
	}
	return nil
}

// nodeName returns the name of a machine's share with GPUs of this type.
func nodeName(machine string, kinds []gpus, kind string) string {
	if len(kinds) == 0 || kinds[0].kind == kind {
		return machine
	}
	return machine + "+" + kind
}

// host returns the machine of a node.
func host(node string) string {
	machine, _, _ := strings.Cut(node, "+")
	return machine
}

// share returns one copy of a text that many jobs have.
func (b *builder) share(s string) string {
	if t, there := b.shared[s]; there {
		return t
	}
	s = strings.Clone(s)
	b.shared[s] = s
	return s
}

// hosts returns the nodes of a list, in order; jobs of one list share them.
func (b *builder) hosts(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	if l, there := b.lists[list]; there {
		return l, nil
	}
	l, err := hostlist.Expand(list)
	if err != nil {
		return nil, err
	}
	for i := range l {
		l[i] = b.share(l[i])
	}
	b.lists[list] = l
	return l, nil
}

// job adds the jobs of a record.
func (b *builder) job(r *record) error {
	state := r.state()
	j := live.Job{State: state, Submit: at(r.submit), Restarts: int(r.restarts)}
	j.ID, j.User, j.Group, j.Name = r.key(), b.share(r.user), b.share(r.account), b.share(r.name)
	first, _, _ := strings.Cut(r.partition, ",") // of those that it may run in
	j.VC, j.GPUMilli, j.Estimate = b.share(first), 1000, r.limit
	b.resources(r, &j)
	var err error
	if j.Nodes, err = b.hosts(r.required); err == nil {
		j.Excluded, err = b.hosts(r.excluded)
	}
	if err != nil {
		return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, j.ID, err)
	}
	m := r.mark(b.owner)
	if m.pinned { // by us; what its owner wants comes back with release
		if j.Nodes, err = b.hosts(m.on); err == nil {
			j.Excluded, err = b.hosts(m.excluded)
		}
		if err != nil {
			return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, j.ID, err)
		}
	}
	switch state {
	case live.Waiting:
		if j.Priority = int(r.priority); r.start != 0 {
			j.Planned = at(r.start) // of its back-filling
		}
		n, kinds, unclear := r.wants()
		j.GPUs, j.GPUTypes = n, kinds
		if r.exclusive && n > 0 {
			j.GPUs = max(n, int(max(1, r.nodeCount))*b.largest(first, kinds))
		}
		j.Ours = m.kind != "" && r.held()
		j.Freed = m.kind != "" && !r.held()
		if j.Blocked = b.share(r.blocked(b.At, j.Ours)); j.Blocked == "" {
			j.Blocked = b.share(unclear)
		}
	case live.Running:
		j.Start = at(r.start)
		j.Ours = m.kind != "" && r.held() // it began just before it was held
		if err := b.places(r, &j); err != nil {
			return err
		}
		_, j.GPUTypes, _ = r.wants()
	case live.Ended:
		if r.waiting != "" {
			return nil // tasks that have been withdrawn
		}
		if err := b.left(r, j.ID); err != nil {
			return err
		}
		j.Start, j.End, j.Status = at(r.start), at(r.end), r.status()
		if j.Status == traces.Cancelled && r.start == r.end {
			j.Start = time.Time{} // withdrawn while it waited
		}
		j.GPUs, j.GPUTypes, _ = r.wants()
		if t := parseTres(r.alloc); t.gpus > 0 {
			j.GPUs = t.gpus
		}
		return b.ended(r, j)
	}
	return b.add(r, j)
}

// longCompleting is how long after a job's end its nodes may be completing until nobody counts on them.
const longCompleting = time.Minute

// left notes the machines that a job has just left, and those that a job which has ended long ago has not left yet:
// Slurm shows their GPUs as free and starts no other job there until the epilog has ended, or, if the message of its
// end was lost, until it asks the nodes again.
func (b *builder) left(r *record, id string) error {
	long := r.end != 0 && b.At.Sub(at(r.end)) >= longCompleting
	if long && !r.is("COMPLETING") {
		return nil
	}
	hosts, err := b.hosts(r.nodes)
	if err != nil {
		return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, id, err)
	}
	for _, h := range hosts {
		if !long {
			b.moving[h] = true
		} else if old, there := b.cleans[h]; !there || id < old {
			b.cleans[h] = id
		}
	}
	return nil
}

// lost takes the machines out of which Slurm counts more GPUs as taken than jobs hold, now and at the look before: it
// starts nothing on those. 22.05 loses count when its controller is started again, of jobs that begin just then. It
// returns the machines for the next look. Nodes have been read before jobs, so what has begun in between does no harm,
// and machines that a job has just left are not judged.
func (b *builder) lost(before map[string]bool) map[string]bool {
	held := map[string]int{}
	for i := range b.Jobs {
		for _, p := range b.Jobs[i].Places {
			held[host(p.Node)] += p.GPUs
		}
	}
	now := map[string]bool{}
	for i := range b.Nodes {
		n := &b.Nodes[i]
		h := host(n.Name)
		if b.used[h] <= held[h]-b.whole[h] || b.moving[h] {
			continue
		}
		if now[h] = true; before[h] && !n.Down {
			n.Down, n.Why = true,
				fmt.Sprintf("Slurm counts %d GPUs as taken, and jobs hold %d; scontrol reconfigure has it count anew", b.used[h],
					held[h]-b.whole[h])
		}
	}
	return now
}

// unclean takes the machines out that jobs have not left.
func (b *builder) unclean() {
	for i := range b.Nodes {
		n := &b.Nodes[i]
		if id, there := b.cleans[host(n.Name)]; there && !n.Down {
			n.Down, n.Why = true, "completing: job "+id+" has ended, and Slurm starts nothing here before its epilog has"
		}
	}
}

// ended adds a job that has ended, or joins it to the other components of a heterogeneous one.
func (b *builder) ended(r *record, j live.Job) error {
	if r.het != 0 {
		if i := slices.IndexFunc(b.Ended, func(o live.Job) bool { return o.ID == j.ID }); i >= 0 {
			b.join(&b.Ended[i], &j, r)
			return nil
		}
	}
	b.Ended = append(b.Ended, j)
	return nil
}

// add adds a job, or all the tasks or the heterogeneous job that it is a part of.
func (b *builder) add(r *record, j live.Job) error {
	raw := fmt.Sprint(r.id)
	if r.het != 0 {
		if i, there := b.hets[r.het]; there {
			b.join(&b.Jobs[i], &j, r)
			return nil
		}
		b.hets[r.het] = len(b.Jobs)
	}
	a := b.arrays[r.array]
	if r.array != 0 {
		if a == nil {
			a = &array{}
			b.arrays[r.array] = a
		}
		a.limit = max(a.limit, r.throttle)
	}
	if r.waiting == "" || j.State != live.Waiting {
		if a != nil && j.State == live.Running {
			a.running++
		} else if a != nil {
			a.waiting = append(a.waiting, len(b.Jobs))
		}
		return b.one(j, raw)
	}
	some, limit, err := hostlist.ParseTasks(r.waiting)
	if err != nil {
		return fmt.Errorf("%w: job %d: %w", live.ErrUnsupported, r.id, err)
	}
	a.limit = max(a.limit, limit)
	for _, x := range some {
		for t := x[0]; t <= x[1]; t++ {
			j.ID = taskID(r.array, t)
			a.waiting = append(a.waiting, len(b.Jobs))
			if err := b.one(j, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) one(j live.Job, raw string) error {
	if len(b.Jobs) >= b.max {
		return fmt.Errorf("%w: more than %d jobs wait and run", live.ErrUnsupported, b.max)
	}
	b.Jobs, b.raw = append(b.Jobs, j), append(b.raw, raw)
	return nil
}

// join adds a component to a heterogeneous job. Its first component gives the names.
func (b *builder) join(whole, part *live.Job, r *record) {
	if r.offset == 0 {
		whole.Name, whole.Group, whole.VC = part.Name, part.Group, part.VC
	}
	whole.GPUs += part.GPUs
	whole.CPUMilli += part.CPUMilli
	whole.MemBytes += part.MemBytes
	whole.Estimate = max(whole.Estimate, part.Estimate)
	for _, t := range part.GPUTypes {
		if !slices.Contains(whole.GPUTypes, t) {
			whole.GPUTypes = append(slices.Clip(whole.GPUTypes), t)
		}
	}
	for _, p := range part.Places {
		if i := slices.IndexFunc(whole.Places, func(q live.Place) bool { return q.Node == p.Node }); i >= 0 {
			q := &whole.Places[i]
			q.GPUs += p.GPUs
			q.Index = append(slices.Clip(q.Index), p.Index...)
			slices.Sort(q.Index)
			if len(q.Index) != q.GPUs {
				q.Index = nil
			}
			continue
		}
		whole.Places = append(whole.Places, p)
	}
	if part.State == live.Running {
		whole.State = live.Running
	}
	if whole.Blocked == "" {
		whole.Blocked = part.Blocked
	}
	whole.Ours, whole.Freed = whole.Ours || part.Ours, whole.Freed && part.Freed
	whole.Nodes, whole.Excluded = append(slices.Clip(whole.Nodes),
		part.Nodes...), append(slices.Clip(whole.Excluded), part.Excluded...)
}

// limits blocks the tasks beyond what their array may run at a time.
func (b *builder) limits() {
	for _, a := range b.arrays { // each by itself
		if a.limit == 0 {
			continue
		}
		left := a.limit - a.running
		sort.SliceStable(a.waiting, func(i, k int) bool {
			x, y := b.Jobs[a.waiting[i]].ID, b.Jobs[a.waiting[k]].ID
			return len(x) < len(y) || len(x) == len(y) && x < y // by number
		})
		for _, i := range a.waiting {
			j := &b.Jobs[i]
			switch {
			case j.Blocked != "" && !strings.HasPrefix(j.Blocked, "as many tasks"):
			case left > 0:
				left--
				j.Blocked = ""
			default:
				j.Blocked = b.share(fmt.Sprintf("its array runs %d tasks at a time", a.limit))
			}
		}
	}
}

func at(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// resources sets cores and memory.
func (b *builder) resources(r *record, j *live.Job) {
	t := parseTres(r.alloc)
	if t.cpus == 0 {
		t = parseTres(r.request)
	}
	if j.CPUMilli = t.cpus * 1000; j.CPUMilli == 0 {
		j.CPUMilli = r.cpus * 1000
	}
	switch {
	case t.mem > 0:
		j.MemBytes = t.mem
	case r.memNode > 0:
		j.MemBytes = r.memNode * max(1, r.nodeCount)
	case r.memCPU > 0:
		j.MemBytes = r.memCPU * max(1, r.cpus)
	}
}

// largest returns how many GPUs of these types the largest node of a partition has.
func (b *builder) largest(partition string, kinds []string) (most int) {
	for i := range b.Nodes {
		n := &b.Nodes[i]
		if (len(kinds) == 0 || slices.Contains(kinds, n.GPUType)) && (n.VCs == nil || slices.Contains(n.VCs, partition)) {
			most = max(most, n.GPUs)
		}
	}
	return most
}

// places sets where a job runs, and its GPUs.
func (b *builder) places(r *record, j *live.Job) error {
	hosts, err := b.hosts(r.nodes)
	if err != nil {
		return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, j.ID, err)
	}
	detail := r.detail
	if len(detail) != len(hosts) {
		if detail, err = spread(r, len(hosts)); err != nil {
			return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, j.ID, err)
		}
	}
	for i, h := range hosts {
		held, err := parseGres(detail[i])
		if err != nil {
			return fmt.Errorf("%w: job %s: %w", live.ErrUnsupported, j.ID, err)
		}
		kinds := b.gpus[h]
		if len(held) == 0 {
			b.sharing(r, j, h, detail[i], len(hosts))
			j.Places = append(j.Places, live.Place{Node: h})
		}
		for _, g := range held {
			if g.kind == "" && len(kinds) > 1 {
				return fmt.Errorf("%w: job %s: Slurm does not tell the type of its GPUs on node %s", live.ErrUnsupported, j.ID, h)
			}
			name := h
			if len(kinds) > 1 {
				name = b.share(nodeName(h, kinds, g.kind))
			}
			j.GPUs += g.n
			j.Places = append(j.Places, live.Place{Node: name, GPUs: g.n, Index: g.index})
			if n := len(j.Places) - 1; n > 0 && j.Places[n-1].Node == name { // two lines of one type
				j.Places = j.Places[:n]
				j.Places[n-1].GPUs, j.Places[n-1].Index = j.Places[n-1].GPUs+g.n, nil
			}
		}
	}
	return nil
}

// spread returns the GPUs on each node where Slurm lists none: none at all, or an equal share.
func spread(r *record, hosts int) ([]string, error) {
	detail := make([]string, hosts)
	n := parseTres(r.alloc).gpus
	if n < 0 {
		var unclear string
		if n, _, unclear = r.wants(); unclear != "" {
			return nil, fmt.Errorf("Slurm does not tell its GPUs, and %s", unclear) //nolint:staticcheck // a name
		}
	}
	if n == 0 {
		return detail, nil
	}
	if hosts == 0 || n%hosts != 0 || n > traces.MaxGPUs {
		return nil, fmt.Errorf("Slurm lists GPUs of %d nodes where it runs on %d", len(r.detail), hosts) //nolint:staticcheck // a name
	}
	for i := range detail {
		detail[i] = fmt.Sprintf("gpu:%d", n/hosts)
	}
	return detail, nil
}
