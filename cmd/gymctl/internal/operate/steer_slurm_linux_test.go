package operate_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/slurmtest"
	"clustergym/live"
	"clustergym/live/slurm"
	"clustergym/ops/steer"
	"clustergym/ops/steer/report"
	"clustergym/ops/twin"
)

// site is a Slurm with this program in its folder, where every user may run it.
type site struct {
	*slurmtest.Cluster
	t       *testing.T
	cluster *slurm.Cluster
	program string
	agents  int
}

// slurmSite starts a Slurm, beside those of other tests.
func slurmSite(t *testing.T, o slurmtest.Options) *site {
	t.Helper()
	skipClusters(t)
	s := &site{Cluster: slurmtest.Start(t, o), t: t}
	s.cluster = slurm.New(slurm.Exec{Env: []string{"SLURM_CONF=" + s.Conf}}, slurm.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.program = filepath.Join(s.Dir, "gymctl")
	if err := os.Link(self, s.program); err == nil {
		return s
	}
	from, err := os.Open(self) //nolint:gosec // this program
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()                                                           //nolint:errcheck // only read
	to, err := os.OpenFile(s.program, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // others run it
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(to, from); err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// submit submits n jobs of sleep, each with these arguments of sbatch.
func (s *site) submit(n int, sleep float64, args string) (ids []string) {
	s.t.Helper()
	return strings.Fields(
		s.Sh(fmt.Sprintf("for i in $(seq %d); do sbatch --parsable -o /dev/null %s --wrap 'sleep %g'; done", n, args, sleep)))
}

// block submits a job that takes all GPUs of four nodes, and waits until it runs.
func (s *site) block() string {
	s.t.Helper()
	id := s.submit(1, 3600, "-N 4 --gres=gpu:8 -t 600 -J block")[0]
	s.Eventually("the first job runs", func() bool { return strings.TrimSpace(s.Sh("squeue -h -t R -o %i -j "+id)) == id })
	return id
}

// saved waits until the controller has saved the jobs that are there: those that came since are lost when it is killed.
func (s *site) saved(block string) {
	s.t.Helper()
	now := time.Now()
	s.Sh("scontrol update JobId=" + block + " Comment=saved") // so that there is something to save
	s.Eventually("Slurm saves its jobs", func() bool {
		info, err := os.Stat(filepath.Join(s.Dir, "state", "job_state"))
		return err == nil && info.ModTime().After(now)
	})
}

// look returns what Slurm says.
func (s *site) look() *live.Snapshot {
	s.t.Helper()
	snap, err := s.cluster.Observe(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return snap
}

// stranded returns the waiting jobs that are held, tied to nodes, or bear marks.
func (s *site) stranded() (list []string) {
	s.t.Helper()
	for _, j := range strings.Split(s.Sh("scontrol show job"), "\n\n") {
		if !strings.Contains(j, "JobState=PENDING") {
			continue
		}
		if strings.Contains(j, "clustergym") || strings.Contains(j, " Priority=0 ") ||
			strings.Contains(j, "Reason=JobHeld") || !strings.Contains(j, "ExcNodeList=(null)") {
			list = append(list, j)
		}
	}
	return list
}

// nothingStranded fails the test if a job is.
func (s *site) nothingStranded(when string) {
	s.t.Helper()
	if list := s.stranded(); len(list) > 0 {
		s.t.Errorf("%s: %d jobs are stranded, the first:\n%s", when, len(list), list[0])
	}
}

// clear withdraws all jobs.
func (s *site) clear() {
	s.t.Helper()
	s.Sh("scancel -u $(id -un)")
	s.Eventually("all jobs have gone", func() bool { return strings.TrimSpace(s.Sh("squeue -h -o %i")) == "" })
}

// nobody are the words that run a program as a user without rights; nil if this user may not.
func nobody() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
}

// start starts gymctl steer with args, as another user with prefix.
func (s *site) start(env, prefix []string, args ...string) *steering {
	s.t.Helper()
	s.agents++
	dir := filepath.Join(s.Dir, fmt.Sprintf("agent%d", s.agents))
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // of a test
		s.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // users without rights write their log there
		s.t.Fatal(err)
	}
	args = slices.Concat(prefix, []string{s.program, "steer", "--cluster", "slurm", "--slurm-conf", s.Conf}, args)
	if (slices.Contains(args, "gate") || slices.Contains(args, "rank")) && !slices.Contains(args, "--lease-file") {
		args = append(args, "--lease-file", filepath.Join(dir, "lease"))
	}
	return startSteering(s.t, dir, args, append([]string{clitest.AsProgram + "=1"}, env...))
}

// steerArgs is what most agents are started with.
func steerArgs(mode string, more ...string) []string {
	return append([]string{"--policy", "sjf+skip", "--estimates", "trace", "--every", "1s", "--mode", mode}, more...)
}

// holds reports whether n jobs that wait are held back.
func (s *site) holds(n int) bool {
	s.t.Helper()
	held := 0
	for _, j := range s.look().Jobs {
		if j.Ours {
			held++
		}
	}
	return held == n
}

// crash has the controller die, and come back when steer has said that nobody answers. It returns when steer has looked
// again.
func (s *site) crash(p *steering, end func()) {
	s.t.Helper()
	missed := strings.Count(p.says(), "it is tried again")
	end()
	s.Eventually("steer says that nobody answers", func() bool {
		return p.dead() || strings.Count(p.says(), "it is tried again") > missed
	})
	back := strings.Count(p.says(), "answers again")
	s.Revive()
	s.Eventually("steer says that the cluster answers again", func() bool {
		if p.dead() {
			s.t.Fatalf("steer has ended: %s", p.says())
		}
		return strings.Count(p.says(), "answers again") > back
	})
	p.looks(2)
}

// queue is what Slurm tells of all jobs, but for what it changes itself while they wait.
func (s *site) queue() string {
	s.t.Helper()
	return s.Sh(
		`scontrol show job | sed -E 's/(RunTime|LastSchedEval|AccrueTime|StartTime|EndTime|Scheduler|SchedNodeList|Reason|Priority)=[^ ]*//g; s/ *$//'; squeue -h -o '%i %t' | sort; sprio -h -o '%i %S' | sort`)
}

// differ returns the lines that are different.
func differ(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var text strings.Builder
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			fmt.Fprintf(&text, "%q\n%q\n", strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""),
				strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
		}
	}
	return text.String()
}

// sixty submits sixty jobs of several kinds.
func (s *site) sixty(sleep float64) (ids []string) {
	s.t.Helper()
	for i, args := range []string{"--gres=gpu:8 -t 40", "--gres=gpu:4 -t 30", "--gpus=1 -t 10", "--gres=gpu:2 -t 20",
		"-N 2 --gres=gpu:8 -t 50"} {
		n := 8
		if i == 4 {
			n = 4
		}
		ids = append(ids, s.submit(n, sleep, args)...)
	}
	array := s.submit(1, sleep, "--array=1-24 --gpus=2 -t 15")[0]
	for i := range 24 {
		ids = append(ids, fmt.Sprintf("%s_%d", array, i+1))
	}
	return ids
}

// A shadow changes nothing, and needs no rights.
func TestRealSteerShadow(t *testing.T) {
	t.Parallel()
	s := slurmSite(t, slurmtest.Options{})
	s.block()
	s.sixty(60)
	s.Sh("sleep 3") // Slurm tells some things of a job after its next cycle only
	before := s.queue()
	for _, as := range [][]string{nil, nobody()} {
		a := s.start(nil, as, steerArgs("shadow", "--cycles", "4")...)
		if code, said := a.wait(); code != cli.ExitDone || said != "" {
			t.Errorf("a shadow as %q ended with %d: %s", as, code, said)
		}
		l := a.lines()
		if len(l) != 4 || l[0].Waiting != 60 || len(l[0].Order) != 60 || len(a.writes()) > 0 {
			t.Errorf("the log of a shadow is %+v", l)
		}
		if after := s.queue(); after != before {
			t.Errorf("a shadow as %q has changed the queue:\n%s", as, differ(before, after))
		}
	}
}

// mixed submits six jobs that take all GPUs and then 54 short ones, and returns the number of the first short one.
func (s *site) mixed() (wide, short []string) {
	s.t.Helper()
	return s.submit(6, 3, "-N 4 --gres=gpu:8 -t 60 -J wide"), s.submit(54, 1, "--gres=gpu:4 -t 50 -J short")
}

// mend does what an administrator would if Slurm has lost count of its GPUs: 22.05 may, after its controller was
// started again.
func (s *site) mend(snap *live.Snapshot) {
	s.t.Helper()
	if i := slices.IndexFunc(snap.Nodes,
		func(n live.Node) bool { return strings.Contains(n.Why, "scontrol reconfigure") }); i >= 0 {
		s.t.Logf("node %s: %s", snap.Nodes[i].Name, snap.Nodes[i].Why)
		s.Sh("scontrol reconfigure")
		time.Sleep(5 * time.Second)
	}
}

// waits lets the queue run, and returns how long jobs have waited in the mean since its GPUs became free, and when each
// began.
func (s *site) waits(block string, ids []string) (mean time.Duration, starts map[string]time.Time) {
	s.t.Helper()
	s.Sh("scancel " + block)
	free := time.Now()
	var snap *live.Snapshot
	s.Eventually("the queue is empty", func() bool { snap = s.look(); s.mend(snap); return len(snap.Jobs) == 0 })
	starts = map[string]time.Time{}
	for _, j := range snap.Ended {
		if slices.Contains(ids, j.ID) {
			starts[j.ID] = j.Start
			mean += j.Start.Sub(free) / time.Duration(len(ids))
		}
	}
	if len(starts) != len(ids) {
		s.t.Fatalf("%d of %d jobs have ended", len(starts), len(ids))
	}
	return mean, starts
}

// reported reads a log as steer report does. The jobs that started while steer looked are there, but for those of a
// second that came and ended between two looks of a slow machine; figures must be possible, and said.
func (s *site) reported(log, mode string, started int) {
	s.t.Helper()
	page := log + ".html"
	out := clitest.Must(s.t, "steer", "report", log, "--html", page)
	var r report.Report
	clitest.Strict(s.t, clitest.Must(s.t, "steer", "report", log, "--json"), &r)
	a, c := r.Agreement, r.Calibration
	if r.Nodes != 4 || r.GPUs != 32 || r.Policy != "sjf+skip" || !slices.Equal(r.Modes, []string{mode}) || a == nil {
		s.t.Fatalf("the report of a %s is\n%s", mode, out)
	}
	share := func(x *report.Share) bool { return x != nil && 0 <= x.N && x.N <= x.Of && x.Of <= a.Starts }
	if a.Starts > started || a.Starts < started*9/10 || !share(&a.Looked) || !share(a.Again) || a.Again.Of == 0 ||
		a.Again.N == 0 {
		s.t.Errorf("%s: of %d starts the report has %+v\n%s", mode, started, a, out)
	}
	if c.N == 0 || c.Real < 0 || c.Model < 0 || c.Absolute > 3600 || r.Incumbent == "" || len(r.Rows) < 4 {
		s.t.Errorf("%s: the calibration is %+v", mode, c)
	}
	for _, row := range r.Rows {
		if row.Mean < 0 || row.Mean > 3600 {
			s.t.Errorf("%s: jobs wait for %.0f s: %+v", mode, row.Mean, row)
		}
	}
	for _, says := range []string{"Agreement", "Replay of what arrived", "Calibration", r.Belief} {
		if flat := strings.Join(strings.Fields(out), " "); says == "" ||
			!strings.Contains(flat, strings.Join(strings.Fields(says), " ")) {
			s.t.Errorf("the report does not say %q:\n%s", says, out)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "</html>") || !strings.Contains(string(html), "sjf+skip") { //nolint:gosec // of a test
		s.t.Errorf("the page has %d bytes: %v", len(html), err)
	}
	s.t.Logf("steer report of a %s: asked again, the policy makes %d of %d starts; model %s; %s", mode, a.Again.N,
		a.Again.Of, r.Incumbent, r.Belief)
}

// twin starts gymctl twin.
func (s *site) twin(args ...string) *steering {
	s.t.Helper()
	dir := filepath.Join(s.Dir, "twin")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // of a test
		s.t.Fatal(err)
	}
	return startSteering(s.t, dir,
		slices.Concat([]string{s.program, "twin", "--cluster", "slurm", "--slurm-conf", s.Conf}, args),
		[]string{clitest.AsProgram + "=1"})
}

// forecast looks at what a twin with a what-if has forecast while a queue ran: a start with an interval for each job
// that waited.
func (s *site) forecast(p *steering, started int) {
	s.t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		s.t.Fatal(err)
	}
	told, most := 0, 0
	for line := range strings.Lines(string(text)) {
		var r twin.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		most = max(most, len(r.Waiting))
		for _, j := range r.Waiting {
			told++
			if !slices.IsSorted(j.Start[:]) || j.Start[0] < 0 {
				s.t.Errorf("job %s is to start between %v", j.ID, j.Start)
			}
		}
	}
	drained := strings.Count(p.says(), "\nWhat if: drain g3\n")
	if most < 50 || drained == 0 || strings.Count(p.says(), "GPU hours lost while jobs wait") < drained/2 {
		s.t.Errorf("%d jobs at a time and %d in all have forecasts, and %d looks say what a drained node changes: %s", most,
			told, drained, p.says())
	}
	var c twin.Checked
	clitest.Strict(s.t, clitest.Must(s.t, "twin", "check", p.log, "--json"), &c)
	if c.Looks == 0 || c.Forecasts == 0 || c.Jobs > started || len(c.Coverage) != 3 {
		s.t.Errorf("twin check: %+v", c)
	}
	for _, x := range c.Coverage {
		if x.Share < 0 || x.Share > 1 || x.Early+x.Late+x.Share < 0.99 {
			s.t.Errorf("twin check: %+v", x)
		}
		s.t.Logf("twin: %.0f %% of %d starts of %d jobs fell into intervals of %d %%, %.0f %% came earlier", 100*x.Share,
			c.Forecasts, c.Jobs, x.Interval, 100*x.Early)
	}
}

// Ranks bring the mean wait below that of first come, first served. They survive a crash of the controller, and steer
// takes them back.
func TestRealSteerRank(t *testing.T) {
	t.Parallel()
	skipClusters(t)
	slurmtest.Need(t)
	var fifo, ranked time.Duration
	t.Run("both", func(t *testing.T) {
		t.Run("fifo", func(t *testing.T) {
			t.Parallel()
			s := slurmSite(t, slurmtest.Options{})
			shadow := s.start(nil, nil, steerArgs("shadow")...)
			twin := s.twin("--every", "1s", "--draws", "50", "--estimates", "history", "--drain", "g3")
			shadow.looks(1)
			block := s.block()
			wide, short := s.mixed()
			fifo, _ = s.waits(block, append(wide, short...))
			shadow.looks(1)
			late := slices.Concat(s.submit(3, 3, "-N 4 --gres=gpu:8 -t 60 -J wide"),
				s.submit(24, 1, "--gres=gpu:4 -t 50 -J short"))
			s.Eventually("the second queue is empty", func() bool { return len(s.look().Jobs) == 0 })
			shadow.looks(2) // the last one is whole
			for _, p := range []*steering{shadow, twin} {
				if code, said := p.end(syscall.SIGINT), p.says(); code != cli.ExitDone {
					t.Errorf("it ended with %d: %s", code, said)
				}
			}
			started := 1 + len(wide) + len(short) + len(late)
			s.reported(shadow.log, steer.Shadow, started)
			s.forecast(twin, started)
		})
		t.Run("rank", func(t *testing.T) {
			t.Parallel()
			s := slurmSite(t, slurmtest.Options{})
			block := s.block()
			wide, short := s.mixed()
			s.saved(block)
			a := s.start(nil, nil, steerArgs("rank", "--clear")...)
			s.Eventually("all jobs have ranks", func() bool { return a.dead() || len(a.writes()) >= 60 })
			s.crash(a, s.Kill)
			rank := func() (n int) {
				for _, j := range s.look().Jobs {
					if j.State == live.Waiting && j.Rank > 0 {
						n++
					}
				}
				return n
			}
			s.Eventually("all jobs have ranks again", func() bool { return rank() == 60 })
			var starts map[string]time.Time
			ranked, starts = s.waits(block, append(slices.Clone(wide), short...))
			last := time.Time{}
			for _, id := range short {
				if starts[id].After(last) {
					last = starts[id]
				}
			}
			for _, id := range wide {
				if starts[id].Before(last) {
					t.Errorf("the wide job %s begins at %v, and the last short one at %v", id, starts[id], last)
				}
			}
			s.block() // ranks that are there at the end are taken back
			s.submit(3, 1, "--gpus=1")
			s.Eventually("three jobs have ranks", func() bool { return rank() == 3 })
			a.end(syscall.SIGINT)
			if code, said := a.wait(); code != cli.ExitDone || rank() != 0 {
				t.Errorf("after the end %d jobs have ranks, exit code %d: %s", rank(), code, said)
			}
			s.reported(a.log, steer.Rank, 61) // and the second job that takes all GPUs
			s.clear()
		})
	})
	t.Logf("mean wait: %v first come, first served, %v by rank", fifo.Round(100*time.Millisecond),
		ranked.Round(100*time.Millisecond))
	if ranked >= fifo {
		t.Errorf("jobs wait for %v by rank, and for %v first come, first served", ranked, fifo)
	}
}

// within reports whether all nodes of a list are among others. A job of one node runs on one of the nodes that steer
// has named.
func within(list, others string) bool {
	named := strings.Split(others, ",")
	return !slices.ContainsFunc(strings.Split(list, ","), func(n string) bool { return !slices.Contains(named, n) })
}

// Gate starts what the policy has chosen where it has chosen, also after a crash and a restart of the controller.
func TestRealSteerGate(t *testing.T) {
	t.Parallel()
	s := slurmSite(t, slurmtest.Options{})
	block := s.block()
	ids := s.sixty(2)
	s.saved(block)
	// A start waits for its nodes, however long Slurm takes to find them free after its restart.
	a := s.start(nil, nil, steerArgs("gate", "--grace", "30m")...)
	s.Eventually("all jobs are held", func() bool { return s.holds(60) })
	s.crash(a, s.Kill) // what Slurm was told in the last seconds may be lost
	s.Eventually("all jobs are held again", func() bool { return s.holds(60) })
	s.Sh("scancel " + block)
	done := func() (n int) {
		for _, j := range s.look().Ended {
			if slices.Contains(ids, j.ID) {
				n++
			}
		}
		return n
	}
	s.Eventually("ten jobs are done", func() bool { return done() >= 10 })
	s.crash(a, s.Stop)
	for begun, snap := time.Now(), s.look(); len(snap.Jobs) > 0; snap = s.look() {
		s.mend(snap)
		if time.Since(begun) > 10*time.Minute {
			t.Fatal("it does not happen that all jobs are done")
		}
		time.Sleep(time.Second)
	}
	a.looks(2)
	where, notes := a.sent()
	right := 0
	for _, j := range s.look().Ended {
		if !slices.Contains(ids, j.ID) {
			continue
		}
		got := strings.TrimSpace(s.Sh(`scontrol show hostnames "$(scontrol show job ` + j.ID +
			` | grep -o ' NodeList=.*' | cut -d= -f2)" | paste -sd,`))
		switch starts := where[j.ID]; {
		case len(starts) == 0:
			t.Errorf("job %s has started, and steer has started it nowhere", j.ID)
		case slices.ContainsFunc(starts, func(nodes string) bool { return within(got, nodes) }):
			right++
		// steer says when it leaves the nodes to the cluster
		case !slices.Contains(starts, "") || !strings.Contains(notes, j.ID+" "):
			t.Errorf("job %s has run on %s, and was to on %q", j.ID, got, starts)
		}
	}
	if right < 55 {
		t.Errorf("%d of 60 jobs have run where they were to", right)
	}
	t.Logf("%d of 60 jobs have run where they were to", right)
	// SIGTERM and SIGINT release what is held.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if a == nil {
			a = s.start(nil, nil, steerArgs("gate")...)
		}
		s.block()
		n := len(s.sixty(60))
		s.Eventually("all jobs are held", func() bool { return s.holds(n) })
		a.end(sig)
		code, said := a.wait()
		if code != cli.ExitDone {
			t.Errorf("after %v steer ended with %d: %s", sig, code, said)
		}
		s.nothingStranded(sig.String())
		a.unguarded()
		s.nothingStranded(sig.String() + ", without guard")
		if _, err := os.Stat(a.lease); err == nil {
			t.Errorf("after %v the lease is there", sig)
		}
		s.clear()
		a = nil
	}
}

// moment is when an agent dies: at the command of Slurm that begins so, after so many lines of it.
type moment struct {
	name string
	env  []string
}

// killer stands in for scontrol and squeue, and kills the agent that calls it at a moment: at call number SQUEUE of
// squeue, or at the first scontrol that has a line with LINE in it, after the first KEEP lines. With LATE it kills
// first, and does all the lines then. BEFORE is done before. What guards and others call is not touched.
const killer = `#!/bin/bash
real=$(PATH=${PATH#*:} command -v $(basename $0))
agent() { ! tr '\0' '\n' </proc/$PPID/cmdline | grep -qx -e guard -e release-all; }
if ! agent; then exec $real "$@"; fi
if [ $(basename $0) = squeue ]; then
	echo >>$COUNT
	if [ "$(wc -l <$COUNT)" = "$SQUEUE" ]; then kill -9 $PPID; fi
	exec $real "$@"
fi
if [ $# != 0 ]; then exec $real "$@"; fi
in=$(cat)
if [ -z "$LINE" ] || ! grep -q -e "$LINE" <<<"$in"; then exec $real <<<"$in"; fi
eval "$BEFORE"
if [ -n "$LATE" ]; then kill -9 $PPID; sleep 1; exec $real <<<"$in"; fi
head -n $((2 * KEEP)) <<<"$in" | $real
kill -9 $PPID
`

// Whenever steer is killed, the guard lets all jobs go, and Slurm starts them.
func TestRealSteerKilled(t *testing.T) {
	t.Parallel()
	hold, release := "LINE=Priority=0 ", "LINE=^release "
	start := "LINE=clustergym:start"
	moments := []moment{
		{"before the first look", []string{"SQUEUE=1"}},
		{"before the holds", []string{hold, "KEEP=0"}},
		{"among the holds", []string{hold, "KEEP=7"}},
		{"after the holds", []string{hold, "KEEP=60"}},
		{"while Slurm holds", []string{hold, "LATE=1"}},
		{"between hold and start", []string{"SQUEUE=3"}},
		{"before a start", []string{start, "KEEP=0"}},
		{"in the middle of a start", []string{start, "KEEP=1"}},
		{"between start and Slurm's start",
			[]string{start, "KEEP=99", "BEFORE=$real update NodeName=ALL State=drain Reason=test"}},
		{"while Slurm starts", []string{start, "LATE=1"}},
		{"while it waits", nil},
		{"while it releases at its end", []string{release, "KEEP=9"}},
	}
	const lanes = 3
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			s := slurmSite(t, slurmtest.Options{})
			shim := filepath.Join(s.Dir, "shim")
			if err := os.Mkdir(shim, 0o755); err != nil { //nolint:gosec // of a test
				t.Fatal(err)
			}
			for _, name := range []string{"scontrol", "squeue"} {
				if err := os.WriteFile(filepath.Join(shim, name), []byte(killer), 0o755); err != nil { //nolint:gosec // of a test
					t.Fatal(err)
				}
			}
			for i := lane; i < len(moments); i += lanes {
				s.killed(moments[i], shim)
			}
		})
	}
}

// killed has an agent die at a moment.
func (s *site) killed(m moment, shim string) {
	s.t.Helper()
	begun := time.Now()
	block := s.block()
	s.sixty(600)
	var a *steering
	for lease := 5 * time.Second; ; lease *= 2 {
		a = s.die(m, shim, block, lease)
		select {
		case <-a.ended:
		case <-time.After(2 * clitest.Patience):
		}
		missed := !a.dead() // a write took longer than half the lease, and was given up
		_ = a.cmd.Process.Kill()
		code, said := a.wait()
		if missed && lease < time.Minute {
			code, said = 0, steer.ErrLease.Error()
		}
		if code == -1 {
			break
		}
		// a busy machine may be slower than the lease
		if !strings.Contains(said, steer.ErrLease.Error()) || lease > time.Minute {
			s.t.Fatalf("%s: steer was not killed, and ended with %d: %s", m.name, code, said)
		}
		a.unguarded()
		s.nothingStranded("without lease")
		s.clear()
		block = s.block()
		s.sixty(600)
	}
	a.unguarded()
	s.nothingStranded(m.name)
	s.Sh("scancel " + block + "; scontrol update NodeName=ALL State=resume 2>/dev/null || true")
	s.Eventually("Slurm fills its GPUs", func() bool {
		held := 0
		for _, j := range s.look().Jobs {
			if j.State == live.Running {
				held += j.GPUs
			}
		}
		return held >= 29
	})
	s.nothingStranded(m.name + ", later")
	s.t.Logf("%s: %v", m.name, time.Since(begun).Round(100*time.Millisecond))
	s.clear()
}

// die starts an agent that dies at a moment.
func (s *site) die(m moment, shim, block string, lease time.Duration) *steering {
	s.t.Helper()
	count := filepath.Join(s.Dir, "count")
	if err := os.RemoveAll(count); err != nil {
		s.t.Fatal(err)
	}
	args := steerArgs("gate", "--lease", lease.String())
	if m.env == nil {
		args = append(args, "--every", "4s")
	}
	a := s.start(slices.Concat([]string{"PATH=" + shim + ":" + os.Getenv("PATH"), "COUNT=" + count}, m.env), nil, args...)
	s.Eventually("all jobs are held, or steer is dead",
		func() bool { return a.dead() || len(a.lines()) > 0 && s.holds(60) })
	switch {
	case a.dead():
	case m.env == nil:
		before := len(a.lines())
		s.Eventually("steer looks again", func() bool { return a.dead() || len(a.lines()) > before })
		_ = a.cmd.Process.Kill() // it may have ended
	case strings.Contains(m.env[0], "release"):
		_ = a.cmd.Process.Signal(syscall.SIGTERM) // likewise
	default:
		s.Sh("scancel " + block)
	}
	return a
}

// If the guard is killed, too, steer release-all lets the jobs go, or another steer goes on once the lease has run out.
func TestRealSteerKilledWithItsGuard(t *testing.T) {
	t.Parallel()
	s := slurmSite(t, slurmtest.Options{})
	s.block()
	s.sixty(600)
	kill := func() *steering {
		a := s.start(nil, nil, steerArgs("gate")...)
		s.Eventually("all jobs are held", func() bool { return s.holds(60) && len(a.guards()) == 1 })
		for _, pid := range a.guards() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		a.end(syscall.SIGKILL)
		a.wait()
		a.unguarded()
		if !s.holds(60) {
			t.Error("without guard somebody releases jobs")
		}
		return a
	}
	kill()
	if code, said := s.start(nil, nil, "release-all").wait(); code != cli.ExitDone ||
		!strings.Contains(said, "nothing is held back") {
		t.Errorf("release-all ended with %d: %s", code, said)
	}
	s.nothingStranded("release-all")
	if code, said := s.start(nil, nil, "release-all").wait(); code != cli.ExitDone {
		t.Errorf("a second release-all ended with %d: %s", code, said)
	}
	a := kill()
	if code, said := s.start(nil, nil, steerArgs("gate", "--lease-file", a.lease)...).wait(); code == cli.ExitDone ||
		!strings.Contains(said, "by another program") || strings.Count(said, "\n") != 1 {
		t.Errorf("beside another lease steer ended with %d: %s", code, said)
	}
	if !s.holds(60) {
		t.Error("a steer that was refused has released jobs")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(a.lease, old, old); err != nil { // as if an hour had passed
		t.Fatal(err)
	}
	b := s.start(nil, nil, steerArgs("gate", "--lease-file", a.lease)...)
	b.looks(3)
	if !s.holds(60) {
		t.Error("another steer has not taken over what was held")
	}
	for _, w := range b.writes() {
		t.Errorf("another steer has written %s", w)
	}
	b.end(syscall.SIGINT)
	if code, said := b.wait(); code != cli.ExitDone {
		t.Errorf("it ended with %d: %s", code, said)
	}
	s.nothingStranded("another steer")
	// A guard that is gone ends steer, which releases.
	c := s.start(nil, nil, steerArgs("gate")...)
	s.Eventually("all jobs are held", func() bool { return s.holds(60) && len(c.guards()) == 1 })
	if err := syscall.Kill(c.guards()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.submit(1, 600, "--gpus=1") // there is something to write
	if code, said := c.wait(); code == cli.ExitDone || !strings.Contains(said, "guard has ended") ||
		strings.Count(said, "\n") != 1 {
		t.Errorf("without guard steer ended with %d: %s", code, said)
	}
	s.nothingStranded("without guard")
	s.clear()
}

// What cannot be is said in one sentence, and nothing is written.
func TestRealSteerRefuses(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, s *site, as []string, mode string, want ...string) {
		t.Helper()
		code, said := s.start(nil, as, steerArgs(mode, "--cycles", "1")...).wait()
		if code != cli.ExitFailed || strings.Count(said, "\n") != 1 {
			t.Errorf("--mode %s ended with %d: %s", mode, code, said)
		}
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("--mode %s said %q, want %q", mode, said, w)
			}
		}
		t.Logf("%s", strings.TrimSpace(said))
	}
	t.Run("rights", func(t *testing.T) {
		t.Parallel()
		s := slurmSite(t, slurmtest.Options{})
		block := s.block()
		s.submit(3, 60, "--gpus=1")
		before := s.queue()
		if as := nobody(); as != nil {
			refused(t, s, as, "rank", "nobody", "operator")
			refused(t, s, as, "gate", "nobody", "administrator")
			if after := s.queue(); after != before {
				t.Errorf("who may not has changed the queue:\n%s", differ(before, after))
			}
		}
		s.Stop()
		for _, mode := range steer.Modes() {
			refused(t, s, nil, mode, "cannot be reached")
		}
		s.Revive()
		a := s.start(nil, nil, steerArgs("shadow")...)
		a.looks(1)
		s.crash(a, s.Stop) // one that has answered is waited for
		a.end(syscall.SIGINT)
		if code, said := a.wait(); code != cli.ExitDone {
			t.Errorf("a shadow ended with %d: %s", code, said)
		}
		s.Sh("scancel " + block)
	})
	t.Run("whole nodes", func(t *testing.T) {
		t.Parallel()
		s := slurmSite(t, slurmtest.Options{Whole: true})
		for _, mode := range []string{"shadow", "rank", "gate"} {
			refused(t, s, nil, mode, "SelectType=select/linear", "select/cons_tres")
		}
	})
}

// An operator who is not SlurmUser may rank others' jobs, and an administrator may gate them.
func TestRealSteerAsOperator(t *testing.T) {
	t.Parallel()
	as := nobody()
	if as == nil {
		t.Skip("becomes another user, which root alone may")
	}
	s := slurmSite(t, slurmtest.Options{Accounting: true})
	s.Sh("sacctmgr -i add user nobody account=lab adminlevel=operator")
	block := s.block()
	ids := s.submit(10, 1, "--gres=gpu:8")
	a := s.start(nil, as, steerArgs("rank")...)
	s.Eventually("all jobs have ranks", func() bool { return a.dead() || len(a.writes()) >= len(ids) })
	a.end(syscall.SIGTERM)
	if code, said := a.wait(); code != cli.ExitDone || said != "" {
		t.Errorf("an operator's rank ended with %d: %s", code, said)
	}
	if code, said := s.start(nil, as, steerArgs("gate")...).wait(); code != cli.ExitFailed ||
		!strings.Contains(said, "adminlevel=admin") || strings.Count(said, "\n") != 1 {
		t.Errorf("an operator's gate ended with %d: %s", code, said)
	}
	s.Sh("sacctmgr -i modify user nobody set adminlevel=admin")
	a = s.start(nil, as, steerArgs("gate")...)
	s.Eventually("all jobs are held", func() bool { return a.dead() || s.holds(len(ids)) })
	s.Sh("scancel " + block)
	s.Eventually("all jobs are done", func() bool { return a.dead() || len(s.look().Jobs) == 0 })
	a.end(syscall.SIGTERM)
	if code, said := a.wait(); code != cli.ExitDone || said != "" {
		t.Errorf("an administrator's gate ended with %d: %s", code, said)
	}
	starts := 0
	for _, w := range a.writes() {
		if strings.HasPrefix(w, "start ") {
			starts++
		}
	}
	if starts < len(ids) {
		t.Errorf("an administrator has started %d of %d jobs", starts, len(ids))
	}
}
