package docstest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The glossary names types and functions of the packages; they must exist.
func TestTheGlossaryNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	exported, folders := map[string]bool{}, map[string]bool{}
	for _, name := range ours(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				exported[f.Name.Name+"."+n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				exported[f.Name.Name+"."+n.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range n.Names {
					exported[f.Name.Name+"."+id.Name] = true
				}
			}
			return true
		})
	}
	names := regexp.MustCompile("`([a-z]+\\.[A-Z]\\w*)[^`]*`").FindAllStringSubmatch(string(page), -1)
	for _, m := range names {
		if !exported[m[1]] {
			t.Errorf("the glossary names %s, which no package has", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z]+/[a-z/]+)`").FindAllStringSubmatch(string(page), -1) {
		if !folders[m[1]] {
			t.Errorf("the glossary names the folder %s, which has no code", m[1])
		}
	}
	if len(names) < 10 {
		t.Errorf("saw %d names only", len(names))
	}
}
