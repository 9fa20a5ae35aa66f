package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every page of docs is in the index for readers and in that of the site, except pages that have an index of their own.
func TestEveryPageIsInTheIndexes(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	site, err := os.ReadFile(filepath.Join(root, "tools", "site", "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	pages := ours(t, "docs/*.md")
	for _, page := range pages {
		name := strings.TrimPrefix(page, "docs/")
		if regexp.MustCompile(`^(README\.md|reference/(environments|traces)/.*|design/adr/.*|guides/extend/.*)$`).MatchString(
			name) {
			continue
		}
		if !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
		if !strings.Contains(string(site), page) {
			t.Errorf("tools/site/mkdocs.yml does not list %s", page)
		}
	}
	if len(pages) < 40 {
		t.Errorf("saw %d pages only", len(pages))
	}
	for _, page := range regexp.MustCompile(`docs/[\w/-]+\.md`).FindAllString(string(site), -1) {
		if _, err := os.Stat(filepath.Join(root, page)); err != nil {
			t.Errorf("tools/site/mkdocs.yml lists %s, which is not there", page)
		}
	}
}
