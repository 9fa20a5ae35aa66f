package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// described reads code for the facts of a package.
func described(t *testing.T, path, code, test string) pkg {
	t.Helper()
	p := pkg{path: path}
	for _, f := range []struct {
		to         *files
		name, text string
	}{{&p.code, "x.go", code}, {&p.tests, "x_test.go", test}} {
		if f.text == "" {
			continue
		}
		f.to.names = []string{f.name}
		if err := f.to.add(f.name, []byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestPackagesWhoseGoroutinesCanMeet(t *testing.T) {
	pkgs := []pkg{
		described(t, "par", "package par\nfunc Do() { go func() {}() }", ""),
		described(t, "vec", "package vec\nimport \"par\"\nvar _ = par.Do", ""),
	}
	for _, c := range []struct {
		what, code, test string
		want             bool
	}{
		{"plain", "package a\nimport \"fmt\"\nvar _ = fmt.Sprint",
			"package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Log() }", false},
		{"the words in a comment", "package a\n// go func() is started, t.Parallel() too\n", "", false},
		{"a go statement in a test", "package a", "package a\nfunc f() { go f() }", true},
		{"a go statement in the code", "package a\nfunc f() { go f() }", "", true},
		{"parallel tests", "package a", "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Parallel() }", true},
		{"a function later", "package a\nimport \"time\"\nfunc f() { time.AfterFunc(1, f) }", "", true},
		{"shared memory", "package a\nimport \"sync/atomic\"\nvar n atomic.Int64", "", true},
		{"work handed out", "package a", "package a\nimport \"par\"\nvar _ = par.Do", true},
		{"work handed to who hands it out", "package a", "package a\nimport \"vec\"", true},
		{"a server", "package a", "package a\nimport \"net/http/httptest\"", true},
	} {
		got := race(append(pkgs, described(t, "a", c.code, c.test)))
		if slices.Contains(got, "a") != c.want {
			t.Errorf("%s: got %q", c.what, got)
		}
		if !slices.Contains(got, "par") || !slices.Contains(got, "vec") {
			t.Errorf("%s: got %q, want par and vec in it", c.what, got)
		}
	}
}

func TestPackagesThatATagChanges(t *testing.T) {
	checked := "//go:build invariants\n\npackage a\n"
	for _, c := range []struct {
		what string
		pkgs []pkg
		want []string
	}{
		{"none", []pkg{described(t, "a", "//go:build linux\n\npackage a\n", "")}, nil},
		{"a comment that looks like one", []pkg{described(t, "a", "package a\n//go:build invariants\n", "")}, nil},
		{"its code", []pkg{described(t, "a", checked, ""), described(t, "b", "package b", "")}, []string{"a"}},
		{"the other side of it", []pkg{described(t, "a", "//go:build !invariants || race\n\npackage a\n", "")},
			[]string{"a"}},
		{"its tests alone", []pkg{described(t, "a", "package a", checked), described(t, "b", "package b\nimport \"a\"", "")},
			[]string{"a"}},
		{"what it links", []pkg{
			described(t, "d", "package d", "package d\nimport \"c\""), described(t, "c", "package c\nimport \"b\"", ""),
			described(t, "b", "package b\nimport \"a\"",
				""), described(t, "a", checked, ""), described(t, "e", "package e", "package e\nimport \"d\""),
		}, []string{"a", "b", "c", "d"}},
	} {
		if got := tagged(c.pkgs, "invariants"); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestPackagesThatDifferBySystem(t *testing.T) {
	lock := described(t, "lock", "package lock", "")
	other := lock
	other.code.names = []string{"lock_other.go"}
	for _, c := range []struct {
		what, code, test string
		want             bool
	}{
		{"the same", "package a\nimport \"os\"\nvar _ = os.Args", "package a", false},
		{"what differs", "package a\nimport \"lock\"", "", true},
		{"what differs, in its tests", "package a", "package a\nimport \"lock\"", true},
		{"the system's calls in its tests", "package a", "package a\nimport \"syscall\"\nvar _ = syscall.SIGHUP", true},
		{"the system's calls by x/sys", "package a\nimport \"golang.org/x/sys/unix\"", "", true},
	} {
		a := described(t, "a", c.code, c.test)
		got := differing([]pkg{lock, a}, []pkg{other, a})
		if slices.Contains(got, "a") != c.want || !slices.Contains(got, "lock") {
			t.Errorf("%s: got %q", c.what, got)
		}
	}
	a := described(t, "a", "package a", "package a")
	there := a
	there.tests.names = nil
	if got := differing([]pkg{a}, []pkg{there}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with other tests: got %q", got)
	}
}

// in runs the rest of a test in the folder of the module.
func in(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
}

// What is known of some packages keeps the rules honest, should the code that they read change its ways.
func TestPartsOfThisModule(t *testing.T) {
	in(t)
	for _, c := range []struct {
		args      string
		with, not []string
	}{
		{"race", []string{"internal/par", "env/vec", "bridge/server", "agents/ppo", "cmd/gymctl/internal/operate",
			"env/jobselect", "traces"}, []string{"simulator/dag", "traces/swf", "env/reward"}},
		{"tag invariants", []string{"simulator/sim", "simulator/schedulers", "env/jobselect"},
			[]string{"bridge/wire", "nets/kernel", "traces/swf"}},
		{"vet windows/amd64", []string{"cmd/gymctl/internal/operate", "bridge/handle", "internal/durable"},
			[]string{"simulator/dag", "nets/layer"}},
	} {
		got, err := choose(strings.Fields(c.args))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.with {
			if !slices.Contains(got, "clustergym/"+p) {
				t.Errorf("%s: no %s", c.args, p)
			}
		}
		for _, p := range c.not {
			if slices.Contains(got, "clustergym/"+p) {
				t.Errorf("%s: %s is there", c.args, p)
			}
		}
	}
}

// make cross leaves macOS on x86-64 out: each package is there what it is on macOS with another processor, or on this
// processor with another system, and both are compiled.
func TestMacOSOnX86IsMadeOfOthers(t *testing.T) {
	in(t)
	names := map[string]map[string][]string{}
	for _, platform := range [][2]string{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}} {
		pkgs, err := load([]string{"GOOS=" + platform[0], "GOARCH=" + platform[1], "CGO_ENABLED=0"})
		if err != nil {
			t.Fatal(err)
		}
		of := map[string][]string{}
		for _, p := range pkgs {
			of[p.path] = slices.Concat(p.code.names, p.tests.names)
		}
		names[strings.Join(platform[:], "/")] = of
	}
	for p, got := range names["darwin/amd64"] {
		if !slices.Equal(got, names["darwin/arm64"][p]) && !slices.Equal(got, names["linux/amd64"][p]) {
			t.Errorf("%s has files for macOS on x86-64 alone, %q: let make cross compile it", p, got)
		}
	}
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "grep -v darwin/amd64") {
		t.Error("make cross compiles macOS on x86-64: this test is not needed any more")
	}
}

func TestPartsThatAreUnknownAreRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"races"}, {"race", "x"}, {"tag"}, {"vet", "windows"}} {
		if _, err := choose(args); err == nil || err.Error() != usage {
			t.Errorf("%q: %v, want %s", args, err, usage)
		}
	}
}
