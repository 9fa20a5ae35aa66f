package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The marks between which a map stands in a page.
const (
	mapBegins = "<!-- map: written by go test ./internal/archtest -run TestMaps -update -->\n"
	mapEnds   = "<!-- end of the map -->\n"
)

// entry is a package of the map.
type entry struct {
	pkg, sentence string
	imports       []string // packages of the module
	code          bool     // whether it has more than doc.go
}

// TestMaps holds the maps to the code: docs/design/map.md with every package and what it does, the floors in
// CONTRIBUTING.md and docs/design/architecture.md, and the comments of top-level folders that have no code of their
// own.
func TestMaps(t *testing.T) {
	entries := packages(t)
	root := filepath.Join("..", "..")
	written(t, filepath.Join(root, "docs", "design", "map.md"),
		between(t, filepath.Join(root, "docs", "design", "map.md"), whereIs(t)+page(entries)))
	for _, name := range []string{"CONTRIBUTING.md", filepath.Join("docs", "design", "architecture.md")} {
		written(t, filepath.Join(root, name), between(t, filepath.Join(root, name), storeys()))
	}
	for _, r := range house {
		if i := slices.IndexFunc(entries, func(e entry) bool { return e.pkg == r.folder }); i >= 0 && entries[i].code {
			continue // it has a comment of its own
		}
		if text, some := comment(r, entries); some {
			written(t, filepath.Join(root, r.folder, "doc.go"), text)
		}
	}
}

// packages lists the module's packages in the order of their folders.
func packages(t *testing.T) (all []entry) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Doc,Imports,GoFiles", "./...")
	cmd.Dir, cmd.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		e := entry{pkg: strings.TrimPrefix(p.ImportPath, module+"/"), sentence: sentence(p.Doc),
			code: slices.ContainsFunc(p.GoFiles, func(f string) bool { return f != "doc.go" })}
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		for _, to := range p.Imports {
			if to, ours := strings.CutPrefix(to, module+"/"); ours {
				e.imports = append(e.imports, to)
			}
		}
		all = append(all, e)
	}
}

// sentence returns what a package's comment says after "Package NAME": the synopsis that go list gives, without a colon
// at its end that announces a list.
func sentence(doc string) string {
	doc = strings.TrimPrefix(strings.TrimPrefix(doc, "Package "), "Command ")
	return strings.TrimRight(doc, ".: ")
}

// height returns how many packages of the same top-level folder an import chain from e has at most, so that a package
// comes after those that it is built on.
func height(e entry, entries []entry) int {
	most := 0
	for _, to := range e.imports {
		if top(to) == top(e.pkg) {
			if i := slices.IndexFunc(entries, func(x entry) bool { return x.pkg == to }); i >= 0 {
				most = max(most, 1+height(entries[i], entries))
			}
		}
	}
	return most
}

// inFolder returns the packages of a folder, from the lowest up.
func inFolder(folder string, entries []entry) []entry {
	var own []entry
	for _, e := range entries {
		if top(e.pkg) == folder {
			own = append(own, e)
		}
	}
	slices.SortStableFunc(own, func(a, b entry) int { return height(a, entries) - height(b, entries) })
	return own
}

// page is the map of all packages.
func page(entries []entry) string {
	var b strings.Builder
	for _, r := range house {
		fmt.Fprintf(&b, "\n## %s\n\nFloor %d: %s.\n\n| package | what it does |\n| --- | --- |\n", r.folder, r.floor, r.holds)
		own := inFolder(r.folder, entries)
		for _, e := range own {
			if e.pkg == r.folder && !e.code && len(own) > 1 {
				continue
			}
			text := strings.NewReplacer("|", "\\|", "<", "&lt;", "*",
				"\\*").Replace(strings.TrimSpace(strings.TrimPrefix(e.sentence, path.Base(e.pkg))))
			fmt.Fprintf(&b, "| [%s](../../%s) | %s |\n", e.pkg, e.pkg, text)
		}
	}
	return b.String() + "\n"
}

// storeys is the picture of the floors.
func storeys() string {
	var b strings.Builder
	b.WriteString("\n```\n")
	for i, r := range house {
		number := "  "
		if i == 0 || house[i-1].floor != r.floor {
			number = fmt.Sprintf("%2d", r.floor)
		}
		fmt.Fprintf(&b, "%s  %-12s %s\n", number, r.folder, r.holds)
	}
	b.WriteString("```\n\n")
	return b.String()
}

// comment is the doc.go of a folder that has packages and no code.
func comment(r room, entries []entry) (text string, some bool) {
	var b strings.Builder
	b.WriteString(wrapped("// ", "// ", fmt.Sprintf("Package %s has %s.", r.folder, r.holds)))
	b.WriteString(
		"//\n// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):\n//\n")
	for _, e := range inFolder(r.folder, entries) {
		if e.pkg != r.folder {
			b.WriteString(wrapped("//   - ", "//     ",
				strings.TrimPrefix(e.pkg, r.folder+"/")+": "+strings.TrimSpace(strings.TrimPrefix(e.sentence, path.Base(e.pkg)))))
			some = true
		}
	}
	fmt.Fprintf(&b, "package %s\n", r.folder)
	formatted, err := format.Source([]byte(b.String()))
	if err != nil {
		panic(err)
	}
	return string(formatted), some && r.folder != "cmd" && r.folder != "internal"
}

// wrapped breaks text into lines of at most 120 bytes.
func wrapped(first, others, text string) string {
	var b strings.Builder
	line := first
	for i, w := range strings.Fields(text) {
		switch {
		case i == 0:
			line += w
		case len(line)+1+len(w) > 120:
			b.WriteString(line + "\n")
			line = others + w
		default:
			line += " " + w
		}
	}
	return b.String() + line + "\n"
}

// between returns a page's text with content between the marks.
func between(t *testing.T, name, content string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(b), mapBegins)
	_, tail, closed := strings.Cut(rest, mapEnds)
	if !found || !closed {
		t.Fatalf("%s has no map between the lines\n%s%s", name, mapBegins, mapEnds)
	}
	return head + mapBegins + content + mapEnds + tail
}

// written fails the test unless the file holds text; with -update it writes the file.
func written(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != text {
		t.Errorf("%s is not what the packages say (%v): go test ./internal/archtest -run TestMaps -update", name, err)
	}
}
