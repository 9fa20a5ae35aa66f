// Package modelcard writes the page that goes with an exported policy: what it is, for which environment and workload,
// what it knew of run times, how long it was trained, how it did against its baselines, and how to load it. Everything
// comes from the run's folder; what is not there is said to be missing.
package modelcard

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/agents/onnx"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
	format "clustergym/nets/onnx"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/tuned"
)

// File is the model's file; its name is "." or "-" if the model was not written to one.
type File struct {
	Name  string
	Bytes int
}

// New returns the card of e in Markdown. version and commit are the program's.
func New(e *arena.Exported, f File, version, commit string) (string, error) {
	results, err := readResults(filepath.Join(e.Run, filepath.FromSlash(rundir.EvalFile)))
	if err != nil {
		return "", err
	}
	best, chosen, err := rundir.ReadBest(e.Run)
	if err != nil {
		return "", &fault.Mistake{Err: err}
	}
	lines, err := rundir.ReadProgress(e.Run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", &fault.Mistake{Err: err}
	}
	c := &card{e: e, version: version}
	c.head(f, commit)
	c.fits()
	c.training(lines)
	if chosen {
		c.validation(best)
	}
	c.results(results)
	c.loading(f, results)
	return c.String(), nil
}

type card struct {
	strings.Builder
	e       *arena.Exported
	version string
}

func (c *card) line(format string, args ...any) { _, _ = fmt.Fprintf(c, format+"\n", args...) } // to memory

// row writes a row of a table of two columns; rows without a value are left out.
func (c *card) row(name, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		c.line("| %s | %s |", name, strings.ReplaceAll(text, "|", `\|`))
	}
}

func (c *card) head(f File, commit string) {
	m, cfg := &c.e.Meta, &c.e.Cfg
	c.line("# %s\n", c.e.Name)
	c.line("A policy for `%s`, trained by %s and played greedily.\n", c.e.Spec.ID, agentOf(cfg.Agent))
	c.line("| | |\n|---|---|")
	if f.Name != "." && f.Name != "-" {
		c.row("file", "`%s`, %d bytes, ONNX opset %d", f.Name, f.Bytes, c.e.Model.Opset)
	}
	c.row("environment", "`%s`, specification `%.12s`", c.e.Spec.ID, onnx.SpecHash(c.e.Spec))
	c.row("checkpoint", "step %d of the run `%s`, seed %d", m.Step, filepath.Base(c.e.Run), m.Seed)
	n := 0
	for _, t := range c.e.Model.Graph.Tensors {
		if t.Type == format.Float32 {
			n += len(t.Floats)
		}
	}
	c.row("numbers", "%d, in %d operators", n, len(c.e.Model.Graph.Nodes))
	c.row("program", "gymctl %s%s", c.version, ofCommit(commit))
	c.row("kernels of training", "%s", m.Kernels)
}

func ofCommit(commit string) string {
	if commit == "" {
		return ""
	}
	return ", commit " + commit
}

func agentOf(agent string) string {
	switch agent {
	case "ppo":
		return "PPO"
	case "ddqn":
		return "double DQN"
	case "maml":
		return "MAML (the weights before they adapt)"
	}
	return agent
}

// fits says what the policy takes and what it knew.
func (c *card) fits() {
	cfg := &c.e.Cfg
	c.line("\n## What it was trained on\n")
	c.line("| | |\n|---|---|")
	if w := c.e.Meta.Extra["workload"]; w != "" {
		c.row("workload", "%s", w)
	}
	if h := c.e.Meta.Extra["trace_sha256"]; h != "" {
		c.row("sha256 of the trace", "`%s`", h)
	}
	if cl := c.e.Meta.Extra["cluster"]; cl != "" {
		c.row("cluster", "%s", cl)
	}
	if est := cfg.Estimates(); !est.IsZero() {
		c.row("what it knew of run times", "%s", est.Label())
	}
	c.row("observation", "%s", fieldsOf(c.e))
	a := c.e.Spec.Action
	switch {
	case len(a.Sizes) == 1:
		c.row("action", "one of %d", a.Sizes[0])
	case len(a.Sizes) > 1:
		c.row("action", "one of each of %v", a.Sizes)
	case len(a.Low) > 0:
		c.row("action", "%d numbers", len(a.Low))
	}
}

func fieldsOf(e *arena.Exported) string {
	var parts []string
	for _, f := range e.Spec.Obs {
		text := fmt.Sprintf("`%s` %s", f.Name, format.ShapeString(f.Shape))
		if f.Critic {
			text += " (for the value alone)"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%s: %s", plain.Count(e.Spec.ObsLen(), "number", "numbers"), strings.Join(parts, ", "))
}

func (c *card) training(lines []rundir.Line) {
	cfg := &c.e.Cfg
	c.line("\n## Training\n")
	c.line("| | |\n|---|---|")
	c.row("budget", "%d steps in %d environments at a time", cfg.Train.Steps, cfg.Train.Envs)
	var last *rundir.Line
	for i := range lines {
		if lines[i].Eval == nil && lines[i].Step <= c.e.Meta.Step {
			last = &lines[i]
		}
	}
	if last != nil {
		c.row("at this checkpoint", "%d episodes, %d updates", last.Episodes, last.Updates)
	}
	if cfg.Train.Imitate != "" {
		c.row("before that", "it imitated `%s`", cfg.Train.Imitate)
	}
	c.row("settings", "`%s` of the run", rundir.ConfigFile)
}

func (c *card) validation(b rundir.BestCheckpoint) {
	c.line("\n## Validation\n")
	is := "This checkpoint is the run's best"
	if b.Step != c.e.Meta.Step {
		is = fmt.Sprintf("The run's best checkpoint is another, of step %d,", b.Step)
	}
	c.line("%s by %s: %s. Training does not use these episodes.", is, b.Metric, rundir.ShowScore(b.Metric, b.Value))
}

// results are those of eval/test.json.
type results struct {
	windows, episodes int // at most one of them is not 0
	streams           *report.StreamReport
	metric            string
	policies          []report.Result
	paired            []statistic.Paired
}

// readResults reads eval/test.json, nil if there is none or it compares how policies adapt.
func readResults(name string) (*results, error) {
	b, err := ordinary.Read(name, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	e, err := report.Read(b)
	if err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", name, err)}
	}
	r := &results{}
	if r.metric, r.policies, r.paired = report.Results(e); len(r.policies) == 0 {
		return nil, nil
	}
	switch e := e.(type) {
	case *report.Report:
		r.windows = len(e.Windows)
	case *report.EpisodeReport:
		r.episodes = e.Episodes
	case *report.StreamReport:
		r.streams = e
	}
	return r, nil
}

func (c *card) results(r *results) {
	c.line("\n## Against its rivals\n")
	if r == nil {
		c.line("The run's folder has no evaluation (`%s`). `gymctl eval --checkpoint %s` makes one.", rundir.EvalFile,
			filepath.Base(c.e.Run))
		return
	}
	m := report.MetricOf(c.e.Spec.ID)
	if r.streams != nil {
		c.streams(r)
		return
	}
	on := plain.Count(r.windows, "test window", "test windows")
	if r.windows == 0 {
		on = plain.Count(r.episodes, "test episode", "test episodes")
	}
	c.line("On %s that neither training nor the choice of the checkpoint used. IQM is the mean of the middle half; "+
		"brackets are 95 %% bootstrap intervals.\n", on)
	agent := ""
	if i := slices.IndexFunc(r.policies, func(p report.Result) bool { return p.Kind == report.KindCheckpoint }); i >= 0 {
		agent = r.policies[i].Name
	}
	if agent != "" && agent != c.e.Name {
		defer c.line("\nThe evaluation was that of `%s`, not of this checkpoint.", agent)
	}
	difference := map[string]statistic.Paired{}
	for _, p := range r.paired {
		if p.A == agent {
			difference[p.B] = p
		}
	}
	c.line("| policy | what | IQM | 95 %% | mean | this policy against it | wins |\n|---|---|---|---|---|---|---|")
	for _, p := range r.policies {
		show, s := m.Show, p.Score
		if p.Return != nil && s == nil {
			s, show = &statistic.Statistic{IQM: p.Return.IQM, Mean: p.Return.Mean, CI95: p.Return.CI95}, report.Decimals
		}
		if s == nil {
			c.line("| %s | %s | | | | | |", c.shown(p), kindOf(p.Kind))
			continue
		}
		against, wins := "", ""
		if d, ok := difference[p.Name]; ok {
			against, wins = report.PairedText(d), fmt.Sprintf("%.0f %%", 100*d.WinRate)
		}
		c.line("| %s | %s | %s | [%s, %s] | %s | %s | %s |", c.shown(p), kindOf(p.Kind), show(s.IQM), show(s.CI95[0]),
			show(s.CI95[1]), show(s.Mean), against, wins)
	}
	returns := r.metric == report.Return
	what, better := "the "+m.Title, "lower"
	if returns {
		what = "the sum of rewards of an episode"
	}
	if returns || m.Higher {
		better = "higher"
	}
	c.line("\nThe numbers are %s; %s is better.", what, better)
}

// streams is results of a comparison on streams.
func (c *card) streams(r *results) {
	s, m := r.streams, report.MetricOf(c.e.Spec.ID)
	what := fmt.Sprintf("On %s of jobs that neither training nor the choice of the checkpoint used, %d of which count "+
		"in each",
		strings.Replace(s.Units(), "draw", "independent draw", 1), s.Streams.Counted)
	if s.Streams.Blocks != nil {
		what = fmt.Sprintf("On the recorded test part, %d jobs in %s of time", s.Streams.Counted, s.Units())
	}
	c.line("%s. Brackets are 95 %% intervals; ahead and behind hold at 5 %% for all rivals together (Holm).\n", what)
	c.line("Run times: %s; %s.\n", s.Assumptions.RunTimes, s.Assumed())
	agent := ""
	for i := range r.policies {
		if p := &r.policies[i]; agent == "" && p.Kind == report.KindCheckpoint {
			agent = p.Name
		}
	}
	c.line("| policy | what | mean | 95 %% | this policy against it | verdict |\n|---|---|---|---|---|---|")
	for _, p := range r.policies {
		if p.Stream == nil {
			c.line("| %s | %s | | | | |", c.shown(p), kindOf(p.Kind))
			continue
		}
		in, against, verdict := "", "", ""
		if ci := p.Stream.CI95; ci.Known() {
			in = "[" + m.Show(ci[0]) + ", " + m.Show(ci[1]) + "]"
		}
		for i := range s.Paired {
			if d := &s.Paired[i]; d.A == agent && d.B == p.Name {
				against, verdict = report.ReplicatedText(d), string(d.Verdict)
			}
		}
		c.line("| %s | %s | %s | %s | %s | %s |", c.shown(p), kindOf(p.Kind), m.Show(float64(p.Stream.Mean)), in, against,
			verdict)
	}
	better := "lower"
	if m.Higher {
		better = "higher"
	}
	c.line("\nThe numbers are the %s; %s is better.", m.Title, better)
	if agent != "" && agent != c.e.Name {
		c.line("\nThe evaluation was that of `%s`, not of this checkpoint.", agent)
	}
}

// shown is the name of a policy in a table, with a mark if it stops running jobs.
func (c *card) shown(p report.Result) string {
	return report.Marked(c.e.Spec.ID, p.Kind, p.Name, p.Name)
}

func kindOf(kind string) string {
	if kind == report.KindCheckpoint {
		return "this run"
	}
	return kind
}

func (c *card) loading(f File, r *results) {
	name := f.Name
	if name == "." || name == "-" {
		name = "policy.onnx"
	}
	c.line("\n## How to play it\n")
	as := "Beside rules, on held-out windows or episodes"
	if r != nil {
		as = "As in the table above" + c.besides(r)
	}
	c.line("%s:\n\n```\ngymctl eval --policy-onnx %s --name mine%s%s\n```\n", as, name, c.worldFlags(), c.evalFlags(r))
	c.line("In Python, with ONNX Runtime. The observation is one vector: the fields above side by side, in that order.\n" +
		"\n```python")
	c.line("import numpy as np\nimport onnxruntime\n")
	c.line("session = onnxruntime.InferenceSession(%q)", name)
	masked := len(c.e.Spec.Action.Sizes) > 0
	if masked {
		c.line("feed = {\"obs\": obs[None].astype(np.float32), \"action_mask\": mask[None].astype(bool)}")
	} else {
		c.line("feed = {\"obs\": obs[None].astype(np.float32)}")
	}
	c.line("action = session.run([\"action\"], feed)[0][0]\n```")
}

// evalFlags returns the flags of an evaluation that the model does not contain either: the workload and the baselines,
// so that the command gives the table of r again.
func (c *card) evalFlags(r *results) string {
	if r == nil {
		return ""
	}
	var flags string
	var baselines []string
	searches := false
	for _, p := range r.policies {
		if p.Kind != report.KindCheckpoint && p.Kind != report.KindModel && p.Kind != report.KindExternal {
			baselines = append(baselines, p.Name)
			searches = searches || policyname.Of(p.Name).Ahead == policyname.Rollout
		}
	}
	if len(baselines) > 0 {
		flags += " --policies " + strings.Join(baselines, ",")
	}
	e := &c.e.Cfg.Eval
	switch {
	case r.streams != nil && r.streams.Streams.Blocks == nil:
		flags += fmt.Sprintf(" --draws %d --jobs %d", r.streams.Streams.Units, r.streams.Streams.Counted)
		if e.Streams.Warm != 0 {
			flags += fmt.Sprintf(" --set eval.streams.warm=%d", e.Streams.Warm)
		}
	case r.windows > 0:
		flags += fmt.Sprintf(" --windows %d", r.windows)
	case r.episodes > 0:
		flags += fmt.Sprintf(" --episodes %d", r.episodes)
	}
	if e.Seeds != 1 { // which environments that are played once do not take
		flags += fmt.Sprintf(" --seeds %d", e.Seeds)
	}
	if searches {
		flags += " --budget " + e.Rollout.Budget.String()
	}
	if e.Seed != 1 {
		flags += fmt.Sprintf(" --set eval.seed=%d", e.Seed)
	}
	if e.Greedy != "" {
		flags += " --set eval.greedy=" + string(e.Greedy)
	}
	if e.Hindsight != 0 {
		flags += fmt.Sprintf(" --set eval.hindsight=%d", e.Hindsight)
	}
	return flags
}

// besides says what of the table the command cannot give again.
func (c *card) besides(r *results) string {
	var without []string
	for _, p := range r.policies {
		if p.Kind == report.KindExternal || p.Kind == report.KindModel {
			without = append(without, "`"+p.Name+"`")
		}
	}
	if e := &c.e.Cfg.Eval; e.Hold != (tuned.Hold{}) || e.Index != (tuned.Index{}) {
		without = append(without, "the weights of `eval.hold` and `eval.index` in the run's `"+rundir.ConfigFile+"`")
	}
	if len(without) == 0 {
		return ""
	}
	return ", without " + strings.Join(without, ", ")
}

// worldFlags are what the model does not bring along.
func (c *card) worldFlags() string {
	flags, cfg := "", &c.e.Cfg
	if cfg.Trace.File != "" {
		flags += " --trace " + filepath.Base(cfg.Trace.File)
	}
	if d := cfg.Descriptor(); d.Takes.Cluster && !strings.Contains(c.e.Model.Meta(onnx.KeyRun), "\ncluster: ") {
		flags += " --cluster " + filepath.Base(cfg.Cluster)
	}
	if file := cfg.Estimates().File; file != "" {
		flags += " --estimates gbdt:" + filepath.Base(file)
	}
	return flags
}
