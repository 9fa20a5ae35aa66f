package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/internal/raced"
)

// The program of docs/guides/go-client.md builds, and plays.
func TestTheProgramOfThePagePlays(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("building the program takes seconds: this test runs without -short and -race")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "go-client.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(page), "\n```go\n")
	program, _, closed := strings.Cut(program, "\n```\n")
	// The server of these tests has no workloads.
	short := strings.Replace(program, `"JobSelect-v1", map[string]any{"window": 32, "warm": 0}`, `"InvalidAction-v1", nil`,
		1)
	if !ok || !closed || short == program {
		t.Fatalf("the page's program is %q", program)
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "ws://"+serve(t, nil)).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "return ") {
		t.Errorf("it printed %q: %v", out, err)
	}
}
