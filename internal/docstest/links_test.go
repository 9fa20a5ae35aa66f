package docstest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// slug is what a heading is called in links, as GitHub makes it.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// prose is a page without its fenced blocks, and the slugs of its headings.
func prose(t *testing.T, path string) (text string, headings map[string]bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
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
			headings[slug(strings.TrimSpace(h))] = true
		}
		b.WriteString(line)
	}
	return b.String(), headings
}

// TestLinksLeadSomewhere follows every link of the pages to a file and, where it names one, to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md")}
	for _, dir := range []string{"docs", "experiments"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".md") && !strings.Contains(path, "testdata") {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	links := 0
	for _, page := range pages {
		text, own := prose(t, page)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue // another site
			}
			links++
			file, heading, _ := strings.Cut(m[1], "#")
			headings := own
			if file != "" {
				to := filepath.Join(filepath.Dir(page), file)
				info, err := os.Stat(to)
				if err != nil {
					t.Errorf("%s links to %s, which is not there", page, m[1])
					continue
				}
				if heading != "" && !info.IsDir() {
					_, headings = prose(t, to)
				}
			}
			if heading != "" && !headings[heading] {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if len(pages) < 20 || links < 50 {
		t.Errorf("saw %d pages with %d links only", len(pages), links)
	}
}
