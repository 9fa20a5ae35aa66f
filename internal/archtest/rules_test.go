package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "clustergym"

// matches reports whether pkg is pattern, or below it if pattern ends with "/...".
func matches(pattern, pkg string) bool {
	if root, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(pkg+"/", root)
	}
	return pattern == pkg
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// allowed collects the entries of a table that apply to pkg.
func allowed(table map[string][]string, pkg string) (list []string, listed bool) {
	for pattern, may := range table { // the order does not matter, because the lists are merged
		if matches(pattern, pkg) {
			list, listed = append(list, may...), true
		}
	}
	return list, listed
}

// source is one file to check.
type source struct {
	pkg  string // path below the module, such as "simulator/sim"
	name string // of the file
	text []byte
}

// check returns what is wrong with a file, each with its line.
func check(s source) []string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path.Join(s.pkg, s.name), s.text, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	c := &checker{source: s, fset: fset, test: strings.HasSuffix(s.name, "_test.go"), names: map[string]string{}}
	for _, spec := range f.Imports {
		c.imported(spec)
	}
	if !c.test && matchesAny(repeatable, s.pkg) {
		ast.Inspect(f, c.selector)
	}
	if !c.test && s.pkg != policyNames {
		ast.Inspect(f, c.policyName)
	}
	if !c.test && slices.Contains(flagless, top(s.pkg)) &&
		!matchesAny(slices.Collect(maps.Keys(mayNameFlags)), path.Join(s.pkg, s.name)) {
		ast.Inspect(f, c.flagName)
	}
	return c.faults
}

type checker struct {
	source
	fset   *token.FileSet
	test   bool
	names  map[string]string // local name of an import → its path
	faults []string
}

func (c *checker) fault(at token.Pos, format string, args ...any) {
	p := c.fset.Position(at)
	c.faults = append(c.faults, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
}

func (c *checker) imported(spec *ast.ImportSpec) {
	full, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		c.fault(spec.Pos(), "import path %s", spec.Path.Value)
		return
	}
	name := path.Base(full)
	if name == "v2" || name == "v3" || name == "v5" {
		name = path.Base(path.Dir(full))
	}
	if spec.Name != nil {
		name = spec.Name.Name
	}
	c.names[name] = full
	if name == "." {
		c.fault(spec.Pos(), "dot import of %s: names must show where they come from", full)
	}
	inner, ours := strings.CutPrefix(full, module+"/")
	switch {
	case ours:
		c.ours(spec, inner)
	case full == "math/rand":
		c.fault(spec.Pos(), "imports math/rand, want math/rand/v2 with a generator that is passed in")
	case full == "crypto/rand" && matchesAny(repeatable, c.pkg) && !matchesAny(clocks, c.pkg):
		c.fault(spec.Pos(), "imports crypto/rand: nothing here may draw from the system")
	case full == "C" || full == "plugin":
		c.fault(spec.Pos(), "imports %s: the binary is plain Go", full)
	case strings.Contains(strings.Split(full, "/")[0], "."):
		c.library(spec, full)
	}
}

// ours checks an arrow within the module.
func (c *checker) ours(spec *ast.ImportSpec, to string) {
	if to == c.pkg || strings.HasPrefix(to, "internal/") {
		return // an external test imports its own package
	}
	may, _ := allowed(arrows, c.pkg)
	if matchesAny(may, to) || slices.Contains(may, lower) && floors[top(to)] < floors[top(c.pkg)] {
		return
	}
	if c.test && testMay(c.pkg, to) {
		return
	}
	c.fault(spec.Pos(), "%s imports %s, which is not in the table", c.pkg, to)
}

// testMay reports whether a test may import to: tests may import everything in their own top-level folder and on the
// floors below.
func testMay(from, to string) bool {
	a, b := top(from), top(to)
	return a == b || floors[b] < floors[a]
}

func top(pkg string) string {
	folder, _, _ := strings.Cut(pkg, "/")
	return folder
}

// library checks an import from outside.
func (c *checker) library(spec *ast.ImportSpec, full string) {
	may, _ := allowed(libraries, c.pkg)
	may = append(slices.Clone(may), everywhere...)
	if c.test {
		may = append(may, everyTest...)
	}
	if !slices.ContainsFunc(may, func(m string) bool { return matches(m+"/...", full) }) {
		c.fault(spec.Pos(), "%s imports %s, which is not among its libraries", c.pkg, full)
		return
	}
	if strings.HasPrefix(full, "gorgonia.org/") && top(c.pkg) == "agents" && !c.test &&
		!strings.HasPrefix(c.name, "loss") {
		c.fault(spec.Pos(), "imports %s: in agents only loss*.go may", full)
	}
}

// forbidden are functions whose results depend on more than seed and configuration.
var forbidden = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"os":   {"Getenv", "LookupEnv", "Environ", "ExpandEnv"},
	"syscall": {
		"Getenv", "Environ",
	},
}

// randMay are the names of math/rand/v2 that are not functions of the global generator.
var randMay = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Source", "Zipf"}

// selector checks a pkg.Name whose pkg is an import.
func (c *checker) selector(n ast.Node) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return true
	}
	from := c.names[id.Name]
	switch {
	case slices.Contains(forbidden[from], sel.Sel.Name) && !(from == "time" && matchesAny(clocks, c.pkg)):
		c.fault(sel.Pos(), "uses %s.%s: results must follow from seed and configuration", from, sel.Sel.Name)
	case from == "math/rand/v2" && !slices.Contains(randMay, sel.Sel.Name):
		c.fault(sel.Pos(), "uses rand.%s of the global generator, want a *rand.Rand that is passed in", sel.Sel.Name)
	}
	return true
}

// policyNames is the one package that has a grammar for the names of policies.
const policyNames = "simulator/policyname"

// ofPolicy matches a piece of a policy's name. A message that begins with the name of its package has a blank there.
var ofPolicy = regexp.MustCompile(`@slots|(rollout|hindsight):([^ ]|$)`)

// policyName checks that no string is a piece of a policy's name: others would take names apart with it. The help of
// gymctl has examples, as documentation does.
func (c *checker) policyName(n ast.Node) bool {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return true
	}
	text, err := strconv.Unquote(lit.Value)
	if help := top(c.pkg) == "cmd" && strings.Contains(text, " "); err == nil && !help && ofPolicy.MatchString(text) {
		c.fault(lit.Pos(), "%.60q is a piece of a policy's name, want %s to read or write it", text, policyNames)
	}
	return true
}

// aFlag matches the name of a flag, and aCommand a program in whose command line, shown as a whole, flags may stand.
var (
	aFlag    = regexp.MustCompile(`(^|[^\w-])--[a-z%]`)
	aCommand = regexp.MustCompile(`\b(gymctl [a-z]+|sacct|squeue|nats-server|xz)\b`)
)

// flagName checks that no string names a flag: packages name keys (fault.Key), which gymctl shows as its flags.
func (c *checker) flagName(n ast.Node) bool {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return true
	}
	text, err := strconv.Unquote(lit.Value)
	if err == nil && aFlag.MatchString(text) && !aCommand.MatchString(text) {
		c.fault(lit.Pos(), "%.60q names a flag, want fault.Key and its name without hyphens", text)
	}
	return true
}

// badNames are package names that do not say what a package is for.
var badNames = []string{"util", "utils", "common", "types", "misc", "helpers", "base"}

// checkPackage returns what is wrong with a package as a whole.
func checkPackage(pkg, doc string) []string {
	var faults []string
	if _, listed := allowed(arrows, pkg); !listed {
		faults = append(faults, fmt.Sprintf("%s is not in the table of arrows", pkg))
	}
	if slices.Contains(badNames, path.Base(pkg)) {
		faults = append(faults, fmt.Sprintf("%s has a name that says nothing", pkg))
	}
	if doc == "" {
		faults = append(faults, fmt.Sprintf("%s has no package comment", pkg))
	}
	return faults
}

// checkTables returns arrows that point up or sideways between top-level folders.
func checkTables() []string {
	var faults []string
	for from, tos := range arrows {
		for _, to := range tos {
			if to == lower {
				continue
			}
			a, b := top(from), top(to)
			if _, known := floors[a]; !known {
				faults = append(faults, fmt.Sprintf("%s stands in no folder of the floors", from))
			}
			if _, known := floors[b]; !known || a != b && floors[b] >= floors[a] {
				faults = append(faults, fmt.Sprintf("the table lets %s import %s, which is not below it", from, to))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// checkRows returns the rows of the tables that name no package of pkgs.
func checkRows(pkgs []string) []string {
	var faults []string
	names := func(pattern string) bool {
		return slices.ContainsFunc(pkgs, func(p string) bool { return matches(pattern, p) })
	}
	for from, tos := range arrows {
		if !names(from) {
			faults = append(faults, fmt.Sprintf("the row %s of the table of arrows names no package", from))
		}
		for _, to := range tos {
			if to != lower && !names(to) {
				faults = append(faults, fmt.Sprintf("the table lets %s import %s, which names no package", from, to))
			}
		}
	}
	for from := range libraries {
		if !names(from) {
			faults = append(faults, fmt.Sprintf("the row %s of the table of libraries names no package", from))
		}
	}
	for _, from := range slices.Concat(repeatable, clocks) {
		if !names(from) {
			faults = append(faults, fmt.Sprintf("%s, of what must be repeatable or may read the clock, names no package", from))
		}
	}
	slices.Sort(faults)
	return faults
}

// checkSizes returns the packages that have more lines than maxLines and are not among the large ones, and the large
// ones that need not be.
func checkSizes(lines map[string]int, large map[string]string) []string {
	var faults []string
	for pkg, n := range lines {
		if reason, exempt := large[pkg]; n > maxLines && !exempt {
			faults = append(faults,
				fmt.Sprintf("%s has %d lines of Go beside its tests, want at most %d: split it, or say in the table large why not",
					pkg, n, maxLines))
		} else if exempt && reason == "" {
			faults = append(faults, fmt.Sprintf("%s has no reason in the table large", pkg))
		}
	}
	for pkg := range large {
		if n := lines[pkg]; n <= maxLines {
			faults = append(faults, fmt.Sprintf("%s has %d lines: its entry in the table large is not needed", pkg, n))
		}
	}
	slices.Sort(faults)
	return faults
}

// folder is the folder of its top-level entry that a package is in: "simulator/dag" for simulator/dag/synth, and "env"
// for env itself.
func folder(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// checkCircles returns circles of imports between folders of one top-level entry. The compiler refuses those of
// packages; two folders whose packages import each other both ways are still one thing under two names.
func checkCircles(imports map[string][]string) []string {
	to := map[string][]string{}
	for from, list := range imports {
		for _, pkg := range list {
			if a, b := folder(from), folder(pkg); a != b && top(a) == top(b) && !slices.Contains(to[a], b) {
				to[a] = append(to[a], b)
			}
		}
	}
	folders := slices.Sorted(maps.Keys(to))
	for _, f := range folders {
		slices.Sort(to[f])
	}
	var faults []string
	done := map[string]bool{}
	var way []string
	var walk func(f string)
	walk = func(f string) {
		if i := slices.Index(way, f); i >= 0 {
			faults = append(faults, "folders import each other: "+strings.Join(append(slices.Clone(way[i:]), f), " → "))
			return
		}
		if done[f] {
			return
		}
		way = append(way, f)
		for _, next := range to[f] {
			walk(next)
		}
		way = way[:len(way)-1]
		done[f] = true
	}
	for _, f := range folders {
		walk(f)
	}
	return faults
}
