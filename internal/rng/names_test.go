package rng

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The names of streams decide what every seed draws, so they stay when packages move and functions are renamed. This
// test reads the sources of the module and collects what is passed as a name to Stream, Source, Seed and Hash, and to
// functions that pass a parameter on to one of those. Parts that are known only when the program runs are written as
// {}. Beside each whole name stands the first number of its stream under seed 1.
func TestNamesOfStreamsStay(t *testing.T) {
	m := readModule(t, filepath.Join("..", ".."))
	m.findWrappers()
	var lines []string
	for name := range m.names() {
		line := strconv.Quote(name)
		if !strings.Contains(name, "{}") && !strings.Contains(name, "%") {
			line += fmt.Sprintf(" %#016x", Stream(1, name).Uint64())
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	file := filepath.Join("testdata", "names.txt")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	literals := m.literals()
	for _, l := range want {
		name, _, _ := strings.Cut(l[1:], `"`)
		if !slices.Contains(lines, l) && !literals[name] { // a field or a table may carry it to where it is used
			t.Errorf("no stream is called %s any more; whoever draws from it draws other numbers", l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(want, l) {
			t.Errorf("%s is a new name; -update writes it down if it is the name of a new stream", l)
		}
	}
}

// A module is the source of all its packages, without tests, by name: packages of one name are taken together.
type module struct {
	files  []file
	consts map[string]string // value of a string constant, by package name and name, as "arena.testEpisodes"
	// takes says which parameter of a function is the name of a stream, by package name and name of the function. A method
	// counts as a function of its package.
	takes map[string]int
}

type file struct {
	pkg string
	ast *ast.File
}

// readModule parses the module in dir.
func readModule(t *testing.T, dir string) *module {
	t.Helper()
	m := &module{consts: map[string]string{},
		takes: map[string]int{"rng.Stream": 1, "rng.Source": 1, "rng.Seed": 2, "rng.Hash": 0}}
	set := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (name[0] == '.' || name == "testdata" || name == "python" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		m.files = append(m.files, file{f.Name.Name, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.files {
		for _, d := range f.ast.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, s := range g.Specs {
					v := s.(*ast.ValueSpec) //nolint:forcetypeassert // of a declaration of constants
					for i, n := range v.Names {
						if i < len(v.Values) {
							if text, ok := literal(v.Values[i]); ok {
								m.consts[f.pkg+"."+n.Name] = text
							}
						}
					}
				}
			}
		}
	}
	return m
}

// literals returns the string literals of the module.
func (m *module) literals() map[string]bool {
	all := map[string]bool{}
	for _, f := range m.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok {
					all[text] = true
				}
			}
			return true
		})
	}
	return all
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// called returns the function that a call calls, as in module.takes.
func called(f *file, c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return f.pkg + "." + fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// nameOf returns the argument of a call that is the name of a stream.
func (m *module) nameOf(f *file, c *ast.CallExpr) ast.Expr {
	at, ok := m.takes[called(f, c)]
	if !ok || at >= len(c.Args) {
		return nil
	}
	return c.Args[at]
}

// findWrappers adds the functions that pass a parameter on as a name, until there are no more.
func (m *module) findWrappers() {
	for again := true; again; {
		again = false
		for i := range m.files {
			f := &m.files[i]
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil || f.pkg == "rng" {
					continue
				}
				key := f.pkg + "." + fn.Name.Name
				if _, known := m.takes[key]; known {
					continue
				}
				params := map[string]int{}
				n := 0
				for _, p := range fn.Type.Params.List {
					for _, name := range p.Names {
						if id, ok := p.Type.(*ast.Ident); ok && id.Name == "string" {
							params[name.Name] = n
						}
						n++
					}
				}
				ast.Inspect(fn.Body, func(x ast.Node) bool {
					if c, ok := x.(*ast.CallExpr); ok {
						if id, ok := m.nameOf(f, c).(*ast.Ident); ok {
							if at, ok := params[id.Name]; ok && called(f, c) != "rng.Hash" {
								m.takes[key], again = at, true
							}
						}
					}
					return true
				})
			}
		}
	}
}

// names returns all names of streams.
func (m *module) names() map[string]bool {
	all := map[string]bool{}
	for i := range m.files {
		f := &m.files[i]
		if f.pkg == "rng" {
			continue
		}
		ast.Inspect(f.ast, func(x ast.Node) bool {
			if c, ok := x.(*ast.CallExpr); ok {
				if e := m.nameOf(f, c); e != nil {
					if name := m.text(f, e); strings.Trim(name, "{}") != "" {
						all[name] = true
					}
				}
			}
			return true
		})
	}
	return all
}

// text returns what an expression says, with {} for what is not in the source.
func (m *module) text(f *file, e ast.Expr) string {
	if text, ok := literal(e); ok {
		return text
	}
	switch e := e.(type) {
	case *ast.Ident:
		if text, ok := m.consts[f.pkg+"."+e.Name]; ok {
			return text
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			if text, ok := m.consts[x.Name+"."+e.Sel.Name]; ok {
				return text
			}
		}
	case *ast.BinaryExpr:
		return m.text(f, e.X) + m.text(f, e.Y)
	case *ast.ParenExpr:
		return m.text(f, e.X)
	case *ast.CallExpr:
		if called(f, e) == "fmt.Sprintf" {
			return m.text(f, e.Args[0])
		}
	}
	return "{}"
}
