package sacct

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// clock is what the times of a file are, all of one kind.
type clock uint8

const (
	noClock clock = iota
	unix          // seconds since 1970, SLURM_TIME_FORMAT=%s
	local         // dates without a zone
	zoned         // dates with a zone
)

// record reads the row as a run of job id.
func (p *parser) record(r *record, id string) {
	j := &r.job
	*j = traces.Job{ID: id, GPUMilli: 1000, User: p.text.Get(p.cell(colUser)), VC: p.text.Get(p.cell(colPartition)),
		Name: p.jobs.Get(p.cell(colName)), Group: p.text.Get(p.cell(colAccount))}
	if c := string(p.cell(colCluster)); p.cluster == "" {
		p.cluster = c
	} else if c != "" && c != p.cluster { // one of several dumps that were joined may not say
		p.fail(colCluster, p.cluster+
			", as in the rows before (ids of jobs are unique in a cluster only: sacct -M NAME shows one)")
	}
	j.Submit = p.time(colSubmit)
	r.start, r.end = p.when(colStart), p.when(colEnd)
	j.Status, r.ends, r.after = state(p.cell(colState))
	r.open = r.after == unclear || r.after == requeued
	if r.ends == ended {
		switch { // where the state does not say it, the times do
		case strings.Contains(id, "[") || p.at[colStart] >= 0 && p.first(colStart) < 0:
			r.ends = waiting
		case p.at[colEnd] >= 0 && p.first(colEnd) < 0:
			r.ends = running
		}
	}
	p.now = max(p.now, j.Submit, r.start, r.end)
	if at := p.when(colEligible); at > j.Submit {
		j.Eligible = at - j.Submit
	}
	switch {
	case r.ends == ended:
		j.Work = p.work()
	case !p.unended:
		return // its run time is not one, and its resources may not be allocated
	case r.ends == running:
		r.elapsed(p)
	}
	p.resources(j)
	j.Estimate = p.limit()
}

// elapsed sets how long a run has lasted that had not ended, if the row says that.
func (r *record) elapsed(p *parser) {
	if p.first(colElapsedRaw, colElapsed) < 0 {
		r.lasting = r.start >= 0
		return
	}
	if r.job.Work = p.work(); r.start >= 0 && r.job.Work <= traces.MaxTime {
		p.now = max(p.now, r.start+r.job.Work)
	}
}

// untilNow sets how long runs have lasted that had not ended and whose rows do not say it: until the latest time that
// the file mentions, which is shortly before sacct was asked.
func (p *parser) untilNow(records []record) {
	for i := range records {
		if r := &records[i]; r.lasting {
			r.job.Work = max(0, p.now-r.start)
		}
	}
}

// state reads how a job ended, or that it has not. REQUEUED says that another run follows; RESIZING, that one of
// another size does.
func state(b []byte) (traces.Status, ending, after) {
	word, _, _ := bytes.Cut(bytes.TrimSuffix(b, []byte{'+'}), []byte{' '})
	switch strings.ToUpper(string(word)) {
	case "COMPLETED", "CD":
		return traces.Completed, ended, completed
	case "FAILED", "F", "TIMEOUT", "TO", "OUT_OF_MEMORY", "OOM", "DEADLINE", "DL":
		return traces.Failed, ended, broken
	case "NODE_FAIL", "NF", "BOOT_FAIL", "BF":
		return traces.Failed, ended, interrupted
	case "PREEMPTED", "PR":
		return traces.Cancelled, ended, interrupted
	case "CANCELLED", "CA", "REVOKED", "RV":
		return traces.Cancelled, ended, broken
	case "REQUEUED", "RQ", "RESIZING", "RS":
		return traces.StatusUnknown, ended, requeued
	case "PENDING", "PD":
		return traces.StatusUnknown, waiting, unclear
	case "RUNNING", "R", "SUSPENDED", "S":
		return traces.StatusUnknown, running, unclear
	}
	return traces.StatusUnknown, ended, unclear
}

// when reads a time that distinguishes records; -1 if it is missing.
func (p *parser) when(col int) time.Duration {
	b := p.cell(col)
	if len(b) == 0 {
		return -1
	}
	if at, _, ok := traces.ParseDate(b); ok && at >= 0 {
		return at
	}
	if v, _, err := traces.Decimal(string(b), 9); err == nil && v >= 0 {
		return time.Duration(v)
	}
	return -1
}

// time reads a time since 1970.
func (p *parser) time(col int) time.Duration {
	b := p.cell(col)
	at, zone, ok := traces.ParseDate(b)
	kind := local
	switch {
	case ok && zone:
		kind = zoned
	case !ok:
		v, _, err := traces.Decimal(string(b), 9)
		at, ok, kind = time.Duration(v), err == nil && v >= 0, unix
	}
	if p.clock == noClock && ok {
		p.clock = kind
	}
	if !ok {
		p.fail(col, "a time as 2024-03-01T12:00:00 (SLURM_TIME_FORMAT=standard)")
	} else if kind != p.clock {
		p.fail(col, "a time in the form of those before "+
			"(sacct --json has seconds since 1970; SLURM_TIME_FORMAT=%s prints them)")
	}
	return at
}

// work returns the run time: what Slurm counted, which leaves out suspensions, else from start to end.
func (p *parser) work() time.Duration {
	if p.first(colElapsedRaw) >= 0 {
		d, err := p.Seconds(p.at[colElapsedRaw])
		if p.err == nil {
			p.err = err
		}
		return d
	}
	if p.first(colElapsed) >= 0 {
		return p.length(colElapsed, "a run time as [D-]HH:MM:SS")
	}
	if p.first(colStart) < 0 || p.first(colEnd) < 0 {
		cols := []int{colElapsed, colElapsedRaw, colEnd}
		there := slices.IndexFunc(cols, func(c int) bool { return p.at[c] >= 0 })
		p.fail(cols[there], "a run time")
		return 0
	}
	start, end := p.time(colStart), p.time(colEnd)
	work, ok := traces.Between(start, end, p.clock == local)
	if !ok {
		p.fail(colEnd, "Start or later, "+string(p.cell(colStart)))
	}
	return work
}

// length reads a length of time.
func (p *parser) length(col int, want string) time.Duration {
	d, ok := length(p.cell(col))
	if !ok {
		p.fail(col, want)
	}
	return d
}

// length reads [D-]HH:MM:SS, and MM:SS, which the manual allows.
func length(b []byte) (time.Duration, bool) {
	if len(b) == 5 && b[2] == ':' {
		b = append([]byte("00:"), b...)
	}
	if bytes.IndexByte(b, ':') < 0 {
		return 0, false
	}
	return traces.ParseDuration(b)
}

// limit returns the time limit; 0 = none.
func (p *parser) limit() time.Duration {
	c := p.first(colLimitRaw, colLimit)
	if c < 0 {
		return 0
	}
	switch strings.ToLower(string(p.cell(c))) {
	case "unlimited", "partition_limit":
		return 0
	}
	if c == colLimit {
		return p.length(c, "a time as [D-]HH:MM:SS, UNLIMITED or Partition_Limit")
	}
	const want = "minutes, UNLIMITED or Partition_Limit"
	minutes, err := p.Number(p.at[c], 0, 0, math.MaxInt64/int64(time.Minute), want)
	if p.err == nil {
		p.err = err
	}
	return time.Duration(minutes) * time.Minute
}

// tres is a list of trackable resources.
type tres struct {
	gpus, typed      int64 // in all, -1 where the list does not say; of those that have a type
	cores, mem, node int64
	types            []string
}

const (
	wantTRES = "resources as cpu=8,gres/gpu=2,mem=64G,node=1"
	mostMem  = 9e8 << 30 // bytes, as in the native format
)

// read reads a list of trackable resources. It reads those of tres alone.
func (t *tres) read(b []byte) bool {
	*t = tres{gpus: -1, types: t.types[:0]}
	for len(b) > 0 {
		var item []byte
		item, b, _ = bytes.Cut(b, []byte{','})
		name, value, ok := bytes.Cut(bytes.TrimSpace(item), []byte{'='})
		if !ok {
			return false
		}
		const all = "gres/gpu"
		gpu := len(name) >= len(all) && strings.EqualFold(string(name[:len(all)]), all)
		switch {
		case gpu && len(name) == len(all):
			t.gpus, ok = count(value)
		case gpu && name[len(all)] == ':':
			var n int64
			n, ok = count(value)
			t.typed += n
			if n > 0 {
				t.types = append(t.types, string(name[len(all)+1:]))
			}
		case string(name) == "cpu":
			t.cores, ok = count(value)
		case string(name) == "node":
			t.node, ok = count(value)
		case string(name) == "mem":
			t.mem, ok = memory(value)
		}
		if !ok || t.typed > traces.MaxGPUs {
			return false
		}
	}
	if t.gpus < 0 && t.typed > 0 {
		t.gpus = t.typed
	}
	return true
}

// count reads a whole number of at most 2^30, which fits every product here.
func count(b []byte) (int64, bool) {
	v, exact, err := traces.Decimal(string(b), 0)
	return v, err == nil && exact && v >= 0 && v <= traces.MaxGPUs
}

// memory reads an amount of memory in bytes: 64G, 187.50G, or without a unit in MB, as Slurm counts.
func memory(b []byte) (int64, bool) {
	shift := 20
	if n := len(b); n > 0 {
		if k := strings.IndexByte("KMGTP", b[n-1]&^0x20); k >= 0 && b[n-1] > '9' {
			shift, b = 10*(k+1), b[:n-1]
		}
	}
	v, _, err := traces.Decimal(string(b), 3)
	if err != nil || v < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(v), 1<<shift)
	if hi >= 1000 {
		return 0, false
	}
	bytes, _ := bits.Div64(hi, lo, 1000)
	return int64(bytes), bytes <= mostMem
}

// count reads the first of columns that has a value, otherwise it returns n.
func (p *parser) count(n int64, want string, cols ...int) int64 {
	c := p.first(cols...)
	if c < 0 {
		return n
	}
	n, ok := count(p.cell(c))
	if !ok {
		p.fail(c, want)
	}
	return n
}

// resources sets the GPUs, cores and memory of j.
func (p *parser) resources(j *traces.Job) {
	alloc, req := &p.tres[0], &p.tres[1]
	for i, col := range [...]int{colAllocTRES, colReqTRES} {
		b := p.cell(col)
		if traces.NotGiven(b) {
			b = nil
		}
		if !p.tres[i].read(b) {
			p.fail(col, wantTRES)
		}
	}
	nodes := p.count(max(alloc.node, req.node), "a number of nodes", colNodes, colAllocNodes)
	j.Nodes = int(cmp.Or(nodes, alloc.node, req.node)) // 0 where a job never got nodes
	if b := p.cell(colHosts); !traces.NotGiven(b) && !strings.EqualFold(string(b), "None assigned") {
		j.Hosts = p.hosts.Get(b)
	}
	if len(req.types) > 0 {
		j.GPUTypes = slices.Clone(req.types)
	}
	gpus := alloc.gpus
	if gpus <= 0 { // Slurm allocates 0 of what is configured with no_consume
		gpus = req.gpus
	}
	if c := p.first(colReqGRES); gpus < 0 && c >= 0 {
		each, types, perJob, ok := generic(p.cell(c))
		switch {
		case !ok:
			p.fail(c, "generic resources as gpu:2 or gres:gpu:v100:4")
		case each > 0 && nodes == 0 && !perJob:
			p.fail(c, "a number of nodes beside it: NNodes in sacct's -o (--format)")
		case !perJob:
			each *= nodes
		}
		if gpus = each; gpus > traces.MaxGPUs {
			p.fail(c, "at most 2^30 GPUs on all nodes")
		}
		j.GPUTypes = types
	}
	j.GPUs = int(max(0, gpus))
	if j.GPUs == 0 {
		j.GPUTypes = nil
	}
	cores := p.count(cmp.Or(max(alloc.cores, 0), req.cores), "a number of cores", colCPUs, colAllocCPUs)
	j.CPUMilli = cores * 1000
	j.MemBytes = cmp.Or(alloc.mem, req.mem)
	if c := p.first(colMem); c >= 0 && j.MemBytes == 0 {
		j.MemBytes = p.requested(c, nodes, cores)
	}
}

// requested reads the memory of column c: of the job, with n of each node and with c of each core.
func (p *parser) requested(c int, nodes, cores int64) int64 {
	b := p.cell(c)
	times := int64(1)
	switch b[len(b)-1] {
	case 'n':
		times, b = nodes, b[:len(b)-1]
	case 'c':
		times, b = cores, b[:len(b)-1]
	}
	mem, ok := memory(b)
	if !ok || mem > mostMem/max(1, times) {
		p.fail(c, "memory as 64G, 4000Mc or 64Gn")
	}
	return mem * times
}

// generic reads a request for generic resources: gpu:2, gpu:v100:4, gres:gpu:2, PER_NODE:gres:gpu:2, joined by commas.
// It counts GPUs on each node, or in the job if perJob.
func generic(b []byte) (gpus int64, types []string, perJob, ok bool) {
	for item := range bytes.SplitSeq(b, []byte{','}) {
		item, _, _ = bytes.Cut(bytes.TrimSpace(item), []byte{'('}) // (S:0-1): sockets
		parts := strings.Split(string(bytes.ToLower(item)), ":")
		names := strings.Split(string(item), ":")
		for len(parts) > 1 && (parts[0] == "gres" || parts[0] == "per_node" || parts[0] == "per_job") {
			perJob = perJob || parts[0] == "per_job"
			parts, names = parts[1:], names[1:]
		}
		if strings.HasPrefix(parts[0], "per_") {
			return 0, nil, false, false
		}
		if parts[0] = strings.TrimPrefix(parts[0], "gres/"); parts[0] != "gpu" {
			continue
		}
		n := int64(1)
		if len(parts) > 1 {
			last := len(parts) - 1
			v, isCount := count([]byte(parts[last]))
			switch {
			case isCount:
				n = v
				names = names[:last]
			case len(parts) > 2:
				return 0, nil, false, false
			}
		}
		if gpus += n; gpus > traces.MaxGPUs {
			return 0, nil, false, false
		}
		if len(names) > 1 && n > 0 {
			types = append(types, strings.Join(names[1:], ":"))
		}
	}
	return gpus, types, perJob, true
}
