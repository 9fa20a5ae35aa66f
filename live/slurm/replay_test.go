package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordedAt is when the outputs of testdata were recorded.
var recordedAt = time.Unix(1795682553, 0).UTC()

// replay answers commands with recorded outputs, as a Runner.
type replay struct {
	out   map[string]string // by command
	fails map[string]error
	each  func(line string) []string // what scontrol says on standard error to a line of its commands
	quits int                        // lines after which scontrol dies; 0 = it does not
	ran   []string
	wrote []string // lines given to scontrol
}

// recorded returns the outputs of a release.
func recorded(t testing.TB, release string) *replay {
	t.Helper()
	r := &replay{out: map[string]string{"id -un": "slurm\n"}, fails: map[string]error{}}
	for file, command := range map[string]string{
		"config.txt": "scontrol show config", "squeue.json": "squeue --json", "sinfo.json": "sinfo -a --json",
		"nodes.json": "scontrol -a show nodes --json",
		"jobs.txt":   "scontrol -d show job", "nodes.txt": "scontrol -a show node", "sprio.txt": "sprio -h -o %i|%S",
	} {
		text, err := os.ReadFile(filepath.Join("testdata", release, file)) //nolint:gosec // of these tests
		if err == nil {
			r.out[command] = string(text)
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return r
}

// Run implements Runner.
func (r *replay) Run(_ context.Context, c Call) error {
	name := strings.Join(c.Args, " ")
	r.ran = append(r.ran, name)
	if err := r.fails[name]; err != nil {
		return err
	}
	if c.Args[0] == "scontrol" &&
		(len(c.Args) == 1 || c.Args[1] == "update" || c.Args[1] == "release" || c.Args[1] == "requeue") {
		return r.control(c)
	}
	out, there := r.out[name]
	if !there {
		return fmt.Errorf("%w: %s", exec.ErrNotFound, name)
	}
	if c.Out == nil {
		return nil
	}
	return c.Out(strings.NewReader(out))
}

// control is scontrol with commands.
func (r *replay) control(c Call) error {
	if len(c.Args) > 1 {
		line := strings.Join(c.Args[1:], "¦")
		r.wrote = append(r.wrote, line)
		if r.each != nil {
			if said := r.each(line); len(said) > 0 {
				return &ExitError{"scontrol", 1, strings.Join(said, "; ")}
			}
		}
		return nil
	}
	text, err := io.ReadAll(c.In)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if r.quits > 0 && i == r.quits {
			return &ExitError{"scontrol", 1, ""}
		}
		word, _, _ := strings.Cut(line, " ")
		var said []string
		switch word {
		case "quit":
			return nil
		case "update", "release", "requeue":
			r.wrote = append(r.wrote, line)
			if r.each != nil {
				said = r.each(line)
			}
		default:
			said = []string{"invalid keyword: " + line}
		}
		for _, s := range said {
			if !c.Err(s) {
				return nil
			}
		}
	}
	return nil
}

// cluster returns the cluster of a replay.
func (r *replay) cluster(o Options) *Cluster {
	o.Now = func() time.Time { return recordedAt }
	return New(r, o)
}

// change replaces something in an output.
func (r *replay) change(t *testing.T, command, from, to string) {
	t.Helper()
	if !strings.Contains(r.out[command], from) {
		t.Fatalf("%s prints no %q", command, from)
	}
	r.out[command] = strings.ReplaceAll(r.out[command], from, to)
}

// changeBetween replaces something in the part of an output that begins with after and ends with until.
func (r *replay) changeBetween(t *testing.T, command, after, until, from, to string) {
	t.Helper()
	before, rest, found := strings.Cut(r.out[command], after)
	part, behind, _ := strings.Cut(rest, until)
	if !found || strings.Count(part, from) != 1 {
		t.Fatalf("%s prints no %q behind %q, or not once", command, from, after)
	}
	r.out[command] = before + after + strings.Replace(part, from, to, 1) + until + behind
}
