package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// record is a job as Slurm tells of it, however it does: one job, one task of an array, all its tasks that wait, or a
// component of a heterogeneous job.
type record struct {
	id, array, het int64
	offset         int64  // of a component
	task           int64  // -1 = no single task
	waiting        string // tasks that this record stands for
	throttle       int64  // how many tasks may run at a time; 0 = all

	states                   []string
	reason                   string
	user, account, partition string
	name                     string
	admin, comment           string
	dependency               string
	required, excluded       string
	nodes                    string

	submit, eligible, start, end int64 // seconds since 1970; 0 = not known
	limit                        time.Duration
	nodeCount, cpus, ntasks      int64
	sockets                      int64 // that the job wants of each node
	priority, restarts           int64

	perNode, perJob, perTask, perSocket string
	alloc, request                      string // resources
	detail                              []string
	exclusive                           bool
	mixed                               bool  // components of a heterogeneous job exclude different nodes
	memNode, memCPU                     int64 // bytes
}

// key is the ID of the record's job.
func (r *record) key() string {
	switch {
	case r.het != 0:
		return fmt.Sprint(r.het)
	case r.array != 0 && r.task >= 0:
		return taskID(r.array, r.task)
	}
	return fmt.Sprint(r.id)
}

func taskID(array, task int64) string { return fmt.Sprintf("%d_%d", array, task) }

// is reports whether the job is in one of these states; the later ones are flags.
func (r *record) is(states ...string) bool {
	return slices.ContainsFunc(r.states, func(s string) bool { return slices.Contains(states, s) })
}

// state returns what the job does.
func (r *record) state() live.State {
	switch {
	case r.is("RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"):
		return live.Running
	case r.is("COMPLETING") && !r.is("PENDING"): // its nodes are not free yet; Slurm shows no GPUs of it any more
		return live.Ended
	case r.is("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"):
		return live.Waiting
	}
	return live.Ended
}

// held reports that the priority is 0: somebody holds the job.
func (r *record) held() bool { return r.priority == 0 }

// status says how a job has ended.
func (r *record) status() traces.Status {
	switch {
	case r.is("COMPLETED"):
		return traces.Completed
	case r.is("CANCELLED", "PREEMPTED", "REVOKED"):
		return traces.Cancelled
	case r.is("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"):
		return traces.Failed
	}
	return traces.StatusUnknown
}

// wants returns how many GPUs a job asks for and of which types; unclear says why that cannot be told, "" if it can.
func (r *record) wants() (n int, kinds []string, unclear string) {
	times := max(1, r.nodeCount)
	for _, w := range []struct {
		text  string
		times int64
	}{{r.perJob, 1}, {r.perNode, times}, {r.perTask, max(1, r.ntasks)}, {r.perSocket, r.sockets * times}} {
		all, err := parseGres(w.text)
		each, some := count(all)
		switch {
		case err != nil:
			return 0, nil, err.Error()
		case each == 0:
			continue
		case w.times == 0:
			return 0, nil, "it asks for GPUs on each socket and does not say how many sockets"
		case int64(each)*w.times > traces.MaxGPUs:
			return 0, nil, "it asks for more than 2^30 GPUs"
		}
		// Several requests of one job restrict each other, and do not add up.
		n, kinds = max(n, each*int(w.times)), append(kinds, some...)
	}
	if t := parseTres(r.request); n == 0 && t.gpus > 0 {
		n = t.gpus
	}
	slices.Sort(kinds)
	return n, slices.Compact(kinds), ""
}

// competes are the reasons for which a job waits that others' ends can change.
var competes = []string{"", "None", "Priority", "Resources", "NodeDown", "Prolog", "Cleaning"}

// blocked says why a waiting job could not start on an empty cluster, "" if it could. mine: the hold is ours.
func (r *record) blocked(now time.Time, mine bool) string {
	switch {
	case r.dependency != "":
		return "depends on " + r.dependency
	case r.eligible > now.Unix():
		return "begins at " + time.Unix(r.eligible, 0).UTC().Format(time.RFC3339)
	case r.held() && !mine && r.reason == "JobHeldUser":
		return "held by its user"
	case r.held() && !mine:
		return "held by an administrator"
	case mine || slices.Contains(competes, r.reason), strings.HasPrefix(r.reason, "Nodes_required_for_job_are_DOWN"):
		return ""
	}
	switch r.reason {
	case "Dependency", "DependencyNeverSatisfied":
		return "depends on other jobs"
	case "BeginTime":
		return "begins later"
	case "JobHeldUser", "JobHeldAdmin": // it was, before it was let go
		return ""
	case "JobArrayTaskLimit":
		return "as many tasks of its array run as may at a time"
	}
	return r.reason
}

// mark is what we have written into a job's comment.
type mark struct {
	kind     string // "" = nothing, hold or start
	pinned   bool   // we have replaced the nodes that it must not run on
	on       string // the nodes that we have left
	excluded string // the nodes that its owner had excluded
	rest     string // of the comment, which is not ours
	admin    bool   // it stands in the AdminComment
}

const (
	markHead  = "clustergym:"
	markHold  = "hold"
	markStart = "start"
)

// mark finds ours among what others have written. An AdminComment is an operator's; a Comment may be anybody's, so it
// counts only for the jobs of owner, if that is what we are.
func (r *record) mark(owner string) mark {
	for _, c := range []struct {
		text  string
		admin bool
	}{{r.admin, true}, {r.comment, false}} {
		before, after, found := strings.Cut(c.text, markHead)
		if !found || !c.admin && (owner == "" || owner != r.user) || before != "" && !strings.HasSuffix(before, " ") {
			continue
		}
		word, rest, _ := strings.Cut(after, " ")
		m := mark{admin: c.admin, rest: strings.TrimSuffix(before, " ")}
		if rest != "" && m.rest != "" {
			m.rest += " "
		}
		m.rest += rest
		kind, where, pinned := strings.Cut(word, ";on=")
		if kind == markHold || kind == markStart {
			m.kind, m.pinned = kind, pinned
			m.on, m.excluded, _ = strings.Cut(where, ";not=")
			return m
		}
	}
	return mark{}
}

// text returns the comment with the mark.
func (m mark) text() string {
	if m.kind == "" {
		return m.rest
	}
	t := markHead + m.kind
	if m.pinned {
		t += ";on=" + m.on + ";not=" + m.excluded
	}
	if m.rest == "" {
		return t
	}
	return m.rest + " " + t
}
