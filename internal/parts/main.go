// Command parts prints the packages that a part of make test looks at, so that no part compiles and runs what cannot
// show it a fault, and a new package is in the right ones by itself.
//
//	go run ./internal/parts race                two goroutines can meet in the tests
//	go run ./internal/parts tag invariants      a file of the package, or of one that its tests link, has this build tag
//	go run ./internal/parts vet windows/amd64   the package can differ there from what it is here
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const usage = "usage: parts race | tag TAG | vet OS/ARCH"

func main() {
	pkgs, err := choose(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
	for _, p := range pkgs {
		fmt.Println(p)
	}
}

// choose returns the paths of the packages of the module in the current folder that args ask for.
func choose(args []string) ([]string, error) {
	var rule func(here []pkg) ([]string, error)
	switch {
	case len(args) == 1 && args[0] == "race":
		rule = func(here []pkg) ([]string, error) { return race(here), nil }
	case len(args) == 2 && args[0] == "tag":
		rule = func(here []pkg) ([]string, error) { return tagged(here, args[1]), nil }
	case len(args) == 2 && args[0] == "vet" && strings.Count(args[1], "/") == 1:
		system, processor, _ := strings.Cut(args[1], "/")
		rule = func(here []pkg) ([]string, error) {
			there, err := load([]string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0"})
			return differing(here, there), err
		}
	default:
		return nil, errors.New(usage)
	}
	here, err := load(nil)
	if err != nil {
		return nil, err
	}
	return rule(here)
}

// A pkg is a package and what its files say.
type pkg struct {
	path        string
	code, tests files
}

// files are those of a package, or those of its tests, on one platform.
type files struct {
	names   []string
	imports []string
	starts  bool     // a go statement, or a call that starts a goroutine
	tags    []string // of the build constraints, of files that are left out, too
}

// load reads the packages of the module, as they are with settings of the environment on top.
func load(settings []string) ([]pkg, error) {
	c := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,SFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	c.Env = append(os.Environ(), settings...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l struct {
			ImportPath, Dir                                            string
			GoFiles, SFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := pkg{path: l.ImportPath}
		for _, part := range []struct {
			to    *files
			names []string
		}{{&p.code, l.GoFiles}, {&p.tests, slices.Concat(l.TestGoFiles, l.XTestGoFiles)}} {
			for _, name := range part.names {
				if err := part.to.read(filepath.Join(l.Dir, name)); err != nil {
					return nil, err
				}
			}
		}
		p.code.names = append(p.code.names, l.SFiles...)
		for _, name := range l.IgnoredGoFiles {
			var left files
			if err := left.read(filepath.Join(l.Dir, name)); err != nil {
				return nil, err
			}
			if strings.HasSuffix(name, "_test.go") {
				p.tests.tags = append(p.tests.tags, left.tags...)
			} else {
				p.code.tags = append(p.code.tags, left.tags...)
			}
		}
		all = append(all, p)
	}
}

// read adds a file.
func (f *files) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f.names = append(f.names, filepath.Base(name))
	return f.add(name, text)
}

// starters are functions and methods that start goroutines: of testing.T, testing.B and time.
var starters = []string{"Parallel", "RunParallel", "AfterFunc"}

func (f *files) add(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, path)
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			x.Eval(func(tag string) bool { f.tags = append(f.tags, tag); return false })
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			f.starts = true
		case *ast.SelectorExpr:
			f.starts = f.starts || slices.Contains(starters, n.Sel.Name)
		}
		return true
	})
	return nil
}
