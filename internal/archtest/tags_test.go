package archtest

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

// Keys of documents and of files are names that others read by, so none of them goes when a type moves or is renamed.
// This test reads the tags of all structs, wherever they are; new keys need no line here.
func TestNoKeyOfADocumentGoes(t *testing.T) {
	have := map[string]bool{}
	set := token.NewFileSet()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name[0] == '.' || name == "testdata" || name == "python" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if doc, ok := n.(*ast.CompositeLit); ok { // cli.Keyed, whose keys are not tags
				if of, ok := doc.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Keyed" {
					key, err := strconv.Unquote(doc.Elts[0].(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
					if err != nil {
						t.Error(err)
					}
					have["json "+key] = true
				}
			}
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				text, err := strconv.Unquote(field.Tag.Value)
				if err != nil {
					t.Errorf("%s: %v", set.Position(field.Pos()), err)
				}
				for _, form := range []string{"json", "yaml", "msgpack"} {
					if key, _, _ := strings.Cut(reflect.StructTag(text).Get(form), ","); key != "" && key != "-" {
						have[form+" "+key] = true
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "keys.txt")
	if *update {
		var lines []string
		for key := range have {
			lines = append(lines, key)
		}
		slices.Sort(lines)
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for key := range strings.Lines(string(b)) {
		if key = strings.TrimSuffix(key, "\n"); !have[key] {
			t.Errorf("no struct has the tag %s any more (-update rewrites %s)", key, golden)
		}
	}
}
