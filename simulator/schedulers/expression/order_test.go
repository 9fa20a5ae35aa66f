package expression_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers/expression"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

var exact = sim.Estimates{Mode: sim.EstimateExact}

func compiled(t testing.TB, order string) *expression.Order {
	t.Helper()
	o, err := expression.Compile(order)
	if err != nil {
		t.Fatalf("%s: %v", order, err)
	}
	return o
}

// says is a predictor that says the same of all jobs.
type says predict.Forecast

func (s says) New() predict.Predictor { return s }
func (says) String() string           { return "says" }

func (says) Reset(time.Duration)                                        {}
func (s says) Predict(time.Duration, int, *traces.Job) predict.Forecast { return predict.Forecast(s) }
func (says) Started(time.Duration, int)                                 {}
func (says) Stopped(time.Duration, int, time.Duration)                  {}
func (says) Finished(time.Duration, int, time.Duration)                 {}
func (says) Dropped(time.Duration, int)                                 {}
func (says) AppendSnapshot(dst []byte) []byte                           { return dst }
func (says) RestoreSnapshot([]byte) error                               { return nil }

// midway returns a run at 100 s on ten GPUs. Job a, of four, has run for 60 of its 200 s, b waits since 70 s and c has
// just been submitted.
func midway(t testing.TB) *sim.View {
	t.Helper()
	jobs := []traces.Job{
		{ID: "a", User: "ann", VC: "one", Submit: 10 * second, Work: 200 * second, GPUs: 4, GPUMilli: 1000},
		{ID: "b", User: "bob", Group: "lab", Name: "train.sh", Model: "resnet", Submit: 70 * second, Work: 50 * second,
			Estimate: 80 * second, GPUs: 3, GPUMilli: 500, CPUMilli: 6500, MemBytes: 3 << 29, Priority: 7,
			GPUTypes: []string{"V100"}},
		{ID: "c", User: "ann", VC: "one", Submit: 100 * second, Work: second, GPUs: 2, GPUMilli: 1000},
	}
	cfg := sim.DefaultConfig()
	cfg.Predictor = says{Q: [predict.Quantiles]time.Duration{10 * second, 20 * second, 40 * second, 80 * second,
		160 * second}}
	s, err := sim.New(cfg, cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 10,
		GPUType: "V100"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := s.Advance(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		d := sim.Decision{Op: sim.Wait, Until: 40 * second}
		switch p.Now {
		case 100 * second:
			return s.View()
		case 40 * second:
			start := sim.Decision{Op: sim.StartJob, Job: s.View().Waiting()[0], GPUs: []cluster.GPU{0, 1, 2, 3}}
			if err := s.Apply(&start); err != nil {
				t.Fatal(err)
			}
			d.Until = 0
		case 70 * second:
			d.Until = 0
		}
		if err := s.Apply(&d); err != nil {
			t.Fatal(err)
		}
	}
}

// Every variable has its value by hand for job b, or for a where it says so.
func TestVariablesByHand(t *testing.T) {
	v, seen := midway(t), map[string]bool{}
	for name, want := range map[string]float64{
		"wait": 30, "submit": 70, "now": 100, "position": 1, "gpus": 1.5, "cpus": 6.5, "memory": 1.5, "priority": 7,
		"user": 1, "group": 1, "vc": 1, "name": 1, "model": 1, "gpu_type": 1, "running": 0,
		"estimate": 50, "estimate_mean": 50, "estimate_p10": 50, "estimate_p25": 50, "estimate_p75": 50, "estimate_p90": 50,
		"left": 50, "run_time": 50, "ran": 0, "attained": 0, "stops": 0, "failures": 0,
		"total_gpus": 10, "free_gpus": 6, "waiting_jobs": 2, "waiting_gpus": 3.5, "running_jobs": 1, "user_gpus": 0,
		"vc_gpus": 0,
		"a wait":  90, "a ran": 60, "a attained": 240, "a left": 140, "a running": 1, "a user_gpus": 4, "a vc_gpus": 4,
		"c wait": 0, "c user_gpus": 4, "c vc_gpus": 4, "c cpus": 0, "c gpu_type": 0,
	} {
		job, key := sim.Job(1), name
		if id, rest, ok := strings.Cut(name, " "); ok {
			job, key = sim.Job(id[0]-'a'), rest
		}
		switch key {
		case "user", "group", "vc", "name", "model", "gpu_type":
			is := map[string]string{"user": "bob", "group": "lab", "vc": "", "name": "train.sh", "model": "resnet",
				"gpu_type": "V100"}[key]
			key = fmt.Sprintf("%s == %q ? 1 : 0", key, is)
		case "running":
			key = "running ? 1 : 0"
		}
		seen[strings.Fields(key)[0]] = true
		if key == "wait" || key == "now" {
			key += " ** 1" // alone, only differences between jobs matter
		}
		if got := compiled(t, "key: "+key).Key(v, job, &exact); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, x := range expression.Variables() {
		if !seen[x.Name] {
			t.Errorf("no value of %s", x.Name)
		}
	}
	causal := sim.Estimates{Mode: sim.EstimateHistory}
	for name, want := range map[string]float64{"estimate": 40, "estimate_p10": 10, "estimate_p25": 20,
		"estimate_p75": 80, "estimate_p90": 160, "estimate_mean": v.Forecast(1).Mean().Seconds(), "left": 40} {
		if got := compiled(t, "key: "+name).Key(v, 1, &causal); got != want {
			t.Errorf("by a forecast %s is %v, want %v", name, got, want)
		}
	}
	if got := compiled(t, "key: estimate").Key(v, 1, &sim.Estimates{Mode: sim.EstimateTrace}); got != 80 {
		t.Errorf("the requested time is %v, want 80", got)
	}
}

// With constants alone no run is looked at.
func TestExpressionsByHand(t *testing.T) {
	for key, want := range map[string]float64{
		"1": 1, "-2": -2, "+3": 3, "1 + 2 * 3": 7, "(1 + 2) * 3": 9, "7 / 2": 3.5, "7 % 4": 3, "-7.5 % 2": -1.5,
		"2 ** 3 ** 2": 512,
		"2 ^ 10":      1024, "1e3": 1000, "0x10": 16, "1_000": 1000, "-2 ** 2": -4, "10 - 3 - 2": 5,
		"1 < 2 ? 3 : 4": 3, "2 <= 1 ? 3 : 4": 4, "1 > 2 or 2 >= 2 ? 1 : 0": 1, "!(1 == 1) ? 1 : 0": 0,
		"not (1 != 1) ? 1 : 0":          1,
		"true && false || true ? 1 : 2": 1, "true == false ? 1 : 2": 2, "'a' == \"a\" ? 1 : 2": 1, "'a' != 'b' ? 1 : 2": 1,
		"1 < 2 < 3 ? 1 : 0": 1, "1 < 3 < 2 ? 1 : 0": 0, "if 1 < 2 { 5 } else { 6 }": 5,
		"'ab' startsWith 'a' ? 1 : 0": 1, "'ab' endsWith 'a' ? 1 : 0": 0, "'ab' contains 'b' ? 1 : 0": 1,
		"'ab' not contains 'b' ? 1 : 0": 0, "3 in [1, 2, 3] ? 1 : 0": 1, "'x' not in ['y'] ? 1 : 0": 1,
		"'x' in [] ? 1 : 0":                 0,
		"(true ? 'a' : 'b') == 'a' ? 1 : 0": 1, "(false ? true : false) ? 1 : 0": 0,
		"min(3, 1, 2)": 1, "max(3)": 3, "max(1, 4, 2)": 4, "abs(-2)": 2, "floor(-1.5)": -2, "ceil(1.2)": 2, "round(2.5)": 3,
		"sqrt(9)": 3, "exp(0)": 1, "log(1)": 0, "log2(8)": 3, "log10(1000)": 3, "pow(2, 5)": 32, "4 | max(7)": 7,
		"1 / 0": math.MaxFloat64, "-1 / 0": -math.MaxFloat64, "log(0)": -math.MaxFloat64, "1 / (1 / 0)": 0,
		"/* no */ 1 + 1": 2, "$a * 2 + $b; $a: 4; $b: -0.5": 7.5,
	} {
		if got := compiled(t, "key: "+key).Key(nil, 0, nil); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

func TestOrdersThatAreRefused(t *testing.T) {
	for order, want := range map[string]string{
		"key: waitt / gpus":             `key: column 1: "waitt" is unknown; use wait`,
		"key: gpus * xyzzy":             `key: column 8: "xyzzy" is unknown; use one of wait, submit, position, `,
		"key: gpus+comit":               `key: column 6: "comit" is unknown; use +commit at the end`,
		"key: user":                     "key: it is a text; write a number",
		"key: gpus < 2":                 "key: it is a condition; write a number, as CONDITION ? 0 : 1",
		"key: gpus; start if: wait":     "start if: it is a number; write a condition, such as gpus <= 8",
		"key: gpus; stop if: runnin":    `stop if: column 1: "runnin" is unknown; use running`,
		"key: wait /":                   "key: column 6: the expression ends too early",
		"key: wait // gpus / 2\n)":      `key: column 6: ")" is not expected here`,
		"key: (wait + 1":                "key: column 9: the expression ends too early",
		"key: wait = 1":                 `key: column 6: "=" is not expected here`,
		"key: wait @ 1":                 "key: column 6: unrecognized character: U+0040 '@'",
		"key: 'abc":                     "key: column 5: literal not terminated",
		"key: wait + user":              "key: column 8: + takes a number, and this is a text",
		"key: -user":                    "key: column 2: - takes a number, and this is a text",
		"key: not wait ? 1 : 2":         "key: column 5: not takes a condition, and this is a number",
		"key: wait ? 1 : 2":             "key: column 1: what stands before ? takes a condition, and this is a number",
		"key: running ? 1 : user":       "key: column 15: the other side of a number in ? : takes a number, and this is a text",
		"key: running ?: 1":             "key: column 1: a value is missing between ? and :",
		"key: user == 1 ? 1 : 2":        "key: column 9: == behind a text takes a text, and this is a number",
		"key: user in vc ? 1 : 2":       "key: column 6: in stands between a text or number and a list of them, as user in",
		"key: user in [vc] ? 1 : 2":     "key: column 10: a list behind in has constants alone",
		"key: user in ['a', 1] ? 1 : 2": "key: column 15: a list behind in takes a text, and this is a number",
		"key: [1, 2]":                   `key: column 1: a list stands only behind in, as user in ["a", "b"]`,
		"key: 1..3":                     "key: column 2: the operator .. is unknown here; use + - * / % ** == != < <=",
		"key: user matches 'a' ? 1 : 2": "key: column 6: the operator matches is unknown here",
		"key: {a: 1}":                   "key: column 1: this is no number, condition or text",
		"key: nil":                      "key: column 1: this is no number, condition or text",
		"key: user.name":                "this is no number, condition or text",
		"key: (let x = 1; x)":           "this is no number, condition or text",
		"key: sum([1, 2])":              `key: column 1: the function "sum" is unknown; use`,
		"key: filter([1], # > 0)":       `key: column 1: the function "filter" is unknown; use`,
		"key: now()":                    `key: column 1: the function "now" is unknown; use`,
		"key: sqr(wait)":                `key: column 1: the function "sqr" is unknown; use sqrt`,
		"key: sqrt":                     "key: column 1: sqrt is a function; call it as sqrt(x)",
		"key: sqrt(1, 2)":               "key: column 1: sqrt does not take 2 numbers; call it as sqrt(x)",
		"key: pow(1)":                   "key: column 1: pow does not take 1 numbers; call it as pow(x, y)",
		"key: max()":                    "key: column 1: max does not take 0 numbers; call it as max(x, y, …)",
		"key: max(user)":                "key: column 5: max takes a number, and this is a text",
		"key: wait ** $a":               "key: column 9: the constant $a has no value; add a clause such as $a: 1",
		"key: $a; $a: wait":             `$a: "wait" is no number; write one such as 0.5`,
		"key: $a; $a: 1e999":            `$a: "1e999" is no number; write one such as 0.5`,
		"key: 99999999999999999999":     "key: column 20: invalid integer literal",
		"start if: gpus < 2":            "it has no key",
	} {
		o, err := expression.Compile(order)
		if o != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", order, err, want)
		}
	}
}

// A key that is not a number is an error that says where, a *fault.Mistake; an infinite one is a number before or behind
// all others.
func TestKeysThatAreNoNumbers(t *testing.T) {
	v := midway(t)
	o := compiled(t, "key: log(wait - 60) + gpus")
	if got := o.Key(v, 0, &exact); o.Err() != nil || math.Abs(got-math.Log(30)-4) > 1e-9 {
		t.Errorf("the key of a is %v, %v", got, o.Err())
	}
	if got := o.Key(v, 1, &exact); got != math.MaxFloat64 {
		t.Errorf("the key of b is %v, want the greatest number", got)
	}
	o.Key(v, 2, &exact)
	want := "at 1m40s the key of job b is not a number: log(wait - 60) + gpus with wait = 30, gpus = 1.5; want one for every " +
		"job, as by max(x, 1) under a logarithm or a fraction"
	if err := o.Err(); err == nil || err.Error() != want || !fault.IsMistake(err) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if o.Reset(); o.Err() != nil {
		t.Errorf("after Reset: %v", o.Err())
	}
}

// What an expression looks at decides when it is computed again, and on which rungs.
func TestOrdersSayWhatTheyLookAt(t *testing.T) {
	for key, want := range map[string]expression.Looks{
		"gpus": 0, "wait ** 2": expression.Clock, "free_gpus * 0": expression.Usage, "estimate": expression.Estimates,
		"run_time": expression.Estimates | expression.RunTimes, "max(now, left)": expression.Clock | expression.Estimates,
		"user == 'a' ? 1 : user_gpus": expression.Usage, "-wait ** gpus": expression.Clock,
		"position in [1] and wait > 1 ? 1 : 0": expression.Clock, "vc contains 'a' ? left : 0": expression.Estimates,
	} {
		if got := compiled(t, "key: "+key).Looks; got != want {
			t.Errorf("%s looks at %b, want %b", key, got, want)
		}
	}
	o := compiled(t, "key: gpus; start if: wait > estimate; stop if: free_gpus < 1")
	if !o.Holds() || !o.Stops() || o.Looks != 0 ||
		o.Conditions != expression.Clock|expression.Estimates|expression.Usage {
		t.Errorf("it holds %v, stops %v, looks at %b and %b", o.Holds(), o.Stops(), o.Looks, o.Conditions)
	}
	v := midway(t)
	if o.Start(v, 1, &exact) || o.Stop(v, 0, &exact) || !compiled(t, "key: 1; stop if: ran >= 60").Stop(v, 0, &exact) ||
		!compiled(t, "key: 1").Start(v, 1, &exact) || compiled(t, "key: 1").Stop(v, 0, &exact) {
		t.Error("conditions are wrong")
	}
}

// Ranks by a key that grows by the same in each second for every job do not change with the clock: the key is that of
// time 0, and b, submitted at 70 s, has waited for -70 s then.
func TestRanksThatTheClockDoesNotChange(t *testing.T) {
	v := midway(t)
	for key, want := range map[string]float64{
		"wait": -70, "-wait": 70, "now": 0, "3 * wait / 6 - gpus": -36.5, "estimate - 2 * wait": 190, "wait - now": -70,
		"user == 'x' ? wait : 5 + wait": -65, "max(wait)": -70, "wait * $a; $a: 2": -140, "user_gpus + wait": -70,
		"wait < 0 ? 0 : -wait": 70, "priority < 0 ? wait : wait": -70,
	} {
		o := compiled(t, "key: "+key)
		if got := o.Key(v, 1, &exact); got != want || o.Looks&expression.Clock != 0 {
			t.Errorf("%s is %v and looks at %b, want %v and not at the clock", key, got, o.Looks, want)
		}
	}
	for _, key := range []string{"wait ** 1", "wait * gpus", "wait / estimate", "1 / wait", "wait * wait",
		"abs(wait)", "wait % 7",
		"max(wait, 1)", "wait > 5 ? 0 : 1", "wait < 5 ? wait : wait", "running ? wait : 0", "wait * (1 / 0)",
		"wait in [1] ? 0 : 1"} {
		if o := compiled(t, "key: "+key); o.Looks&expression.Clock == 0 {
			t.Errorf("%s does not look at the clock", key)
		}
	}
	o := compiled(t, "key: -wait; start if: wait > 20") // conditions see the clock
	if o.Key(v, 1, &exact); !o.Start(v, 1, &exact) || o.Start(v, 2, &exact) {
		t.Error("a condition does not see how long a job has waited")
	}
}

// written is an expression of a number, and what it is of wait 30, gpus 1.5 and estimate 50.
type written struct {
	text string
	is   float64
}

// numbers draws expressions of numbers. It computes them by Go's own operators.
func numbers(depth int) *rapid.Generator[written] {
	return rapid.Custom(func(t *rapid.T) written {
		leaves := []written{{"wait", 30}, {"gpus", 1.5}, {"estimate", 50}, {"2", 2}, {"0", 0}, {"$a", 0.25}, {"1e9", 1e9}}
		if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
			return rapid.SampledFrom(leaves).Draw(t, "which")
		}
		x, y := numbers(depth-1).Draw(t, "x"), numbers(depth-1).Draw(t, "y")
		switch op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "**", "min", "max", "neg", "abs", "if",
			"log"}).Draw(t, "op"); op {
		case "+":
			return written{"(" + x.text + " + " + y.text + ")", x.is + y.is}
		case "-":
			return written{"(" + x.text + " - " + y.text + ")", x.is - y.is}
		case "*":
			return written{"(" + x.text + " * " + y.text + ")", x.is * y.is}
		case "/":
			return written{"(" + x.text + " / " + y.text + ")", x.is / y.is}
		case "%":
			return written{"(" + x.text + " % " + y.text + ")", math.Mod(x.is, y.is)}
		case "**":
			return written{"(" + x.text + " ** " + y.text + ")", math.Pow(x.is, y.is)}
		case "min":
			return written{"min(" + x.text + ", " + y.text + ")", min(x.is, y.is)}
		case "max":
			return written{"max(" + x.text + ", " + y.text + ")", max(x.is, y.is)}
		case "neg":
			return written{"(-" + x.text + ")", -x.is}
		case "abs":
			return written{"abs(" + x.text + ")", math.Abs(x.is)}
		case "log":
			return written{"log(" + x.text + ")", math.Log(x.is)}
		default:
			w := written{"(" + x.text + " < " + y.text + " and running != true ? " + x.text + " : " + y.text + ")", y.is}
			if x.is < y.is {
				w.is = x.is
			}
			return w
		}
	})
}

// Random expressions give what Go computes, bit for bit, and a key that is not a number is an error.
func TestRandomExpressionsAreComputed(t *testing.T) {
	v := midway(t)
	rapid.Check(t, func(t *rapid.T) {
		w := numbers(5).Draw(t, "expression")
		o, err := expression.Compile("key: " + w.text + " + 0 * wait ** 2; $a: 0.25")
		if err != nil {
			if len(w.text) > policyname.MostWritten-20 {
				t.Skip("it is too long")
			}
			t.Fatal(err)
		}
		want := max(-math.MaxFloat64, min(math.MaxFloat64, w.is))
		if math.IsNaN(w.is) {
			want = math.MaxFloat64
		}
		if got := o.Key(v, 1, &exact); got != want || (o.Err() != nil) != math.IsNaN(w.is) {
			t.Fatalf("it is %v (%v), want %v", got, o.Err(), w.is)
		}
	})
}

// Words in any order are an order or an error of one line, never a panic, and what compiles has a finite key at once.
func TestAnyWordsCompileOrAreRefused(t *testing.T) {
	v := midway(t)
	words := []string{"(", ")", "[", "]", "{", "}", ",", "?", ":", "|", "#", "..", ".", "?.", "??", "let", "if",
		"else", "in", "not",
		"and", "matches", "'x'", "1", "-", "*", "**", "=", "==", "$a", "$env", "::", "filter(", "reduce(", "max(",
		"nil", "b'x'",
		"0x", "1e", "`", "now()"}
	for _, x := range expression.Variables() {
		words = append(words, x.Name)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, v, "key: "+strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 12).Draw(t, "words"), " "))
	})
}

func check(t interface{ Fatalf(string, ...any) }, v *sim.View, order string) {
	o, err := expression.Compile(order)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q: %v has lines", order, err)
		}
		return
	}
	for j := range sim.Job(3) {
		if x := o.Key(v, j, &exact); math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("%q: the key is %v", order, x)
		}
		o.Start(v, j, &exact)
		o.Stop(v, j, &exact)
	}
}

func FuzzCompile(f *testing.F) {
	for _, text := range []string{"key: wait / gpus", "key: user in ['a'] ? 1 : $a; $a: 2; stop if: not running",
		"key: (((-1)))",
		"key: a?.b", "key: max(1, 2) | min(3)", "key: if running {1} else {2}", "key: map([1], {# + 1})", "key: '\\u12'"} {
		f.Add(text)
	}
	v := midway(f)
	f.Fuzz(func(t *testing.T, text string) { check(t, v, text) })
}

// Ranking does not allocate, whichever variables a key uses.
func TestKeysDoNotAllocate(t *testing.T) {
	v := midway(t)
	for _, x := range expression.Variables() {
		key := map[string]string{"number": x.Name, "condition": x.Name + " ? 1 : 0",
			"text": x.Name + " in ['a', 'b'] ? 1 : 0"}[x.Kind()]
		o := compiled(t, "key: "+key+"; start if: gpus < 2 and user != vc")
		if n := testing.AllocsPerRun(100, func() {
			for j := range sim.Job(3) {
				o.Key(v, j, &exact)
				o.Start(v, j, &exact)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", key, n)
		}
	}
}

// deep nesting, as deep as a text may be, is compiled and computed.
func TestDeepExpressions(t *testing.T) {
	n := (policyname.MostWritten - 10) / 2
	for _, key := range []string{strings.Repeat("(", n) + "1" + strings.Repeat(")", n), strings.Repeat("-", 2*n) + "1",
		"1" + strings.Repeat("+1", n)} {
		compiled(t, "key: "+key).Key(nil, 0, nil)
	}
}
