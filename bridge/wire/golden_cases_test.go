package wire

import (
	"math"
	"time"

	"clustergym/env"
)

// golden is a message of the golden files, in every encoding.
type golden struct {
	name  string
	value any // what Writer.Value takes
}

func ints(d DType, shape []int, v ...int64) Array {
	a := Array{DType: d, Shape: shape, Data: make([]byte, 0, len(v)*d.Size())}
	for _, x := range v {
		for k := range d.Size() {
			a.Data = append(a.Data, byte(uint64(x)>>(8*k)))
		}
	}
	return a
}

func f32s(shape []int, v ...float32) Array {
	a := Array{DType: F32, Shape: shape, Data: make([]byte, 4*len(v))}
	PutF32(a.Data, v)
	return a
}

func f64s(v ...float64) Array {
	a := Array{DType: F64, Shape: []int{len(v)}, Data: make([]byte, 8*len(v))}
	PutF64(a.Data, v)
	return a
}

func bools(v ...bool) Array {
	a := Array{DType: Bool, Shape: []int{len(v)}, Data: make([]byte, len(v))}
	PutBool(a.Data, v)
	return a
}

// exampleSpec is the environment of the examples: a queue of two jobs in view, of which one is picked.
func exampleSpec() env.Spec {
	return env.Spec{
		ID: "Example-v1",
		Obs: []env.Field{
			{Name: "free", Low: 0, High: 1, Unit: "fraction", Doc: "share of the GPUs that are free"},
			{Name: "jobs", Shape: []int{2, 2}, Low: 0, High: float32(math.Inf(1)), Unit: "hours",
				Doc: "age and estimate of each job"},
		},
		Action:   env.ActionSpec{Sizes: []int{3}},
		MaxSteps: 100,
		NoOp:     2,
		Solved:   math.NaN(),
		Tau:      time.Hour,
	}
}

func request(id int64, op string, more ...Pair) Map {
	return append(Map{{"op", op}, {"id", id}}, more...)
}

func reply(re int64, op string, more ...Pair) Map {
	return append(Map{{"re", re}, {"op", op}}, more...)
}

// stepFields are the fields of a step's reply for two environments, the second of which ended.
func stepFields() []Pair {
	return []Pair{
		{"obs", Map{
			{"free", f32s([]int{2, 1}, 0.5, 1)},
			{"jobs", f32s([]int{2, 2, 2}, 0, 1.5, 0.25, 3, 0, 0, 0, 0)},
		}},
		{"r", f64s(-0.25, 1)},
		{"te", bools(false, true)},
		{"tr", bools(false, false)},
		{"info", Map{
			{"action_mask", ints(I8, []int{2, 3}, 1, 1, 1, 0, 0, 1)},
			{"_action_mask", bools(true, true)},
			{"elapsed_s", f64s(60, 3600)},
			{"_elapsed_s", bools(true, true)},
			{"episode", Map{{"r", f64s(0, 12.5)}, {"l", ints(I64, []int{2}, 0, 40)}}},
			{"_episode", bools(false, true)},
		}},
	}
}

func requests() []golden {
	two, three := []int{2}, []int{3}
	return []golden{
		{"hello", request(1, OpHello, Pair{"proto", []int{1, 1}},
			Pair{"client", Map{{"name", "example"}, {"version", "0.1"}, {"lang", "python"}}},
			Pair{"enc", []string{"ext", "mpnp"}}, Pair{"feat", []string{"async", "resume", "snapshot", "render"}})},
		{"hello-token", request(1, OpHello, Pair{"proto", []int{1, 1}},
			Pair{"client", Map{{"name", "browser"}, {"version", "0.1"}, {"lang", "javascript"}}},
			Pair{"enc", []string{"json"}}, Pair{"feat", []any{}}, Pair{"auth", "s3cret"})},
		{"hello-resume", request(1, OpHello, Pair{"proto", []int{1, 1}},
			Pair{"client", Map{{"name", "example"}, {"version", "0.1"}, {"lang", "python"}}},
			Pair{"enc", []string{"ext"}}, Pair{"feat", []string{"resume"}},
			Pair{"resume", Map{{"session", "5f0c2a"}, {"token", "00112233445566778899aabbccddeeff"},
				{"last", Map{{"1", 17}, {"2", 18}}}}})},
		{"open", request(2, OpOpen, Pair{"env", "Example-v1"})},
		{"open-all", request(2, OpOpen, Pair{"env", "Example-v1"}, Pair{"n", 64},
			Pair{"kwargs", Map{{"gpus", 64}, {"load", 0.8}, {"workload", "synth"}}},
			Pair{"autoreset", "same_step"}, Pair{"obs", "dict"}, Pair{"mask", []string{"info", "obs"}},
			Pair{"invalid", "penalty"}, Pair{"penalty", 0.1}, Pair{"info", []string{"queue", "utilisation"}},
			Pair{"render_mode", "ansi"}, Pair{"recv", "any"}, Pair{"batch", 16})},
		{"reset", request(3, OpReset, Pair{"h", 1}, Pair{"seed", 7})},
		{"reset-unseeded", request(3, OpReset, Pair{"h", 1}, Pair{"seed", nil})},
		{"reset-ids", request(4, OpReset, Pair{"h", 1}, Pair{"seed", []any{5, nil}}, Pair{"ids", ints(I64, two, 3, 0)},
			Pair{"options", []any{Map{{"split", "test"}, {"window", 4}}, Map{}}})},
		{"reset-which", request(5, OpReset, Pair{"h", 1}, Pair{"which", bools(false, true, true, false)},
			Pair{"options", Map{{"task", []float64{0.5}}}})},
		{"step-discrete", request(6, OpStep, Pair{"h", 1}, Pair{"a", ints(I64, two, 0, 2)})},
		{"step-list", request(6, OpStep, Pair{"h", 1}, Pair{"a", []int{0, 2}})},
		{"step-multi", request(7, OpStep, Pair{"h", 2}, Pair{"a", ints(I32, []int{2, 3}, 0, 1, 2, 3, 4, 5)})},
		{"step-box", request(8, OpStep, Pair{"h", 3}, Pair{"a", f32s([]int{2, 2}, -1, 0.5, 0, 1)})},
		{"step-both", request(9, OpStep, Pair{"h", 4},
			Pair{"a", Map{{"cont", f32s([]int{1, 2}, 0.25, -0.25)}, {"disc", ints(I64, []int{1, 1}, 3)}}})},
		{"step-ids", request(10, OpStep, Pair{"h", 1}, Pair{"a", ints(U8, three, 2, 2, 1)}, Pair{"ids", []int{5, 1, 9}})},
		{"send", request(11, OpSend, Pair{"h", 1}, Pair{"a", ints(I64, two, 1, 1)}, Pair{"ids", ints(I32, two, 4, 2)})},
		{"recv", request(12, OpRecv, Pair{"h", 1})},
		{"masks", request(13, OpMasks, Pair{"h", 1}, Pair{"ids", []int{1}})},
		{"call-set_task", request(14, OpCall, Pair{"h", 1}, Pair{"method", "set_task"},
			Pair{"args", Map{{"task", []float64{0.5}}}}, Pair{"ids", []int{0, 1}})},
		{"call-sample_tasks", request(15, OpCall, Pair{"h", 1}, Pair{"method", "sample_tasks"},
			Pair{"args", Map{{"n", 2}, {"seed", 7}}})},
		{"render", request(16, OpRender, Pair{"h", 1}, Pair{"ids", []int{0}}, Pair{"mode", "ansi"})},
		{"snapshot", request(17, OpSnapshot, Pair{"h", 1}, Pair{"ids", []int{0, 1}})},
		{"restore", request(18, OpRestore, Pair{"h", 1}, Pair{"ids", []int{2, 3}},
			Pair{"blob", []byte{0xC6, 0x01, 0x00, 0xFF}})},
		{"simulate", request(22, OpSimulate,
			Pair{"kwargs", Map{{"trace.file", "jobs.csv"}, {"cluster", "2x2"}, {"estimates", "trace"}}},
			Pair{"plays", []any{Map{{"policy", ""}, {"seed", 1}}, Map{{"policy", "sjf+skip"}, {"seed", 1}}}})},
		{"decide-first", request(23, OpDecide, Pair{"h", 2})},
		{"decide", request(24, OpDecide, Pair{"h", 2}, Pair{"plays", []any{
			Map{{"op", ints(U8, two, 0, 1)}, {"job", ints(I32, two, 4, 2)}}}})},
		{"decide-gpus", request(25, OpDecide, Pair{"h", 2}, Pair{"plays", []any{
			Map{{"op", []int{0, 3}}, {"job", []int{5, 1}}, {"n", []int{0, 4}}, {"at", []int{2, 0}}, {"gpus", []int{2, 3}},
				{"until", 90.0}}}})},
		{"close", request(19, OpClose, Pair{"h", 1})},
		{"ping", request(20, OpPing, Pair{"t", 1.25})},
		{"bye", request(21, OpBye)},
	}
}

func replies() []golden {
	s := exampleSpec()
	inf := math.Inf(1)
	spec := Map{{"id", s.ID}, {"version", 1}, {"max_episode_steps", s.MaxSteps}, {"reward_threshold", nil},
		{"reward_range", []float64{-inf, inf}}, {"nondeterministic", false}, {"scenario_sha", ""}}
	field := func(name string, shape []int, high float64, unit, doc string) Map {
		return Map{{"name", name}, {"shape", shape}, {"low", 0.0}, {"high", high}, {"unit", unit}, {"doc", doc}}
	}
	meta := Map{
		{"fields", []any{
			field("free", []int{}, 1, "fraction", "share of the GPUs that are free"),
			field("jobs", []int{2, 2}, inf, "hours", "age and estimate of each job"),
		}},
		{"info", []any{field("queue", []int{}, inf, "jobs", "jobs that wait")}},
		{"noop", s.NoOp}, {"tau_s", s.Tau.Seconds()}, {"autoreset", "next_step"}, {"snapshots", true},
		{"render_modes", []string{"ansi"}}, {"methods", []string{"set_task", "get_task", "sample_tasks"}},
	}
	tasks := []any{field("load", []int{}, 2, "", "work that arrives for each GPU")}
	fin := Map{
		{"ids", ints(I32, []int{1}, 1)},
		{"obs", Map{{"free", f32s([]int{1, 1}, 1)}, {"jobs", f32s([]int{1, 2, 2}, 0, 0, 0, 0)}}},
		{"info", Map{{"episode", Map{{"r", f64s(12.5)}, {"l", ints(I64, []int{1}, 40)}}}, {"_episode", bools(true)}}},
	}
	step := stepFields()
	same := append(step[:4:4], Pair{"info", step[4].Value.(Map)[:4]}, Pair{"fin", fin})
	return []golden{
		{"welcome", reply(1, OpWelcome, Pair{"proto", 1},
			Pair{"server", Map{{"name", "clustergym"}, {"version", "0.3.0"}, {"commit", "6e0c872"}}},
			Pair{"enc", "ext"}, Pair{"feat", []string{"async", "resume", "snapshot", "render"}},
			Pair{"session", "5f0c2a"}, Pair{"resume", "00112233445566778899aabbccddeeff"},
			Pair{"limits", Map{{"frame_in", 16 << 20}, {"frame_out", 64 << 20}, {"envs", 4096}, {"handles", 64}, {"inflight", 4},
				{"sessions", 256}, {"idle_s", 900.0}, {"resume_s", 120.0}, {"step_s", 60.0}, {"ping_s", 30.0}}})},
		{"open",
			reply(2, OpOpen, Pair{"h", 1}, Pair{"obs_space", ObsSpace(s, ViewDict, false)}, Pair{"act_space", ActionSpace(s)},
				Pair{"spec", spec}, Pair{"meta", meta}, Pair{"tasks", tasks})},
		{"simulate", reply(22, OpSimulate, Pair{"h", 2}, Pair{"cluster", Map{{"name", "2x2"}, {"gpus", 4}, {"types", []any{}},
			{"nodes", []string{"n0", "n1"}}, {"node_gpus", ints(I32, []int{2}, 2, 2)}, {"node_rack", ints(I32, []int{2}, 0, 0)},
			{"node_type", ints(I32, []int{2}, 0, 0)}}},
			Pair{"jobs", 3}, Pair{"refused", 0}, Pair{"estimates", "trace"}, Pair{"estimates_why", "trace (submit-time)"},
			Pair{"plays", []any{
				Map{{"policy", ""}, {"rung", "submit-time"}, {"asks_nothing", false}},
				Map{{"policy", "sjf+skip"}, {"rung", "submit-time"}, {"asks_nothing", false}}}})},
		{"decide", reply(24, OpDecide, Pair{"plays", []any{Map{
			{"play", 0}, {"now", 60.0},
			{"jobs", Array{DType: F64, Shape: []int{1, 13}, Data: f64s(60, 2, 1, 0, 0, 3, 0, 300, quiet, quiet, quiet, quiet,
				quiet).Data}},
			{"text", []string{"j2", "ann", "", "v100|a100"}},
			{"events", Array{DType: F64, Shape: []int{1, 6}, Data: f64s(1, 0, 0, 0, 80, 2).Data}},
			{"gpus", ints(I32, []int{2}, 0, 1)},
			{"ended", Array{DType: F64, Shape: []int{1, 10}, Data: f64s(1, 10, 60, 50, 50, 0, 0, 0, 0, 0).Data}},
			{"queue", ints(I32, []int{1}, 2)}, {"running", ints(I32, []int{1}, 0)}, {"idle", 2.0},
			{"free", ints(I16, []int{4}, 0, 0, 1000, 1000)},
		}}})},
		{"open-all",
			reply(2, OpOpen, Pair{"h", 1}, Pair{"obs_space", ObsSpace(s, ViewDict, true)}, Pair{"act_space", ActionSpace(s)},
				Pair{"spec", spec}, Pair{"meta", meta})},
		{"reset", reply(3, OpReset,
			Pair{"obs", Map{{"free", f32s([]int{2, 1}, 1, 1)}, {"jobs", f32s([]int{2, 2, 2}, 0, 1.5, 0, 3, 0, 2, 0, 0.5)}}},
			Pair{"info", Map{{"action_mask", ints(I8, []int{2, 3}, 1, 1, 1, 1, 1, 1)}, {"_action_mask", bools(true, true)}}})},
		{"reset-ids", reply(4, OpReset, // of a handle with obs flat
			Pair{"obs", f32s([]int{2, 5}, 1, 0, 1.5, 0, 3, 1, 0, 2, 0, 0.5)},
			Pair{"info", Map{{"seed", ints(U64, []int{2}, 0, 6143207154328577)}, {"_seed", bools(false, true)}}},
			Pair{"ids", ints(I32, []int{2}, 3, 0)})},
		{"step", reply(6, OpStep, step...)},
		{"step-fin", reply(6, OpStep, same...)},
		{"step-ids", reply(10, OpStep, append(step[:4:4], Pair{"info", Map{}}, Pair{"ids", ints(I32, []int{2}, 5, 1)})...)},
		{"send", reply(11, OpSend)},
		{"recv", reply(12, OpRecv, append(step[:4:4], Pair{"info", Map{}}, Pair{"ids", ints(I32, []int{2}, 4, 2)})...)},
		{"step-fault", reply(6, OpStep, append(step[:4:4], Pair{"info", Map{}},
			Pair{"fault",
				[]any{Map{{"code", "env_fault"}, {"msg", "the environment panicked in step: see fault 5d1c2f in the server's log"},
					{"env", []int{1}}}}})...)},
		{"masks", reply(13, OpMasks, Pair{"mask", ints(I8, []int{1, 3}, 0, 0, 1)}, Pair{"ids", ints(I32, []int{1}, 1)})},
		{"call-set_task", reply(14, OpCall, Pair{"ret", []any{nil, nil}})},
		{"call-sample_tasks", reply(15, OpCall, Pair{"ret", []any{[]float64{0.5}, []float64{1.75}}})},
		{"render", reply(16, OpRender, Pair{"render", []string{"queue 2 │ free 1.00\n"}},
			Pair{"ids", ints(I32, []int{1}, 0)})},
		{"render-rgb", reply(16, OpRender, Pair{"render", ints(U8, []int{1, 1, 2, 3}, 0, 0, 0, 255, 128, 0)})},
		{"snapshot", reply(17, OpSnapshot, Pair{"blob", []byte{0xC6, 0x01, 0x00, 0xFF}},
			Pair{"ids", ints(I32, []int{2}, 0, 1)})},
		{"restore",
			reply(18, OpRestore, step[0], step[1], step[2], step[3], Pair{"first", bools(false, false)}, Pair{"info", Map{}},
				Pair{"ids", ints(I32, []int{2}, 2, 3)})},
		{"close", reply(19, OpClose)},
		{"ping", reply(20, OpPing, Pair{"t", 1.25}, Pair{"qlen", 0})},
		{"bye", reply(21, OpBye)},
		{"notice", reply(0, OpNotice, Pair{"msg", "maintenance at noon"})},
		{"drain", reply(0, OpDrain, Pair{"msg", "the server is ending: finish and leave"}, Pair{"timeout_s", 30.0})},
	}
}
