package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// tensorBoardPython is the environment variable with the Python interpreter that can import tensorboard; make
// tensorboard provides one.
const tensorBoardPython = "CLUSTERGYM_TENSORBOARD_PYTHON"

// readEvents prints the contents of a run directory in TensorBoard: {tag: [[step, value], …]}.
const readEvents = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
json.dump({t: [[e.step, e.value] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}, sys.stdout)
`

// tensorBoard returns a Python that can import tensorboard.
func tensorBoard(t *testing.T) string {
	t.Helper()
	python := os.Getenv(tensorBoardPython)
	if python == "" {
		t.Skip(tensorBoardPython + " names no Python with tensorboard (make tensorboard does)")
	}
	if out, err := exec.Command(python, "-c", "import tensorboard").CombinedOutput(); err != nil { //nolint:gosec // the caller's interpreter
		t.Fatalf("%s cannot import tensorboard: %v\n%s", python, err, out)
	}
	return python
}

// readSessions prints what TensorBoard's hparams plug-in makes of a folder of runs: the table of its page.
const readSessions = `
import json, sys
from google.protobuf import json_format
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups
m = plugin_event_multiplexer.EventMultiplexer()
m.AddRunsFromDirectory(sys.argv[1])
m.Reload()
provider = data_provider.MultiplexerDataProvider(m, sys.argv[1])
context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
ctx = RequestContext()
experiment = get_experiment.Handler(ctx, context, "", api_pb2.GetExperimentRequest()).run()
request = api_pb2.ListSessionGroupsRequest(start_index=0, slice_size=100, allowed_statuses=[0, 1, 2, 3])
groups = list_session_groups.Handler(ctx, context, "", request).run()
json.dump({"experiment": json_format.MessageToDict(experiment), "groups": json_format.MessageToDict(groups)}, sys.stdout)
`

// TensorBoard's hparams plug-in shows each run with its keys, the evaluation of its agent, and that it has ended.
func TestTensorBoardComparesRunsByTheirKeys(t *testing.T) {
	python, dir := tensorBoard(t), t.TempDir()
	want := map[string]*TrainResult{}
	for i, rate := range []float64{1e-3, 3e-3} {
		cfg := tinyRun("ppo")
		cfg.PPO.LR, cfg.Train.Steps = rate, 500
		run := filepath.Join(dir, fmt.Sprint("run", i))
		want[fmt.Sprint("run", i)] = trainTo(t, cfg, run, TrainOptions{Tags: "sb3"})
	}
	c := exec.Command(python, "-c", readSessions, dir) //nolint:gosec // the caller's interpreter
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var got struct {
		Experiment struct {
			HparamInfos []struct{ Name, Type string }
		}
		Groups struct {
			SessionGroups []struct {
				Hparams  map[string]any
				Sessions []struct {
					Name, Status string
					MetricValues []struct {
						Name         struct{ Group, Tag string }
						Value        float64
						TrainingStep json.Number
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !slices.ContainsFunc(got.Experiment.HparamInfos,
		func(i struct{ Name, Type string }) bool { return i.Name == "ppo.lr" && i.Type == "DATA_TYPE_FLOAT64" }) {
		t.Errorf("ppo.lr is none of the keys: %+v", got.Experiment.HparamInfos)
	}
	if len(got.Groups.SessionGroups) != 2 {
		t.Fatalf("%d sessions: %s", len(got.Groups.SessionGroups), out)
	}
	for _, g := range got.Groups.SessionGroups {
		s := g.Sessions[0]
		name := filepath.Dir(s.Name)
		r := want[name]
		if r == nil || s.Status != "STATUS_SUCCESS" {
			t.Fatalf("session %q: %s", s.Name, s.Status)
		}
		if rate := g.Hparams["ppo.lr"]; name == "run0" && rate != 1e-3 || name == "run1" && rate != 3e-3 {
			t.Errorf("%s has ppo.lr %v of %v", name, rate, g.Hparams)
		}
		if g.Hparams["agent"] != "ppo" || g.Hparams["eval.whole"] != true || g.Hparams["ppo.network.hidden"] != "[16]" ||
			g.Hparams["env.window"] != 32.0 {
			t.Errorf("%s has %v", name, g.Hparams)
		}
		e := r.Eval.(*report.Report)
		values := map[string]float64{}
		for _, v := range s.MetricValues {
			values[v.Name.Tag] = v.Value
		}
		for tag, v := range map[string]float64{
			"test/jct_s":                             e.Policies[0].Metrics.JCT.Mean,
			"test/jct_s/sjf+skip":                    e.Policies[2].Metrics.JCT.Mean,
			"test/jct_s_difference_percent/sjf+skip": e.Paired[2].Difference,
			"test/gpu_utilization":                   e.Policies[0].Metrics.Utilization.Mean,
		} {
			if values[tag] != float64(float32(v)) {
				t.Errorf("%s: %s is %v, want %v", name, tag, values[tag], v)
			}
		}
	}
}

// TensorBoard reads every tag, step and value that runs write, and of a run that was resumed from an earlier checkpoint
// nothing that progress.jsonl no longer has.
func TestTensorBoardReadsRuns(t *testing.T) {
	python := tensorBoard(t)
	for _, tags := range []string{"sb3", "cleanrl"} {
		for _, resumed := range []int{0, 1, 12} {
			cfg, dir := tinyRun("ppo"), t.TempDir()
			cfg.Train.Steps = 1000
			run := filepath.Join(dir, "tiny")
			now := time.Unix(1_700_000_000, 0)
			clock := func() time.Time { now = now.Add(time.Millisecond); return now } // many restarts within a second
			trainTo(t, cfg, dir, TrainOptions{NoEval: true, Tags: tags, Now: clock})
			old, _ := progressOf(t, run)
			for range resumed {
				// As after a crash at step 1000, with later checkpoints gone.
				for _, s := range steps(t, run) {
					if s > 500 {
						if err := os.RemoveAll(checkpoint.Dir(filepath.Join(run, rundir.Checkpoints), s)); err != nil {
							t.Fatal(err)
						}
					}
				}
				// A longer run anneals the learning rate more slowly: other learning from here on, so that what was
				// forgotten can be told from what was not.
				cfg.Train.Steps += 100
				trainTo(t, cfg, dir, TrainOptions{NoEval: true, Tags: tags, Now: clock, Resume: true})
			}
			if files, err := filepath.Glob(filepath.Join(run, "events.out.tfevents.*")); err != nil || len(files) != 1+resumed {
				t.Fatalf("event files %v (%v)", files, err)
			}
			records, validations := progressOf(t, run)
			if resumed > 0 && fmt.Sprint(records[len(records)-1].Learn) == fmt.Sprint(old[len(old)-1].Learn) {
				t.Fatal("the resumed run learns the same: nothing is tested")
			}
			compareEvents(t, fmt.Sprintf("%s, resumed %d times", tags, resumed), python, run, tags, records, validations)
		}
	}
}

func compareEvents(t *testing.T, what, python, run, tags string, records, validations []rundir.Line) {
	t.Helper()
	c := exec.Command(python, "-c", readEvents, run) //nolint:gosec // the caller's interpreter
	var said bytes.Buffer                            // TensorBoard tells of everything that it forgets
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var got map[string][][2]float64
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	names := map[string]map[string]string{
		"sb3": {
			"return": "rollout/ep_rew_mean", "length": "rollout/ep_len_mean", "fps": "time/fps", "lr": "train/learning_rate",
			"entropy": "train/entropy",
			"elapsed": "time/time_elapsed", "total": "time/total_timesteps", "updates": "time/iterations",
			"jct": "rollout/jct_s", "eval": "eval/jct_s",
		},
		"cleanrl": {
			"return": "charts/episodic_return", "length": "charts/episodic_length", "fps": "charts/SPS",
			"lr": "charts/learning_rate", "entropy": "losses/entropy",
			"elapsed": "time/time_elapsed", "total": "time/total_timesteps", "updates": "time/iterations",
			"jct": "rollout/jct_s", "eval": "eval/jct_s",
		},
	}[tags]
	want := map[string][][2]float64{}
	add := func(name string, step int64, v *float64) {
		if v != nil {
			tag := names[name]
			want[tag] = append(want[tag], [2]float64{float64(step), float64(float32(*v))})
		}
	}
	for _, l := range records {
		updates, total := float64(l.Updates), float64(l.Step)
		add("return", l.Step, l.Return)
		add("length", l.Step, l.Length)
		add("fps", l.Step, &l.Timing.PerSecond)
		add("elapsed", l.Step, &l.Timing.Wall)
		add("total", l.Step, &total)
		add("updates", l.Step, &updates)
		for name, v := range map[string]float64{"lr": l.Learn["learning_rate"], "entropy": l.Learn["entropy"]} {
			add(name, l.Step, &v)
		}
		if v, ok := l.Info["jct_s"]; ok {
			add("jct", l.Step, &v)
		}
	}
	for _, l := range validations {
		add("eval", l.Step, &l.Eval.JCT)
	}
	for name, tag := range names {
		if len(want[tag]) == 0 {
			t.Errorf("%s: nothing to compare %s with", what, name)
		}
		if fmt.Sprint(got[tag]) != fmt.Sprint(want[tag]) {
			t.Errorf("%s: TensorBoard reads of %s\n%v, want\n%v", what, tag, got[tag], want[tag])
		}
	}
	// Every other number that training reports is there as often.
	all := 0
	for _, l := range records {
		all += len(l.Learn) + len(l.Info) + 4 // time/*
		if l.Return != nil {
			all += 2
		}
	}
	all += len(validations)
	values := 0
	for _, v := range got {
		values += len(v)
	}
	if values != all {
		t.Errorf("%s: TensorBoard reads %d values, want %d", what, values, all)
	}
}
