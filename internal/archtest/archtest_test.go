package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is what go list prints about a package.
type listed struct {
	ImportPath, Dir, Doc                                         string
	Imports                                                      []string
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

// TestTheCodeKeepsTheRules reads every package of the module, every file of it under every build tag.
func TestTheCodeKeepsTheRules(t *testing.T) {
	cmd := exec.Command("go", "list", "-e",
		"-json=ImportPath,Dir,Doc,Imports,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages, files := 0, 0
	lines, imports := map[string]int{}, map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkg, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours {
			t.Errorf("package %s, want everything in folders below the root", p.ImportPath)
			continue
		}
		packages++
		lines[pkg] = 0
		for _, to := range p.Imports {
			if to, ours := strings.CutPrefix(to, module+"/"); ours {
				imports[pkg] = append(imports[pkg], to)
			}
		}
		doc := p.Doc
		if len(p.GoFiles) == 0 {
			doc = "tests only" // a package of tests needs no comment
		}
		for _, f := range checkPackage(pkg, doc) {
			t.Error(f)
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Error(err)
				continue
			}
			files++
			if !strings.HasSuffix(name, "_test.go") {
				lines[pkg] += bytes.Count(text, []byte("\n"))
			}
			for _, f := range check(source{pkg, name, text}) {
				t.Error(f)
			}
		}
	}
	if packages < 10 || files < 50 {
		t.Errorf("saw %d packages and %d files only", packages, files)
	}
	for _, f := range slices.Concat(checkRows(slices.Collect(maps.Keys(lines))), checkSizes(lines, large),
		checkCircles(imports)) {
		t.Error(f)
	}
}

func TestPackagesHaveALimit(t *testing.T) {
	for _, c := range []struct {
		what  string
		lines map[string]int
		large map[string]string
		want  string
	}{
		{"at the limit", map[string]int{"simulator/sim": maxLines}, nil, ""},
		{"above it", map[string]int{"simulator/sim": maxLines + 1}, nil, "simulator/sim has 4001 lines"},
		{"above it, with a reason", map[string]int{"simulator/sim": maxLines + 1},
			map[string]string{"simulator/sim": "it is one thing"}, ""},
		{"above it, with an empty reason", map[string]int{"simulator/sim": maxLines + 1},
			map[string]string{"simulator/sim": ""}, "simulator/sim has no reason"},
		{"a reason that is not needed", map[string]int{"simulator/sim": 10},
			map[string]string{"simulator/sim": "it is one thing"}, "simulator/sim has 10 lines"},
		{"a reason for nothing", nil, map[string]string{"simulator/sim": "it is one thing"}, "simulator/sim has 0 lines"},
	} {
		got := strings.Join(checkSizes(c.lines, c.large), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestFoldersOfOneEntryFormNoCircle(t *testing.T) {
	for _, c := range []struct {
		what    string
		imports map[string][]string
		want    string
	}{
		{"a line", map[string][]string{"env/a": {"env/b"}, "env/b/x": {"env/c", "env"}}, ""},
		{"within a folder", map[string][]string{"env/a": {"env/a/x"}, "env/a/y": {"env/a"}}, ""},
		{"across entries", map[string][]string{"env/a": {"nets/a"}, "nets/a": {"env/a"}}, ""},
		{"two folders", map[string][]string{"env/a": {"env/b/x"}, "env/b": {"env/a"}}, "env/a → env/b → env/a"},
		{"three folders", map[string][]string{"env/a/x": {"env/b"}, "env/b": {"env/c"}, "env/c": {"env/a/y"}},
			"env/a → env/b → env/c → env/a"},
		{"with the root", map[string][]string{"env": {"env/a/x"}, "env/a": {"env"}}, "env → env/a → env"},
	} {
		got := strings.Join(checkCircles(c.imports), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestRowsMustNamePackages(t *testing.T) {
	var pkgs []string
	for from := range arrows {
		pkgs = append(pkgs, strings.TrimSuffix(from, "/..."))
	}
	without := slices.DeleteFunc(slices.Clone(pkgs), func(p string) bool { return p == "env/vec" })
	got := strings.Join(checkRows(without), "; ")
	if want := "the row env/vec of the table of arrows names no package"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := "lets bridge/handle import env/vec, which names no package"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheTablesPointDown(t *testing.T) {
	for _, f := range checkTables() {
		t.Error(f)
	}
}

// TestEveryRuleFindsItsBreach checks each rule against a file that keeps it and one that breaks it.
func TestEveryRuleFindsItsBreach(t *testing.T) {
	for _, c := range []struct {
		what, pkg, file, code string
		want                  string // "" = no fault
	}{
		{"an arrow of the table", "simulator/sim", "a.go", `import "clustergym/simulator/cluster"`, ""},
		{"an arrow below the table", "agents/ppo", "a.go", `import "clustergym/nets/kernel"`, ""},
		{"internal", "traces/csv", "a.go", `import "clustergym/internal/rng"`, ""},
		{"an arrow up", "simulator/sim", "a.go", `import "clustergym/agents"`,
			"simulator/sim imports agents, which is not in the table"},
		{"an arrow sideways", "nets", "a.go", `import "clustergym/traces"`, "nets imports traces"},
		{"from a root to its child", "env", "a.go", `import "clustergym/simulator/sim"`, "env imports simulator/sim"},
		{"between children", "traces/csv", "a.go", `import "clustergym/traces/swf"`, "traces/csv imports traces/swf"},
		{"between algorithms", "agents/maml", "a.go", `import "clustergym/agents/ppo"`, "agents/maml imports agents/ppo"},
		{"an agent that knows jobs", "agents/ppo", "a.go", `import "clustergym/env/sched"`, "agents/ppo imports env/sched"},
		{"a prefix is not a folder", "agents/ppo", "a.go", `import "clustergym/nets2"`, "agents/ppo imports nets2"},

		{"a test looking down", "agents/ppo", "a_test.go", `import "clustergym/env/control"`, ""},
		{"a test looking around", "simulator/sim", "a_test.go", `import "clustergym/simulator/schedulers"`, ""},
		{"a test of its own package", "simulator/sim", "a_test.go", `import "clustergym/simulator/sim"`, ""},
		{"a test looking up", "simulator/sim", "a_test.go", `import "clustergym/agents"`, "simulator/sim imports agents"},
		{"a test looking sideways", "nets", "a_test.go", `import "clustergym/traces"`, "nets imports traces"},

		{"a library of the table", "traces/csv", "a.go", `import "github.com/klauspost/compress/zstd"`, ""},
		{"a library of others", "simulator/sim", "a.go", `import "github.com/klauspost/compress/zstd"`,
			"not among its libraries"},
		{"a library that nobody may use", "experiments", "a.go", `import "github.com/stretchr/testify/assert"`,
			"not among its libraries"},
		{"a library with a longer name", "configs", "a.go", `import "go.yaml.in/yaml/v3more"`, "not among its libraries"},
		{"rapid in a test", "simulator/sim", "a_test.go", `import "pgregory.net/rapid"`, ""},
		{"rapid outside tests", "simulator/sim", "a.go", `import "pgregory.net/rapid"`, "not among its libraries"},

		{"Gorgonia in nets", "nets/tape", "a.go", `import "gorgonia.org/gorgonia"`, ""},
		{"Gorgonia in a loss", "agents/ppo", "loss.go", `import "gorgonia.org/gorgonia"`, ""},
		{"Gorgonia in another loss", "agents/ppo", "loss_value.go", `import G "gorgonia.org/gorgonia"`, ""},
		{"Gorgonia beside the loss", "agents/ppo", "agent.go", `import "gorgonia.org/tensor"`, "in agents only loss*.go may"},
		{"Gorgonia in replay", "replay", "loss.go", `import "gorgonia.org/tensor"`, "not among its libraries"},
		{"Gorgonia in experiments", "experiments", "a.go", `import "gorgonia.org/gorgonia"`, "not among its libraries"},

		{"a duration", "simulator/sim", "a.go", "import \"time\"\nvar x = time.Second", ""},
		{"the clock", "simulator/sim", "a.go", "import \"time\"\nvar x = time.Now()", "a.go:3: uses time.Now"},
		{"the clock as a value", "simulator/sim", "a.go", "import \"time\"\nvar x = time.Now", "uses time.Now"},
		{"the clock by another name", "replay", "a.go", "import clock \"time\"\nvar x = clock.Since", "uses time.Since"},
		{"the clock in a test", "simulator/sim", "a_test.go", "import \"time\"\nvar x = time.Now()", ""},
		{"the clock of the bridge", "bridge/server", "a.go", "import \"time\"\nvar x = time.Now()", ""},
		{"the clock of experiments", "experiments", "a.go", "import \"time\"\nvar x = time.Now()", ""},
		{"the environment", "traces", "a.go", "import \"os\"\nvar x = os.Getenv(\"HOME\")", "uses os.Getenv"},
		{"the bridge's environment", "bridge/server", "a.go", "import \"os\"\nvar x = os.Getenv(\"HOME\")", "uses os.Getenv"},
		{"a file", "traces", "a.go", "import \"os\"\nvar x = os.Open", ""},
		{"a generator", "simulator/sim", "a.go", "import \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2))", ""},
		{"the global generator", "nets/layer", "a.go", "import \"math/rand/v2\"\nvar x = rand.NormFloat64()",
			"rand.NormFloat64 of the global generator"},
		{"the global generator's generic", "agents/ppo", "a.go", "import r \"math/rand/v2\"\nvar x = r.N(10)",
			"rand.N of the global generator"},
		{"a method of a generator", "simulator/sim", "a.go",
			"import \"math/rand/v2\"\nfunc f(src *rand.Rand) int { return src.IntN(3) }", ""},
		{"the old generator", "cmd/gymctl", "a.go", `import "math/rand"`, "want math/rand/v2"},
		{"the old generator in a test", "simulator/sim", "a_test.go", `import "math/rand"`, "want math/rand/v2"},
		{"the system's generator", "agents", "a.go", `import "crypto/rand"`, "imports crypto/rand"},
		{"tokens of the bridge", "bridge/server", "a.go", `import "crypto/rand"`, ""},
		{"a dot import", "simulator/sim", "a.go", `import . "strings"`, "dot import of strings"},
		{"cgo", "nets/kernel", "a.go", `import "C"`, "imports C"},
		{"a flag in a message", "lab/run", "a.go", `var x = "want another --run-dir"`, "names a flag"},
		{"a flag in a raw message", "env/sched", "a.go", "var x = `(--jobs)`", "names a flag"},
		{"a flag of a whole command", "lab/run", "a.go", `var x = "gymctl eval --checkpoint run"`, ""},
		{"a flag of a verb", "cmd/gymctl", "a.go", `var x = "--run-dir"`, ""},
		{"a flag in a test", "lab/run", "a_test.go", `var x = "--run-dir"`, ""},
		{"a flag of another program", "lab/speed", "bridge.go", `var x = "--url"`, ""},
		{"a line of hyphens", "lab/run", "a.go", `var x = "---a b--c"`, ""},
		{"a policy's suffix", "lab/run", "a.go", `const x = "hold@slots"`,
			"a.go:2: \"hold@slots\" is a piece of a policy's name"},
		{"a policy's prefix", "env/rollout", "a.go", `var x = "rollout:"`, "piece of a policy's name"},
		{"a policy that knows", "cmd/gymctl", "a.go", "var x = `hindsight:sjf`", "piece of a policy's name"},
		{"a policy in a message", "lab/run", "a.go", `var x = "want a rule such as sjf@slots"`, "piece of a policy's name"},
		{"a policy in a test", "lab/run", "a_test.go", `var x = "sjf@slots"`, ""},
		{"a policy in help", "cmd/gymctl", "a.go", `var x = "gymctl eval --policies sjf@slots"`, ""},
		{"a policy where its grammar is", "simulator/policyname", "a.go", `var x = "@slots"`, ""},
		{"a message of a package", "env/rollout", "a.go", `var x = "rollout: a budget of time needs a clock"`, ""},

		{"no Go at all", "simulator/sim", "a.go", "func {", "expected"},
	} {
		got := check(source{c.pkg, c.file, []byte("package p\n" + c.code + "\n")})
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: got %q, want nothing", c.what, got)
			}
			continue
		}
		if len(got) != 1 && c.want != "expected" || len(got) == 0 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestPackagesMustBeListedNamedAndCommented(t *testing.T) {
	for _, c := range []struct{ pkg, doc, want string }{
		{"simulator/sim", "Package sim …", ""},
		{"experiments/topdrl", "Package topdrl …", ""},
		{"env/unheard", "Package unheard …", "env/unheard is not in the table"},
		{"internal/utils", "Package utils …", "has a name that says nothing"},
		{"simulator/sim", "", "simulator/sim has no package comment"},
	} {
		got := strings.Join(checkPackage(c.pkg, c.doc), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.pkg, got, c.want)
		}
	}
}
