package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/lab/report"
	"clustergym/nets/onnx"
)

// theCardsCommandGivesItsTable plays the command of a card, and compares with the evaluation that the card's table
// shows.
func theCardsCommandGivesItsTable(t *testing.T, card string) {
	t.Helper()
	_, command, ok := strings.Cut(card, "As in the table above:\n\n```\ngymctl ")
	if !ok {
		t.Fatalf("the card has no command for its table:\n%s", card)
	}
	command, _, _ = strings.Cut(command, "\n")
	var was, is report.Report
	if err := json.Unmarshal([]byte(clitest.Read(t, "run/eval/test.json")), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, append(strings.Fields(command), "--no-whole", "--json")...)),
		&is); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(was.Windows, is.Windows) || len(was.Policies) != len(is.Policies) {
		t.Fatalf("%s plays %d policies on windows %v, and the table has %d on %v", command, len(is.Policies), is.Windows,
			len(was.Policies), was.Windows)
	}
	for i := range was.Policies {
		if a, b := was.Policies[i], is.Policies[i]; !reflect.DeepEqual(a.Metrics, b.Metrics) || i > 0 && a.Name != b.Name {
			t.Errorf("%s: %s has %+v, in the table %s has %+v", command, b.Name, b.Metrics, a.Name, a.Metrics)
		}
	}
}

// theRuleIsThatOfTheConfiguration plays the checkpoint run and its export policy.onnx by other rules than the usual.
func theRuleIsThatOfTheConfiguration(t *testing.T) {
	t.Helper()
	args := []string{"eval", "--checkpoint", "run", "--policy-onnx", "policy.onnx", "--policies", "fifo", "--no-whole",
		"--windows", "2", "--set"}
	for _, rule := range []string{"argmax", "sample"} {
		var d report.Report
		if err := json.Unmarshal([]byte(clitest.Must(t, append(args, "eval.greedy="+rule, "--json")...)), &d); err != nil {
			t.Fatal(err)
		}
		if a, b := &d.Policies[0], &d.Policies[1]; a.Greedy != rule || b.Greedy != rule ||
			!reflect.DeepEqual(a.Metrics, b.Metrics) || d.Policies[2].Greedy != "" {
			t.Errorf("by %s: %+v and %+v", rule, a, b)
		}
	}
	if out := clitest.Must(t, append(args, "eval.greedy=argmax")...); !strings.Contains(out,
		"and policy choose by argmax: the action of the largest number.\n") {
		t.Errorf("eval prints %s", out)
	}
	code, _, said := clitest.Run(t, append(args, "eval.greedy=max")...)
	if want := `eval.greedy: got "max", want share, argmax or sample`; code != cli.ExitMistake ||
		!strings.Contains(said, want) {
		t.Errorf("exit code %d, said %q, want %q", code, said, want)
	}
}

// A run leaves as a model and comes back: it plays the same windows in the same way.
func TestAnExportedRunPlaysAsItsCheckpoint(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InRoom(t, false)
	clitest.Must(t, "train", "-c", "tiny.yaml", "--run-dir", "run")
	if out := clitest.Must(t, "ckpt", "export", "run", "-o", "policy.onnx", "--card", "MODEL.md"); out != "" {
		t.Errorf("export prints %q", out)
	}
	var d report.Report
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "eval", "--checkpoint", "run", "--policy-onnx", "policy.onnx", "--name", "mine", "--policies",
			"fifo", "--json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Policies) != 3 || d.Policies[1].Name != "mine" || d.Policies[1].Kind != report.KindModel ||
		!reflect.DeepEqual(d.Policies[0].Metrics, d.Policies[1].Metrics) {
		t.Errorf("policies %+v", d.Policies)
	}
	if d.Policies[0].Greedy != "" || d.Policies[1].Greedy != "share" {
		t.Errorf("the checkpoint chooses by %q and the model by %q", d.Policies[0].Greedy, d.Policies[1].Greedy)
	}
	theRuleIsThatOfTheConfiguration(t)
	if len(d.Paired) == 0 || d.Paired[len(d.Paired)-1].A != "mine" {
		t.Errorf("pairs %+v", d.Paired)
	}
	// The environment is in the model, so that nothing else has to be named.
	if out := clitest.Must(t, "eval", "--policy-onnx", "policy.onnx", "--policies", "fifo", "--windows", "1",
		"--no-whole"); !strings.Contains(out, "policy ") {
		t.Errorf("eval prints %s", out)
	}
	if out := clitest.Must(t, "eval", "--policy-onnx", "policy.onnx", "--policies", "fifo", "--windows", "1", "--rungs",
		"none,exact"); !strings.Contains(out, "\npolicy  ") || !strings.Contains(out, "\nfifo") {
		t.Errorf("eval --rungs prints %s", out)
	}
	// With other estimates, too, it sees what it saw in training.
	if out := clitest.Must(t, "sim", "--policy-onnx", "policy.onnx", "--jobs", "60", "--cluster", "topdrl-2x4x4",
		"--estimates", "history"); !strings.Contains(out, "\npolicy  ") {
		t.Errorf("sim prints %s", out)
	}
	code, _, said := clitest.Run(t, "eval", "--policy-onnx", "policy.onnx", "--cluster", "2x8", "--policies", "fifo")
	if code != cli.ExitMistake ||
		!strings.Contains(said, "the model is for observations with cluster [20 32] in place of cluster [20 16]") {
		t.Errorf("on another cluster: exit code %d, said %q", code, said)
	}
	card := clitest.Read(t, "MODEL.md")
	for _, want := range []string{"# ppo:run@", "A policy for `JobSelect-v1`, trained by PPO", "| file | `policy.onnx`, ",
		"| what it knew of run times | ", "## Against its rivals", "| this run | ",
		"gymctl eval --policy-onnx policy.onnx --name mine", "action_mask"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q:\n%s", want, card)
		}
	}
	theCardsCommandGivesItsTable(t, card)
	m, err := onnx.ReadFile("policy.onnx")
	if err != nil {
		t.Fatal(err)
	}
	// Its settings name no file of the training; the caller gives a trace. The same holds if the settings do name a file.
	if strings.Contains(m.Meta("clustergym.run"), "jobs.csv") {
		t.Errorf("the model names the trace of its training:\n%s", m.Meta("clustergym.run"))
	}
	if out := clitest.Must(t, "eval", "--policy-onnx", "policy.onnx", "--trace", "jobs.csv", "--policies", "fifo",
		"--windows", "1", "--no-whole"); !strings.Contains(out, "\nfifo") {
		t.Errorf("eval --trace prints %s", out)
	}
	named := *m
	named.Metadata = nil
	for _, p := range m.Metadata {
		if p.Key == "clustergym.run" {
			p.Value = strings.Replace(p.Value, `file: ""`, "file: other.csv", 1)
		}
		named.Metadata = append(named.Metadata, p)
	}
	clitest.Write(t, "named.onnx", string(named.Encode()))
	if code, _, said := clitest.Run(t, "eval", "--policy-onnx", "named.onnx", "--policies", "fifo"); code !=
		cli.ExitMistake || !strings.Contains(said, `name the file "other.csv" for trace.file`) {
		t.Errorf("a model that names a trace: exit code %d, said %q", code, said)
	}
	for _, own := range [][]string{{"--trace", "jobs.csv"}, {"--set", "trace.file=jobs.csv"}} {
		if out := clitest.Must(t,
			append([]string{"eval", "--policy-onnx", "named.onnx", "--policies", "fifo", "--windows", "1", "--no-whole"},
				own...)...); !strings.Contains(out, "\nfifo") {
			t.Errorf("eval %v prints %s", own, out)
		}
	}
	if m.Meta("clustergym.env") != "JobSelect-v1" || len(m.Meta("clustergym.spec")) != 64 ||
		!strings.Contains(m.Meta("clustergym.run"), "id: JobSelect-v1") || m.Graph.Inputs[0].Shape[0] != -1 {
		t.Errorf("metadata %+v, inputs %v", m.Metadata, m.Graph.Inputs)
	}
	clitest.Must(t, "ckpt", "export", "run", "-o", "one.onnx", "--batch", "1")
	if m, err = onnx.ReadFile("one.onnx"); err != nil || m.Graph.Inputs[0].Shape[0] != 1 {
		t.Errorf("--batch 1: %v, %v", m, err)
	}
	for want, args := range map[string][]string{
		"ckpt export: want --output or --card":              {},
		"--batch: got 0, want 1 to 65536 rows":              {"-o", "x", "--batch", "0"},
		`--card: got "x", which is the file of -o`:          {"-o", "x", "--card", "x"},
		"output file no/such/x: there is no folder no/such": {"-o", "no/such/x"},
	} {
		code, _, said := clitest.Run(t, append([]string{"ckpt", "export", "run"}, args...)...)
		if code != cli.ExitMistake || !strings.HasPrefix(said, "gymctl: "+want[:12]) || strings.Count(said, "\n") != 1 {
			t.Errorf("export %v: exit code %d, said %q, want %q", args, code, said, want)
		}
	}
}

// A mixture of rules is no network, and one sentence says so.
func TestMixturesHaveNoFormInONNX(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, "train", "-c", "policymix-improper", "--no-eval", "--run-dir", "mix", "--set", "train.steps=16",
		"--set", "train.envs=1", "--set", "improper.steps=16",
		"--set", "env.window=24", "--set", "env.warm=8", "--set", "trace.synth.jobs=900", "--set", "eval.validation=1")
	code, _, said := clitest.Run(t, "ckpt", "export", "mix", "-o", "mix.onnx")
	if want := "gymctl: mix is of agent improper, whose policy is no network: only those of ppo, ddqn and maml have a form in ONNX\n"; code != cli.ExitMistake || said != want {
		t.Errorf("exit code %d, said %q, want %q", code, said, want)
	}
}

// Each fault of a model is reported as the user's mistake, in one sentence.
func TestModelsThatCannotPlay(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &onnx.Model{IR: 8, Opset: 17, Graph: onnx.Graph{
		Name: "g", Inputs: []onnx.Value{{Name: "x", Type: onnx.Float32, Known: true, Shape: []int{-1, 4}}},
		Outputs: []onnx.Value{{Name: "q", Type: onnx.Float32}},
		Nodes:   []onnx.Node{{Op: "Frobnicate", Name: "f", Inputs: []string{"x"}, Outputs: []string{"q"}}},
	}}
	whole := m.Encode()
	clitest.Write(t, "unknown.onnx", string(whole))
	clitest.Write(t, "cut.onnx", string(whole[:len(whole)-9]))
	clitest.Write(t, "text.onnx", "submit_time,duration\n1,2\n")
	m.Graph.Nodes[0].Op = "Relu"
	clitest.Write(t, "wide.onnx", string(m.Encode()))
	m.Metadata = []onnx.Property{{Key: "clustergym.run", Value: "trace: {file: /etc/passwd}\n"}}
	clitest.Write(t, "files.onnx", string(m.Encode()))
	m.Metadata[0].Value = "env: {id: JobSelect-v1, estimates: 'gbdt:model.bin'}\n"
	clitest.Write(t, "estimates.onnx", string(m.Encode()))
	clitest.Write(t, "nodes.yaml", "[]")
	m.Metadata[0].Value = "cluster: nodes.yaml\n"
	clitest.Write(t, "cluster.onnx", string(m.Encode()))
	for file, settings := range map[string]string{
		"zero":     "cluster: /dev/zero\n",
		"absent":   "cluster: no/such/nodes.yaml\n",
		"got":      "cluster: get:philly\n",
		"table":    "trace: {profiles: /dev/zero}\n",
		"folded":   "env: {id: JobSelect-v1, args: [cluster=/dev/zero]}\n",
		"expected": "env: {id: JobSelect-v1, args: ['estimates=gbdt:/dev/zero']}\n",
		"jobs":     "env: {id: JobSelect-v1, args: [trace.file=/dev/zero]}\n",
		"graphs":   "env: {id: DAGPlace-v1}\ntrace: {file: /dev/zero}\n",
		"tables":   "env: {id: WorkerPlace-v1}\ntrace: {profiles: /dev/zero}\n",
	} {
		m.Metadata[0].Value = settings
		clitest.Write(t, file+".onnx", string(m.Encode()))
	}
	m.Metadata[0].Value = "trace: ["
	clitest.Write(t, "settings.onnx", string(m.Encode()))
	if f, err := os.Create("large.onnx"); err != nil || f.Truncate(2<<30) != nil || f.Close() != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"unknown.onnx": `model unknown.onnx: node Frobnicate "f": this operator is not known, want those that docs/reference/onnx.md lists`,
		"cut.onnx":     "model cut.onnx: no ONNX model: ",
		"text.onnx":    "model text.onnx: no ONNX model: ",
		"wide.onnx":    "model wide.onnx: output q float32 [1 4], want float32 [1 2]: a score for each discrete action of CartPole-v1",
		"large.onnx":   "model large.onnx: it has 2147483648 bytes, want at most 536870912",
		"missing.onnx": "model missing.onnx: there is no such file",
	} {
		code, out, said := clitest.Run(t, "eval", "-c", "cartpole-ppo", "--policies", "random", "--episodes", "1",
			"--policy-onnx", file)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, "gymctl: "+want) ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, printed %q, said %q, want %q", file, code, out, said, want)
		}
	}
	for want, args := range map[string][]string{
		"model files.onnx: its settings (clustergym.run) name the file \"/etc/passwd\"": {"eval",
			"--policy-onnx", "files.onnx"},
		"model estimates.onnx: its settings (clustergym.run) name the file \"model.bin\" for env.estimates": {"eval",
			"--policy-onnx", "estimates.onnx"},
		"model cluster.onnx: its settings (clustergym.run) name the file \"nodes.yaml\" for cluster": {"sim", "--jobs",
			"9", "--policy-onnx", "cluster.onnx"},
		"model zero.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for cluster": {"eval",
			"--policy-onnx", "zero.onnx"},
		"model zero.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for cluster; ": {"sim", "--jobs",
			"9", "--policy-onnx", "zero.onnx"},
		"model absent.onnx: its settings (clustergym.run) name the file \"no/such/nodes.yaml\" for cluster": {"eval",
			"--policy-onnx", "absent.onnx", "--trace", "nodes.yaml"},
		"model got.onnx: its settings (clustergym.run) name the file \"get:philly\" for cluster": {"eval",
			"--policy-onnx", "got.onnx"},
		"model table.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for trace.profiles": {"eval",
			"--policy-onnx", "table.onnx", "--cluster", "2x8"},
		"model folded.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for cluster": {"eval",
			"--policy-onnx", "folded.onnx"},
		"model expected.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for env.estimates": {"eval",
			"--policy-onnx", "expected.onnx"},
		"model jobs.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for trace.file": {"eval",
			"--policy-onnx", "jobs.onnx", "--cluster", "2x8"},
		"model graphs.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for trace.file": {"eval",
			"--policy-onnx", "graphs.onnx"},
		"model tables.onnx: its settings (clustergym.run) name the file \"/dev/zero\" for trace.profiles": {"eval",
			"--policy-onnx", "tables.onnx"},
		// A file that the user names replaces the model's, and is read.
		"trace mine.csv: there is no such file": {"eval", "--policy-onnx",
			"files.onnx", "--trace", "mine.csv"},
		"cluster file mine.yaml: there is no such file": {"eval", "--policy-onnx",
			"zero.onnx", "--cluster", "mine.yaml"},
		"cluster file set.yaml: there is no such file": {"eval", "--policy-onnx",
			"folded.onnx", "--set", "cluster=set.yaml"},
		"model settings.onnx: its settings (clustergym.run) cannot be read: settings.onnx": {"sim", "--jobs", "9",
			"--policy-onnx", "settings.onnx"},
		"--name: got 1 names for 0 models of --policy-onnx": {"eval", "--name", "x"},
		`--name: got "", want a name for wide.onnx`: {"serve", "--policy-onnx",
			"wide.onnx", "--name", ""},
		"--policy-onnx does not go with --listen": {"eval", "--policy-onnx",
			"wide.onnx", "--listen", "127.0.0.1:0", "--token-file", "token"},
	} {
		if code, _, said := clitest.Run(t, args...); code != cli.ExitMistake || !strings.Contains(said, want) {
			t.Errorf("%v: exit code %d, said %q, want %q", args, code, said, want)
		}
	}
}
