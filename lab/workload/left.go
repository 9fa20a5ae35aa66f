package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// MostLeftOut is the share of a trace's GPU time, 0 to 1, that may be left out without the user's consent
// (TraceConfig.AcceptLeftOut): results on less of the trace would be results on another cluster.
const MostLeftOut = 0.05

// Why is a reason for which a cluster cannot take a job.
type Why string

// The reasons, in the order in which a job is asked.
const (
	NoRunTime   Why = "no_run_time"   // it has none
	TooLarge    Why = "too_large"     // it asks for more GPUs than the cluster has
	AboveMost   Why = "above_max"     // it asks for more GPUs than the environment takes (env.max_gpus)
	NoPartition Why = "no_partition"  // it is in a partition, or virtual cluster, that the cluster does not have
	AboveQuota  Why = "above_quota"   // it asks for more than the quota of its virtual cluster
	NoType      Why = "no_type"       // it asks for a type of GPU that no node has
	TooWide     Why = "gpus_per_node" // it asks for more GPUs on each of its nodes than nodes have, or for too many nodes
	NoRoom      Why = "no_room"       // it asks for more GPUs of its type, cores or memory than nodes have
)

// Left counts, reason by reason, what of a trace a cluster does not take. Create it with CountLeft.
type Left struct {
	Of      int     `json:"of"`        // jobs of the trace
	Hours   float64 `json:"gpu_hours"` // of all of them
	CPUOnly int     `json:"cpu_only"`  // jobs that ask for no GPU, which are in none of the reasons
	// Reasons are those that occur, the one with the most GPU time first.
	Reasons []LeftReason `json:"reasons,omitempty"`
}

// LeftReason is a reason and what is left out for it.
type LeftReason struct {
	Why   Why     `json:"why"`
	What  string  `json:"what,omitempty"` // the type of GPU or the partition; "" where there is none
	Jobs  int     `json:"jobs"`
	Hours float64 `json:"gpu_hours"`
	First string  `json:"first"`           // ID of the first job
	Most  int     `json:"most,omitempty"`  // GPUs of the largest job
	Nodes int     `json:"nodes,omitempty"` // nodes of the largest job, if it says how many
}

// CountLeft counts the jobs that c does not take: because they can never run on it, have no run time, or ask for more
// than maxGPUs GPUs; 0 = any number.
func CountLeft(c *cluster.Cluster, jobs []traces.Job, maxGPUs int) Left {
	l := Left{Of: len(jobs)}
	type key struct {
		why  Why
		what string
	}
	at := map[key]int{}
	for i := range jobs {
		j := &jobs[i]
		if j.GPUs < 1 {
			l.CPUOnly++
			continue
		}
		l.Hours += j.GPUHours()
		why, what := leftFor(c, j, maxGPUs)
		if why == "" {
			continue
		}
		k, seen := at[key{why, what}]
		if !seen {
			k = len(l.Reasons)
			at[key{why, what}] = k
			l.Reasons = append(l.Reasons, LeftReason{Why: why, What: what, First: j.ID})
		}
		r := &l.Reasons[k]
		r.Jobs++
		r.Hours += j.GPUHours()
		if j.GPUs > r.Most {
			r.Most, r.Nodes = j.GPUs, j.Nodes
		}
	}
	slices.SortStableFunc(l.Reasons, func(a, b LeftReason) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), cmp.Compare(b.Jobs, a.Jobs))
	})
	return l
}

// leftFor returns why c does not take j, and of which type or partition; "" if it takes j.
func leftFor(c *cluster.Cluster, j *traces.Job, maxGPUs int) (why Why, what string) {
	switch _, fits := c.Request(j); {
	case j.Work <= 0 && j.Open == traces.Ended:
		return NoRunTime, ""
	case fits && maxGPUs > 0 && j.GPUs > maxGPUs:
		return AboveMost, ""
	case fits:
		return "", ""
	}
	var u cluster.Unfit
	u.Count(c, j)
	switch {
	case u.Large > 0:
		return TooLarge, ""
	case len(u.VCs) > 0:
		return NoPartition, j.VC
	case u.Quota > 0:
		return AboveQuota, j.VC
	case len(u.Types) > 0:
		return NoType, strings.Join(j.GPUTypes, " or ")
	case u.Shape > 0:
		return TooWide, ""
	}
	return NoRoom, ""
}

// Jobs returns the number of jobs left out, without those that ask for no GPU.
func (l *Left) Jobs() (n int) {
	for i := range l.Reasons {
		n += l.Reasons[i].Jobs
	}
	return n
}

// Share returns the part of the trace's GPU time that is left out, 0 to 1.
func (l *Left) Share() float64 {
	if l.Hours <= 0 {
		return 0
	}
	sum := 0.0
	for i := range l.Reasons {
		sum += l.Reasons[i].Hours
	}
	return min(1, sum/l.Hours)
}

// leftColumns are the columns of formats that decide, by reason.
var leftColumns = map[string]map[Why]string{
	formatSacct: {NoRunTime: "ElapsedRaw", TooLarge: "AllocTRES", AboveMost: "AllocTRES", NoPartition: "Partition",
		AboveQuota: "Partition", NoType: "ReqTRES", TooWide: "NNodes", NoRoom: "ReqTRES"},
	FormatCSV: {NoRunTime: "duration", TooLarge: "num_gpu", AboveMost: "num_gpu", NoPartition: "vc", AboveQuota: "vc",
		NoType: "gpu_type", TooWide: "nodes", NoRoom: "num_cpu, mem_gb"},
}

// mostLeftReasons is how many reasons a message names.
const mostLeftReasons = 4

// Sentences says reason by reason what is left out of a trace of that format, how much of the GPU time it is, which
// column decides, the first row, and what mends it.
func (l *Left) Sentences(c *cluster.Cluster, format string) []string {
	var all []string
	for i := range l.Reasons[:min(mostLeftReasons, len(l.Reasons))] {
		r := &l.Reasons[i]
		says, mend := r.words(c)
		where := "first job " + plain.Clip(r.First, 40)
		if col := leftColumns[format][r.Why]; col != "" {
			where = "column " + col + ", " + where
		}
		share := 0.0
		if l.Hours > 0 {
			share = r.Hours / l.Hours
		}
		all = append(all, fmt.Sprintf("%s %s (%s): %s", Part(r.Jobs, l.Of, share), says, where, mend))
	}
	if more := len(l.Reasons) - mostLeftReasons; more > 0 {
		all = append(all, plain.Count(more, "other reason", "other reasons"))
	}
	return all
}

// words says what the jobs of r ask for, and what mends it.
func (r *LeftReason) words(c *cluster.Cluster) (says, mend string) {
	one := r.Jobs == 1
	asks := "ask"
	if one {
		asks = "asks"
	}
	what := plain.Clip(r.What, 60)
	switch r.Why {
	case NoRunTime:
		if one {
			return "has no run time", "add the column"
		}
		return "have no run time", "add the column"
	case TooLarge:
		return fmt.Sprintf("%s for more than the %s of the cluster, up to %d", asks, plain.Count(c.GPUs(), "GPU", "GPUs"),
			r.Most), "name the cluster on which they ran"
	case AboveMost:
		return fmt.Sprintf("%s for more GPUs than the environment takes, up to %d", asks, r.Most), "raise env.max_gpus"
	case NoPartition:
		if what == "" {
			return "name no virtual cluster or partition, and the cluster has some", "leave out vcs of the cluster file"
		}
		return fmt.Sprintf("name %s, a virtual cluster or partition that the cluster does not have", what),
			"add it to vcs of the cluster file, or leave out all of them"
	case AboveQuota:
		return fmt.Sprintf("%s for more than the quota of virtual cluster %s", asks, what),
			"raise the quota in the cluster file"
	case NoType:
		return fmt.Sprintf("%s for GPU type %s, which no node has", asks, what),
			"name it in the cluster, as in 8x8:" + plain.Clip(strings.Split(r.What, " or ")[0], 40) + ", or no type, as in 8x8"
	case TooWide:
		if r.Nodes > 0 {
			return fmt.Sprintf("%s for more GPUs on each node than nodes have, or for more such nodes, as %d GPUs on %s", asks, r.Most,
				plain.Count(r.Nodes, "node", "nodes")), "name a cluster with such nodes"
		}
		return asks + " for more GPUs on each node than nodes have", "name a cluster with such nodes"
	}
	return asks + " for more GPUs of a type, or more cores or memory, than nodes have",
		"correct gpus, cpus and mem_gb of the cluster file"
}

// Mistake returns a *fault.Mistake if more than MostLeftOut of the GPU time is left out and cfg does not accept that;
// nil otherwise, and for generated jobs. It names the reasons, the columns and what mends each.
func (l *Left) Mistake(cfg *TraceConfig, info *Info, c *cluster.Cluster, name string) error {
	share := l.Share()
	if share <= MostLeftOut || cfg.AcceptLeftOut || cfg.File == "" {
		return nil
	}
	return TooMuchLeft(info.File, name, share, l.Sentences(c, info.Format))
}

// TooMuchLeft is the mistake that a share of the GPU time of a trace would be left out on a cluster, for reasons in
// words.
func TooMuchLeft(file, clusterName string, share float64, reasons []string) error {
	return &fault.Mistake{Err: fault.Errorf(
		"trace %s: %s of its GPU time cannot run on cluster %s and would be left out, and more than %s makes results those of "+
			"another cluster: %s; to go without it use %s (trace.accept_left_out: true)", file, Percent(share), clusterName,
		"5 %", strings.Join(reasons, "; "), fault.Key("accept-left-out"))}
}
