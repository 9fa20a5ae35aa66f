package docstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// A link or image of Markdown, and one of HTML in a page.
	link      = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|href)="([^"]+)"|(?m:^\[[^\]]+\]:\s+(\S+))`)
	inline    = regexp.MustCompile("`[^`\n]*`")
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	named     = regexp.MustCompile(`\bdocs/(?:[\w.-]+/)*[\w.-]+\.md\b`)
)

// slug is the name of a heading in links, as GitHub makes it.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// prose returns a page without its code, and the slugs of its headings. Of equal headings, the second has -1 behind its
// slug.
func prose(path string) (text string, headings map[string]bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	headings = map[string]bool{}
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			s := slug(strings.TrimSpace(h))
			for n := 1; headings[s]; n++ {
				s = fmt.Sprintf("%s-%d", slug(strings.TrimSpace(h)), n)
			}
			headings[s] = true
		}
		b.WriteString(inline.ReplaceAllString(line, "code"))
	}
	return b.String(), headings, nil
}

// broken returns what is wrong with the links of a page, and how many links to files and headings it has.
func broken(page string) (faults []string, links int, err error) {
	text, own, err := prose(page)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		target := m[1] + m[2] + m[3]
		if strings.Contains(target, ":") {
			continue // another site
		}
		links++
		file, heading, _ := strings.Cut(target, "#")
		headings := own
		if file != "" {
			to := filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			info, err := os.Stat(to)
			if err != nil || !listed(to) {
				faults = append(faults, target+", which is not there")
				continue
			}
			headings = map[string]bool{}
			if heading != "" && !info.IsDir() {
				if _, headings, err = prose(to); err != nil {
					return nil, 0, err
				}
			}
		}
		if heading != "" && !headings[heading] {
			faults = append(faults, target+", which has no such heading")
		}
	}
	return faults, links, nil
}

// listed reports whether the folder of a file lists it with just these capitals, because not all systems look at them.
func listed(path string) bool {
	names, err := os.ReadDir(filepath.Dir(path))
	return err == nil && (strings.HasPrefix(filepath.Base(path), "..") || filepath.Base(path) == "." ||
		slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == filepath.Base(path) }))
}

// ours returns the files of the module whose names match one of the patterns of git.
func ours(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.Command("git",
		append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)...)
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files, which lists the files of the module: %v", err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil && !strings.Contains(name, "testdata/") {
			names = append(names, name)
		}
	}
	return names
}

// TestLinksLeadSomewhere follows every relative link and image of every page in the repository to a file and, if it
// names one, to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, links := ours(t, "*.md"), 0
	for _, page := range pages {
		faults, n, err := broken(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			t.Errorf("%s links to %s", page, f)
		}
		links += n
	}
	if len(pages) < 80 || links < 500 {
		t.Errorf("saw %d pages with %d links only", len(pages), links)
	}
}

// Sources and pages name pages by their path from the root. The change log keeps the names of its time.
func TestNamedPagesExist(t *testing.T) {
	for _, name := range ours(t, "*.go", "*.py", "*.md", "*.yaml", "Makefile") {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/guides/extend/") ||
			strings.HasPrefix(name, "internal/docstest/") {
			continue // recipes write pages of their own
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range named.FindAllString(string(data), -1) {
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s names %s, which is not there", name, page)
			}
		}
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "a.md")
	for name, text := range map[string]string{
		"a.md": "# One\n\n# One\n\n[x](b.md) [x](b.md#two-words) [x](#one-1) ![x](p.svg \"title\") <img src=\"p.svg\"> [x](https://a.b/c#d)\n" +
			"`[x](no.md)`\n```\n[x](no.md)\n```\n[x](c.md) [x](b.md#three) [x](#two) [x](B.md) <img src=\"q.svg\">\n\n[y]: d.md\n",
		"b.md": "## Two, *words*\n", "p.svg": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	faults, links, err := broken(page)
	expected := []string{"c.md, which is not there", "b.md#three, which has no such heading",
		"#two, which has no such heading", "B.md, which is not there", "q.svg, which is not there",
		"d.md, which is not there"}
	if err != nil || links != 11 || !slices.Equal(faults, expected) {
		t.Errorf("got %q of %d links, %v; expected %q", faults, links, err, expected)
	}
}
