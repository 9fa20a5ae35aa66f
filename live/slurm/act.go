package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/hostlist"
	"clustergym/live"
)

var (
	jobID    = regexp.MustCompile(`^[1-9][0-9]{0,9}(_[0-9]{1,9})?$`)
	nodeID   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)
	hostList = regexp.MustCompile(`^[A-Za-z0-9._,\[\]-]*$`)
	// inPipe is what scontrol reads from a pipe as it was written: it cuts words at blanks, and keeps quotes.
	inPipe = regexp.MustCompile(`^[!#-&(-\[\]-~]*$`)
)

// line is one command of scontrol.
type line struct {
	args []string
	of   []int // the actions that it is for
}

// Act implements live.Cluster. It asks for the queue first, so that nothing is written to a job that does not wait any
// more. RankJob of several tasks of one array, one after the other and with one score, is one request.
func (c *Cluster) Act(ctx context.Context, actions []live.Action) []live.Result {
	results := make([]live.Result, len(actions))
	if len(actions) == 0 {
		return results
	}
	all := func(err error) []live.Result {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	conf, err := c.config(ctx)
	if err != nil {
		return all(err)
	}
	if err := c.who(ctx, conf); err != nil {
		return all(err)
	}
	jobs, err := c.find(ctx, conf, actions)
	if err != nil {
		return all(err)
	}
	var machines []string
	if slices.ContainsFunc(actions, func(a live.Action) bool { return a.Op == live.StartJob && len(a.Nodes) > 0 }) {
		if err := c.nodes(ctx, conf, func(m *machine) error { machines = append(machines, m.name); return nil }); err != nil {
			return all(err)
		}
		if i := slices.IndexFunc(machines, func(m string) bool { return !nodeID.MatchString(m) }); i >= 0 {
			return all(fmt.Errorf("%w: a node is called %q", live.ErrUnsupported, machines[i]))
		}
		slices.Sort(machines)
	}
	var script []line
	for i, a := range actions {
		some, err := c.lines(a, jobs[a.Job], conf, machines)
		if err != nil {
			results[i].Err = fmt.Errorf("%s: %w", a, err)
			continue
		}
		for _, args := range some {
			jobs[a.Job].told(args)
			if a.Op == live.RankJob && len(script) > 0 && joins(&script[len(script)-1], args) {
				last := &script[len(script)-1]
				last.of = append(last.of, i)
				continue
			}
			script = append(script, line{args, []int{i}})
		}
	}
	for _, l := range script {
		l.args[1] = closeTasks(l.args[1])
	}
	c.write(ctx, script, func(l *line, err error) {
		for _, i := range l.of {
			if results[i].Err == nil && err != nil {
				results[i].Err = fmt.Errorf("%s: %w", actions[i], err)
			}
		}
	})
	return results
}

// told changes r as Slurm does for a line, for the next action on the same job.
func (r *record) told(args []string) {
	switch args[0] {
	case "release":
		r.priority = max(1, r.priority)
	case "requeue":
		r.states = []string{"PENDING"}
	case "update":
		for _, a := range args[2:] {
			switch key, value, _ := strings.Cut(a, "="); key {
			case "Priority":
				r.priority = 0
			case "AdminComment":
				r.admin = value
			case "Comment":
				r.comment = value
			case "ExcNodeList":
				r.excluded = value
			}
		}
	}
}

// joins adds the task of args to last if it is the same SiteFactor of another task of the same array.
func joins(last *line, args []string) bool {
	if len(args) != 3 || len(last.args) != 3 || args[2] != last.args[2] {
		return false
	}
	array, task, ok := strings.Cut(args[1], "_")
	before, tasks, is := strings.Cut(last.args[1], "_")
	if !ok || !is || array != before || len(tasks) > 1<<12 {
		return false
	}
	last.args[1] = before + "_" + tasks + "," + task
	return true
}

// closeTasks puts brackets around several tasks.
func closeTasks(arg string) string {
	head, list, ok := strings.Cut(arg, "_")
	if !ok || !strings.HasPrefix(head, "JobId=") || !strings.Contains(list, ",") || strings.HasPrefix(list, "[") {
		return arg
	}
	return head + "_[" + list + "]"
}

// find returns the records of the actions' jobs.
func (c *Cluster) find(ctx context.Context, conf config, actions []live.Action) (map[string]*record, error) {
	wanted := make(map[string]bool, len(actions))
	arrays := map[int64][]int64{} // tasks that are wanted
	for _, a := range actions {
		if !jobID.MatchString(a.Job) {
			continue // refused below
		}
		wanted[a.Job] = true
		if array, task, is := strings.Cut(a.Job, "_"); is {
			n, _ := strconv.ParseInt(array, 10, 64) // both are digits
			t, _ := strconv.ParseInt(task, 10, 64)
			arrays[n] = append(arrays[n], t)
		}
	}
	jobs := make(map[string]*record, len(wanted))
	var fault error
	err := c.jobs(ctx, conf, func(r *record) error {
		if r.waiting != "" && r.array != 0 {
			if len(arrays[r.array]) == 0 {
				return nil
			}
			some, _, err := hostlist.ParseTasks(r.waiting)
			if err != nil {
				fault = fmt.Errorf("%w: job %d: %w", live.ErrUnsupported, r.id, err)
			}
			for _, t := range arrays[r.array] {
				if some.Has(t) {
					jobs[taskID(r.array, t)] = r.clone()
				}
			}
			return nil
		}
		if id := r.key(); wanted[id] {
			old := jobs[id]
			if old == nil || r.offset == 0 {
				jobs[id] = r.clone()
			}
			if old != nil { // another component
				jobs[id].mixed = old.mixed || old.excluded != r.excluded
			}
		}
		return nil
	})
	return jobs, errors.Join(err, fault)
}

// clone returns a copy with what lines needs.
func (r *record) clone() *record {
	k := *r
	k.detail, k.states = nil, slices.Clone(r.states)
	return &k
}

// lines returns the commands for an action on a job, nil if there is nothing to be done. r is nil if there is no such
// job; machines are all that the cluster has, in order.
func (c *Cluster) lines(a live.Action, r *record, conf config, machines []string) ([][]string, error) {
	switch {
	case !jobID.MatchString(a.Job):
		return nil, fmt.Errorf("%w: got %q, want a job as 123 or 123_4", live.ErrGone, a.Job)
	case a.Op == live.RankJob && (a.Score < 0 || a.Score > live.MaxScore):
		return nil, fmt.Errorf("%w: want a score from 0 to %d", live.ErrUnsupported, live.MaxScore)
	case r == nil:
		return nil, live.ErrGone
	case !c.admin && r.user != c.user && (a.Op != live.RankJob || !c.operator):
		return nil, fmt.Errorf("%w: the job is %s's, and %s is no administrator of Slurm", live.ErrDenied, r.user, c.user)
	}
	job := "JobId=" + a.Job
	state := r.state()
	if a.Op == live.RequeueJob {
		switch state {
		case live.Waiting:
			return nil, nil // as it is to
		case live.Ended:
			return nil, live.ErrGone
		}
		return [][]string{{"requeue", a.Job}}, nil
	}
	m := r.mark(c.owner())
	if a.Op == live.ReleaseJob && state == live.Running && m.kind != "" && r.held() {
		// it would be held when it is requeued
		return [][]string{{"release", a.Job}, {"update", job, c.comment(m, mark{rest: m.rest})}}, nil
	}
	if state != live.Waiting {
		return nil, live.ErrGone
	}
	switch a.Op {
	case live.RankJob:
		switch {
		case !c.operator:
			return nil, fmt.Errorf("%w: only an operator of Slurm may write SiteFactor, and %s is none", live.ErrDenied, c.user)
		case conf.get("PriorityType") != "priority/multifactor":
			return nil, fmt.Errorf("%w: %s", live.ErrUnsupported, noRank(conf))
		}
		return [][]string{{"update", job, fmt.Sprintf("SiteFactor=%d", c.site(a.Score))}}, nil
	case live.HoldJob:
		return c.hold(job, r, m)
	case live.ReleaseJob:
		return c.release(a.Job, r, m)
	case live.StartJob:
		return c.start(a, r, m, machines)
	}
	return nil, fmt.Errorf("%w: %s", live.ErrUnsupported, a.Op)
}

// hold keeps a job from starting. Slurm refuses a list of excluded nodes for a job that has started, and everything
// beside it; so the list is written as it is. (ReqNodeList would not do: it takes nodes away from a job that runs.)
func (c *Cluster) hold(job string, r *record, m mark) ([][]string, error) {
	switch {
	case r.held() && m.kind != "":
		return nil, nil // it is ours already
	case r.held():
		return nil, fmt.Errorf("it is %s, and stays so", r.blocked(c.o.Now(), false))
	}
	held := mark{kind: markHold, rest: c.rest(r, m), pinned: m.pinned, on: m.on, excluded: m.excluded}
	args := []string{"update", job, "Priority=0", c.comment(m, held)}
	if !r.mixed {
		if err := writable(r.excluded); err != nil {
			return nil, err
		}
		args = append(args, "ExcNodeList="+r.excluded)
	}
	return [][]string{args}, nil
}

// writable returns an error if a list of nodes cannot be written as it was read.
func writable(list string) error {
	if !hostList.MatchString(list) {
		return fmt.Errorf("%w: it excludes nodes %q, which cannot be written again", live.ErrUnsupported, list)
	}
	return nil
}

// release takes back what hold and start have done. The mark goes last: if we end in between, the next release finds
// it.
func (c *Cluster) release(id string, r *record, m mark) ([][]string, error) {
	if m.kind == "" {
		return nil, nil
	}
	var all [][]string
	if m.pinned {
		all = append(all,
			[]string{"update", "JobId=" + id, "ExcNodeList=" + m.excluded, c.comment(m, mark{kind: m.kind, rest: m.rest})})
	}
	if r.held() {
		all = append(all, []string{"release", id})
	}
	return append(all, []string{"update", "JobId=" + id, c.comment(m, mark{rest: m.rest})}), nil
}

// start lets a job start that we hold, or pins one that waits, by excluding all other nodes: that is refused for a job
// that has started in between.
func (c *Cluster) start(a live.Action, r *record, m mark, machines []string) ([][]string, error) {
	if r.held() && m.kind == "" {
		return nil, fmt.Errorf("it is %s, and stays so", r.blocked(c.o.Now(), false))
	}
	if len(a.Nodes) == 0 && !r.held() {
		return nil, nil
	}
	next := mark{kind: markStart, pinned: m.pinned, on: m.on, excluded: m.excluded, rest: c.rest(r, m)}
	args := []string{"update", "JobId=" + a.Job}
	if len(a.Nodes) > 0 {
		if !m.pinned {
			if err := writable(r.excluded); err != nil {
				return nil, err
			}
			next.pinned, next.excluded = true, r.excluded
		}
		hosts, err := c.pins(a, r, next.excluded, machines)
		if err != nil {
			return nil, err
		}
		others := slices.DeleteFunc(slices.Clone(machines), func(h string) bool { return slices.Contains(hosts, h) })
		next.on = hostlist.Compress(hosts)
		args = append(args, "ExcNodeList="+hostlist.Compress(others))
	} else if m.pinned { // any nodes again
		args = append(args, "ExcNodeList="+m.excluded)
		next.pinned, next.on, next.excluded = false, "", ""
	}
	all := [][]string{append(args, c.comment(m, next))}
	if r.held() {
		all = append(all, []string{"release", a.Job})
	}
	return all, nil
}

// pins returns the machines that a job is to run on, if its owner lets it.
func (c *Cluster) pins(a live.Action, r *record, excluded string, machines []string) ([]string, error) {
	if r.mixed {
		return nil, fmt.Errorf("%w: it is heterogeneous, and its components exclude different nodes; want no nodes",
			live.ErrUnsupported)
	}
	var hosts []string
	for _, n := range a.Nodes {
		h := host(n)
		if !slices.Contains(machines, h) {
			return nil, fmt.Errorf("%w: got node %q, want one of the cluster", live.ErrUnsupported, n)
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	slices.Sort(hosts)
	for _, o := range []struct {
		list string
		in   bool
		says string
	}{{r.required, true, "requires"}, {excluded, false, "excludes"}} {
		all, err := hostlist.Expand(o.list)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", live.ErrUnsupported, err)
		}
		for _, h := range all {
			if slices.Contains(hosts, h) != o.in {
				return nil, fmt.Errorf("its owner %s node %s", o.says, h)
			}
		}
	}
	return hosts, nil
}

// rest returns what others have written into the comment that takes the mark.
func (c *Cluster) rest(r *record, m mark) string {
	switch {
	case m.kind != "":
		return m.rest
	case c.admin:
		return r.admin
	}
	return r.comment
}

// comment returns the setting that writes a mark where the last one stood.
func (c *Cluster) comment(was, m mark) string {
	if was.kind == "" && c.admin || was.kind != "" && was.admin {
		return "AdminComment=" + m.text()
	}
	return "Comment=" + m.text()
}

// write runs a script, and tells of each line what came of it. Lines with texts that a pipe would change are runs of
// their own.
func (c *Cluster) write(ctx context.Context, script []line, tell func(*line, error)) {
	for from := 0; from < len(script); {
		to := from
		for to < len(script) && !slices.ContainsFunc(script[to].args, func(a string) bool { return !inPipe.MatchString(a) }) {
			to++
		}
		var err error
		switch {
		case to > from+1:
			err = c.pipe(ctx, script[from:to], tell)
		default:
			to = from + 1
			err = understood(c.run.Run(ctx, Call{Args: append([]string{"scontrol"}, script[from].args...)}))
			tell(&script[from], err)
			if !errors.Is(err, live.ErrUnreachable) && ctx.Err() == nil {
				err = nil
			}
		}
		if err != nil { // nobody answers
			for i := to; i < len(script); i++ {
				tell(&script[i], err)
			}
			return
		}
		from = to
	}
}

// pipe runs the lines through one scontrol. After each line stands a word that it does not know: scontrol says so on
// standard error, where its faults come, too; so everything before is of that line. The error is that of all lines not
// told of.
func (c *Cluster) pipe(ctx context.Context, script []line, tell func(*line, error)) error {
	const end = "clustergym-line-"
	var text strings.Builder
	for i, l := range script {
		fmt.Fprintf(&text, "%s\n%s%d\n", strings.Join(l.args, " "), end, i)
	}
	text.WriteString("quit\n")
	var (
		done        int
		said        []string
		unreachable error
	)
	err := c.run.Run(ctx, Call{
		Args: []string{"scontrol"}, In: strings.NewReader(text.String()), Out: func(r io.Reader) error { return nil },
		Err: func(s string) bool {
			_, number, is := strings.Cut(s, end)
			if !is {
				said = append(said, s)
				if meaning(s) == live.ErrUnreachable && !strings.Contains(strings.ToLower(s), "unexpected message") {
					unreachable = fmt.Errorf("%w: scontrol: %s", live.ErrUnreachable, s)
					return false // it would try again for each line
				}
				return true
			}
			if number != strconv.Itoa(done) {
				unreachable = fmt.Errorf("%w: scontrol says %q after line %d of its commands", live.ErrUnsupported, s, done)
				return false
			}
			var err error
			if len(said) > 0 {
				err = understood(&ExitError{Program: "scontrol", Code: 1, Said: strings.Join(said, "; ")})
			}
			tell(&script[done], err)
			done, said = done+1, nil
			return true
		},
	})
	if unreachable == nil && done == len(script) {
		return nil
	}
	if unreachable == nil {
		if unreachable = understood(err); unreachable == nil || len(said) > 0 {
			unreachable = fmt.Errorf("%w: scontrol has ended after %d of %d commands: %s", live.ErrUnsupported, done,
				len(script), strings.Join(said, "; "))
		}
	}
	for i := done; i < len(script); i++ {
		tell(&script[i], unreachable)
	}
	return unreachable
}
