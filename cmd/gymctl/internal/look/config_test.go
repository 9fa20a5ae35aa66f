package look_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/env"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
)

func TestEveryPresetIsSoundAndShownAsItCanBeRead(t *testing.T) {
	clitest.OneGoroutine(t)
	t.Chdir(t.TempDir())
	var d struct {
		Presets []struct{ Name, Kind, What string } `json:"presets"`
	}
	clitest.Strict(t, clitest.Must(t, "config", "list", "--json"), &d)
	table := clitest.Must(t, "config", "list")
	if len(d.Presets) < 5 {
		t.Fatalf("only %d presets", len(d.Presets))
	}
	for _, p := range d.Presets {
		if !strings.Contains(table, p.Name) || p.What == "" {
			t.Errorf("%s is not in the table, or is not described (%q)", p.Name, p.What)
		}
		if out := clitest.Must(t, "config", "check", p.Name); out != p.Name+": ok ("+p.Kind+")\n" {
			t.Errorf("check %s: %q", p.Name, out)
		}
		first := clitest.Must(t, "config", "show", p.Name)
		clitest.Write(t, "shown.yaml", first)
		if out := clitest.Must(t, "config", "check", "shown.yaml"); out != "shown.yaml: ok ("+p.Kind+")\n" {
			t.Errorf("%s as shown is taken for %q", p.Name, out)
		}
		if again := clitest.Must(t, "config", "show", "shown.yaml"); again != first {
			t.Errorf("%s is shown as\n%s\nand that as\n%s", p.Name, first, again)
		}
	}
}

func TestConfigCheckFindsAllFaultsOfAllFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "a.yaml", "name: x\nracks:\n  - nodez: 3\n    nodes:\n      - gpus: -3\n")
	clitest.Write(t, "b.yaml", "seed: -1\ntrace:\n  skip: -4\nagnet: ppo\n")
	code, out, said := clitest.Run(t, "config", "check", "a.yaml", "philly-192", "b.yaml")
	if code != cli.ExitMistake || out != "philly-192: ok (cluster)\n" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
	for _, want := range []string{"gymctl: a.yaml:3: racks[0].nodez: unknown key; did you mean nodes?\n",
		"gymctl: a.yaml:5: racks[0].nodes[0].gpus: got -3, want 0 to 1024\n",
		"gymctl: b.yaml:1: seed: ", "gymctl: b.yaml:3: trace.skip: got -4, want ",
		"gymctl: b.yaml:4: agnet: unknown key; did you mean agent?\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"check quikstart", "gymctl: quikstart: there is no such file or preset; did you mean quickstart?\n"},
		{"check nowhere.yaml", "gymctl: nowhere.yaml: there is no such file or preset; presets are "},
		{"check .", "gymctl: .: this is a folder; use the name of a file\n"},
		{"check a.yaml --kind dog", "gymctl: --kind: got \"dog\", want one of cluster, "},
		{"check", "gymctl: config check: want one or more FILEs; see gymctl config check --help\n"},
		{"show", "gymctl: config show: want one FILE or --cluster C; see gymctl config show --help\n"},
		{"show philly-192 --cluster 6x8", "gymctl: --cluster goes with the FILE of a run, not with philly-192\n"},
		{"show --cluster 6x8 --set a=b", "gymctl: --set goes with a FILE, not with --cluster\n"},
		{"show philly-192 --set racks.0.nodez=3",
			"gymctl: --set \"racks.0.nodez=3\": racks[0].nodez: unknown key; did you mean nodes?\n"},
		{"show philly-192 --set racks.0.nodes.0.gpus=-3", "gymctl: racks[0].nodes[0].gpus: got -3, want 0 to 1024\n"},
		{"show --cluster philly-129", "gymctl: cluster \"philly-129\" is unknown; did you mean philly-192?\n"},
	} {
		code, out, said := clitest.Run(t, append([]string{"config"}, strings.Fields(c.args)...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("gymctl config %s: exit code %d, printed %q, said %q; want 2, nothing, %q", c.args, code, out, said, c.want)
		}
	}
}

// A list of machines can be checked and shown as a cluster, too, plain or packed; the output is the same cluster in
// YAML.
func TestConfigTakesListsOfMachines(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("CLUSTERGYM_CACHE", t.TempDir())
	list := "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,1,A\nb,8000,1024,1,A\nc,16500,512,0,\n"
	clitest.Write(t, "nodes.csv", list)
	clitest.Write(t, "philly-192", list) // a file takes precedence over a preset of its name
	clitest.Write(t, "nodes.csv.gz", packed(t, list))
	clitest.Write(t, "vcs.csv", ",num\nvc1,3\nvc2,0\nvc3,1\n")
	out := clitest.Must(t, "config", "check", "nodes.csv", "philly-192", "nodes.csv.gz", "vcs.csv", "--kind", "cluster")
	if want := "nodes.csv: ok (cluster)\nphilly-192: ok (cluster)\nnodes.csv.gz: ok (cluster)\nvcs.csv: ok (cluster)\n"; out != want || clitest.Must(t, "config", "check", "nodes.csv") != want[:24] {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	for _, name := range []string{"nodes.csv", "nodes.csv.gz", "./philly-192", "vcs.csv"} {
		clitest.Write(t, "shown.yaml", clitest.Must(t, "config", "show", name))
		if got, want := clitest.Must(t, "config", "show", "--cluster", "shown.yaml"),
			clitest.Must(t, "config", "show", "--cluster", name); got != want {
			t.Errorf("%s in YAML is\n%s\nwant\n%s", name, got, want)
		}
	}
	if out := clitest.Must(t, "config", "show", "nodes.csv", "--set", "name=mine", "--set",
		"speeds.A=0.5"); !strings.Contains(out, "name: mine\n") || !strings.Contains(out, "  A: 0.5\n") {
		t.Errorf("changes are not made:\n%s", out)
	}

	clitest.Write(t, "broken.csv", "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,one,A\n")
	clitest.Write(t, "vast.csv", "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,2000,8,16\n")
	for _, c := range []struct{ args, want string }{
		{"check broken.csv", `broken.csv:2: gpu: got "one", want `},
		{"check vast.csv", `cluster file vast.csv: racks[0].nodes[0].gpus: got 2000, want 0 to 1024`},
		{"check nodes.csv --kind run", `nodes.csv:`},
		{"check get:openb-nodes", `public trace openb-nodes is not at hand (`},
		{"show get:openb-nods", `public trace "openb-nods" is unknown; did you mean openb-nodes?`},
		{"check get:lublin-256", `public trace lublin-256 is not at hand (`},
	} {
		code, out, said := clitest.Run(t, append([]string{"config"}, strings.Fields(c.args)...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, "gymctl: "+c.want) ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("gymctl config %s: exit code %d, printed %q, said %q; want 2, nothing, %q", c.args, code, out, said, c.want)
		}
	}
}

// packed returns text compressed by gzip.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestConfigShowAppliesChangesInOrder(t *testing.T) {
	clitest.OneGoroutine(t)
	out := clitest.Must(t, "config", "show", "quickstart", "--set", "train.steps=7000", "--set", "train.steps=8000",
		"--set", "cluster=4x8")
	for _, want := range []string{"\n  steps: 8000\n", "\ncluster: 4x8\n", "\n    jobs: 180000\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestKindsAreToldByTheirKeys(t *testing.T) {
	for content, want := range map[string]string{
		"pool: 3\n": "cluster", "racks: []\nname: x\n": "cluster", "profile: philly\n": "workload",
		"agent: ppo\nname: x\n": "run",
		"# nothing\n":           "run", "jobs: 4\nrate: 2\n": "workload", "name: x\n": "cluster", "\"pool\" : 3\n": "cluster",
		"agnet: x\nracs: y\npool: 3\n": "cluster",
	} {
		if k := options.KindOf("f.yaml", []byte(content)); k.Name != want {
			t.Errorf("%q is taken for %s, want %s", content, k.Name, want)
		}
	}
}

func TestFirstSentences(t *testing.T) {
	for text, want := range map[string]string{
		"# The quick start: PPO learns.\nname: x\n":                       "The quick start",
		"# One thing. Another thing.\n":                                   "One thing",
		"# A cluster (Deng et al., \"Title\",\n# Place): 2 racks.\n":      "A cluster",
		"# Goes on\n# and on, by A. Writer et al. of somewhere.\na: 1\n#": "Goes on and on, by A. Writer et al. of somewhere",
		"name: x\n": "",
	} {
		if got := look.FirstSentence([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEnvsListsEveryEnvironmentWithAPage(t *testing.T) {
	clitest.OneGoroutine(t)
	table := clitest.Must(t, "envs")
	var d struct {
		Envs []look.EnvDocument `json:"envs"`
	}
	clitest.Strict(t, clitest.Must(t, "envs", "--json"), &d)
	if len(d.Envs) != len(envs.IDs()) || len(d.Envs) < 3 {
		t.Fatalf("%d environments, want %d", len(d.Envs), len(envs.IDs()))
	}
	for _, e := range d.Envs {
		page := clitest.Must(t, "envs", e.ID)
		if !strings.HasPrefix(page, "# "+e.ID+"\n") || !strings.HasSuffix(page, "\n") || strings.HasSuffix(page, "\n\n") {
			t.Errorf("%s: page begins with %.60q", e.ID, page)
		}
		for _, head := range []string{"## Description", "## Action space", "## Observation space", "## Reward",
			"## Arguments", "## Source"} {
			if !strings.Contains(page, head) {
				t.Errorf("%s: the page has no %s", e.ID, head)
			}
		}
		for _, f := range e.Obs {
			if !strings.Contains(page, f.Name) {
				t.Errorf("%s: the page does not tell of field %s", e.ID, f.Name)
			}
		}
		if !strings.Contains(table, e.ID) || len(e.Actions)+len(e.Low) == 0 || len(e.Obs) == 0 {
			t.Errorf("%s: not in the table, or without spaces: %+v", e.ID, e)
		}
		var one look.EnvDocument
		clitest.Strict(t, clitest.Must(t, "envs", e.ID, "--json"), &one)
		if one.ID != e.ID || len(one.Obs) != len(e.Obs) {
			t.Errorf("%s alone is %+v, in the list %+v", e.ID, one, e)
		}
	}
}

func TestEnvsShowsWhatChangesDoToTheSpaces(t *testing.T) {
	var d look.EnvDocument
	clitest.Strict(t,
		clitest.Must(t, "envs", "JobSelect-v1", "--json", "--cluster", "4x8", "--set", "visible=16", "--set", "max_gpus=4"),
		&d)
	if len(d.Actions) != 1 || d.Actions[0] != 17 {
		t.Errorf("actions %v, want 17", d.Actions)
	}
	for _, f := range d.Obs {
		if want := map[string]int{"cluster": 32, "queue": 64, "jobs": 10, "global": 8}[f.Name]; f.Shape[len(f.Shape)-1] !=
			want {
			t.Errorf("%s has shape %v, want %d in the last dimension", f.Name, f.Shape, want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"JobSelect-v3", `environment "JobSelect-v3" is unknown; did you mean JobSelect-v2?`},
		{"Breakout-v5", `environment "Breakout-v5" is unknown, want one of JobSelect-v2, `},
		{"JobSelect-v1 --set visibel=4", `--set "visibel=4": visibel: unknown key; did you mean visible?`},
		{"JobSelect-v1 --set visible=3", `visible: got 3, want an even number from 2 to 1024`},
		{"JobSelect-v1 --cluster 0x4", `cluster: got "0x4"`},
		{"InvalidAction-v1 --set a=1", `--set a=1: InvalidAction-v1 has no arguments`},
		{"InvalidAction-v1 --cluster 4x4", `--cluster: InvalidAction-v1 has no cluster`},
		{"--set visible=4", `envs: --set and --cluster belong to one environment; `},
		{"a b", `envs: got "a" "b", want one ID, or none`},
	} {
		code, out, said := clitest.Run(t, append([]string{"envs"}, strings.Fields(c.args)...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, "gymctl: "+c.want) ||
			strings.Count(said, "\n") != 1 {
			t.Errorf("gymctl envs %s: exit code %d, printed %q, said %q; want 2, nothing, %q", c.args, code, out, said, c.want)
		}
	}
}

func TestActionSpaces(t *testing.T) {
	for want, s := range map[string]env.ActionSpec{
		"Discrete(4)": {Sizes: []int{4}}, "MultiDiscrete([2 3])": {Sizes: []int{2, 3}},
		"Box(2)": {Low: []float32{0, 0}, High: []float32{1, 1}},
	} {
		if got := look.ActionSpace(s); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
}

// The help of sim says which command lists the clusters, and that command lists all of them.
func TestHelpSaysWhereClustersAreNamed(t *testing.T) {
	if help := clitest.Must(t, "sim", "--help"); !strings.Contains(help, "gymctl config list") {
		t.Errorf("sim --help does not say where clusters are named:\n%s", help)
	}
	list := clitest.Must(t, "config", "list")
	for _, name := range workload.ClusterPresets() {
		if !strings.Contains(list, "\n"+name+" ") {
			t.Errorf("config list does not name %s:\n%s", name, list)
		}
	}
}
