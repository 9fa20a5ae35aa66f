// Package clitest runs gymctl in tests, in the process of the test or in one of its own, and prepares what several
// tests need.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/verbs"
	"clustergym/internal/raced"
)

// Update is whether golden files are to be rewritten.
var Update = flag.Bool("update", false, "rewrite testdata")

// AsProgram makes the test binary act as gymctl, for tests that need a process.
const AsProgram = "GYMCTL_TEST_AS_PROGRAM"

// Patience is how long any wait may take in these tests.
const Patience = 30 * time.Second

// Jobs is a small trace.
const Jobs = "job_id,submit_time,duration,num_gpu\na,0,100,2\nb,5,10,1\nc,5,10,1\n"

// Main is TestMain of packages whose tests run gymctl as a process.
func Main(m *testing.M) {
	if os.Getenv(AsProgram) != "" {
		lowerFiles()
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, verbs.All()))
	}
	os.Exit(m.Run())
}

// OneGoroutine skips a test under the race detector, as long as what it runs is one goroutine, or several that tests of
// lower packages run under it.
func OneGoroutine(t *testing.T) {
	t.Helper()
	if raced.On {
		t.Skip("takes long under the race detector, and starts no goroutine that other tests do not; make unit runs it")
	}
}

// Execute is the program with all verbs.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Execute(ctx, args, stdout, stderr, verbs.All())
}

// Run runs the program in this process.
func Run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Execute(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

// Must is gymctl for calls that must succeed.
func Must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := Run(t, args...)
	if code != cli.ExitDone {
		t.Fatalf("gymctl %s: exit code %d: %s", strings.Join(args, " "), code, err)
	}
	return out
}

// Write creates a file in the current folder.
func Write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read returns the text of a file.
func Read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Commands returns all verbs of the program, the program itself first.
func Commands() []*cobra.Command {
	var all []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, s := range c.Commands() {
			if s.Name() != "help" {
				walk(s)
			}
		}
	}
	walk(cli.NewRoot(&cli.App{Stdout: &cli.Output{W: io.Discard}, Stderr: io.Discard, Now: time.Now}, verbs.All()))
	return all
}

// Program starts this test binary as gymctl.
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...) //nolint:gosec // this binary
	c.Env = append(os.Environ(), AsProgram+"=1")
	return c
}

// Eventually waits for something that happens in other processes.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Since(begun) > 6*Patience {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// Strict reads exactly one JSON document, which must have no keys but those of v.
func Strict(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one document: %s", text)
	}
}

// Keys lists the keys of a JSON document in order, with their paths; for a list, those of its first element.
func Keys(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var out []string
	var value func(path string)
	value = func(path string) {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch tok {
		case json.Delim('{'):
			for d.More() {
				k, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				name, _ := k.(string)
				out = append(out, path+name)
				value(path + name + ".")
			}
			_, err = d.Token()
		case json.Delim('['):
			before := -1
			for d.More() {
				n := len(out)
				value(path)
				if before >= 0 {
					out = out[:n]
				}
				before = n
			}
			_, err = d.Token()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	value("")
	return out
}
