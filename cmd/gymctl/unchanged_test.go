package main

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// Tests of this file and its siblings hold what users have on their disks and in their scripts: results, documents,
// files, names and exit codes. They go through the command line, so that they stay as they are when packages move. Each
// has a golden file in testdata/unchanged with a line for each artifact: its name and its digest, or what it says where
// that is short.
//
// A line that differs is a change that users see. Where it is meant, -update rewrites the files.

// clocked are the values of documents that a clock of this machine has measured.
var clocked = regexp.MustCompile(`"(wall_s|\w*_per_s|timing)":(\{[^{}]*\}|-?[0-9.e+-]+)`)

// spoken are the sentences of documents for people, which may say the same better.
var spoken = regexp.MustCompile(`"(doc|what|title|takes|tests|known_by)":"(\\.|[^"\\])*"`)

// timeless returns a document with its keys, and without what a clock has measured and without sentences for people.
func timeless(document string) string {
	return spoken.ReplaceAllString(clocked.ReplaceAllString(document, `"$1":0`), `"$1":""`)
}

// done returns the line of a call: the digest of the document that it prints, or its exit code where it is refused.
func done(t *testing.T, name string, args ...string) string {
	t.Helper()
	code, out, said := clitest.Run(t, args...)
	switch code {
	case cli.ExitDone:
		return name + " " + clitest.Digest(timeless(out))
	case cli.ExitMistake:
		return name + " refused"
	}
	t.Fatalf("gymctl %s: exit code %d: %s", strings.Join(args, " "), code, said)
	return ""
}

// folder returns a line for each file under dir, but for event files, whose bytes are times and rates.
func folder(t *testing.T, name, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		line := name + " " + filepath.ToSlash(rel)
		if stem, _, events := strings.Cut(line, "events.out.tfevents."); events {
			line = stem + "events.out.tfevents"
		} else {
			line += " " + clitest.Digest(timeless(clitest.Read(t, path)))
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// values returns what the shell is offered for the last of args.
func values(t *testing.T, args ...string) []string {
	t.Helper()
	words, _ := offered(t, args...)
	if len(words) == 0 {
		t.Fatalf("nothing is offered for %q", args)
	}
	return words
}

// usersTrace writes jobs of users, with time limits, to jobs.csv.
func usersTrace(t *testing.T) {
	t.Helper()
	clitest.Must(t, "trace", "synth", "--profile", "philly-users", "--jobs", "120", "--seed", "3", "--set", "max_gpus=8",
		"--set", "rate=6", "-o", "jobs.csv")
}

// Every policy gives the same results on every rung of what is known of run times.
func TestPoliciesKeepTheirResults(t *testing.T) {
	clitest.OneGoroutine(t)
	var lines []string
	clitest.Elsewhere(t, func() {
		usersTrace(t)
		lines = append(lines, "jobs.csv "+clitest.Digest(clitest.Read(t, "jobs.csv")))
		base := []string{"sim", "jobs.csv", "--cluster", "2x4", "--limit", "24h", "--seed", "5", "--json"}
		// A combination of order, admission and backfilling is played on two rungs, each order on all.
		for _, rung := range []string{"none", "trace", "history", "gbdt", "exact", "noisy:0.5"} {
			var policies []string
			for _, p := range values(t, "sim", "--policy", "") {
				switch {
				case strings.HasSuffix(p, ":") || p == "exact": // the first wants a policy behind it, the second fewer jobs
				case !strings.Contains(p, "+") || rung == "exact" || rung == "history":
					policies = append(policies, p)
				}
			}
			if rung == "none" {
				for _, p := range policies {
					lines = append(lines, done(t, p+" "+rung, append(base, "--policy", p, "--estimates", rung)...))
				}
				continue
			}
			var d struct{ Runs []json.RawMessage }
			if err := json.Unmarshal(
				[]byte(clitest.Must(t, append(base, "--policy", strings.Join(policies, ","), "--estimates", rung)...)), &d); err !=
				nil || len(d.Runs) != len(policies) {
				t.Fatalf("%d documents of %d policies (%v)", len(d.Runs), len(policies), err)
			}
			for i, p := range policies {
				lines = append(lines, p+" "+rung+" "+clitest.Digest(timeless(string(d.Runs[i]))))
			}
		}
		for _, c := range []struct{ name, args string }{
			{"exact", "--estimates exact --policy exact --jobs 8"},
			{"rollout", "--policy rollout:sjf+skip --budget 8 --estimates history --jobs 40"},
			{"rollout-time-limits", "--policy rollout:fifo+easy --budget 8 --estimates trace --jobs 40"},
			{"failures", "--estimates exact --policy las,srtf,sjf+skip --mtbf 24h --mttr 1h --restart 40s --checkpoint 10m"},
			{"horizon", "--estimates exact --policy fifo+skip --horizon 10h --warmup 10 --tail 10"},
			{"contention", "--estimates exact --policy sjf+skip --mix topdrl-cnn --comm contention --placement first-fit"},
			{"interference", "--estimates exact --policy sjf+skip --mix topdrl-cnn --interference seeded:3 --interference-scope node"},
			{"stream", "--policy sjf+skip,fifo+easy --stream on --estimates history"},
		} {
			lines = append(lines, done(t, c.name, append(base, strings.Fields(c.args)...)...))
		}
		for _, comm := range []string{"ring", "contention"} {
			for _, p := range values(t, "sim", "--placement", "") {
				lines = append(lines,
					done(t, "placement "+p+" "+comm,
						append(base, "--estimates", "exact", "--policy", "las", "--mix", "topdrl-cnn", "--placement", p, "--comm", comm)...))
			}
		}
		for _, peer := range []string{"dally-waiting-only", "dally-published"} {
			for _, p := range values(t, "sim", "--peer", peer, "--policy", "") {
				lines = append(lines,
					done(t, peer+" "+p, "sim", "--set", "trace.synth.profile=dally", "--jobs", "60", "--cluster", "dally:4x4",
						"--peer", peer, "--policy", p, "--json"))
			}
		}
		for _, peer := range []string{"lwf-pure", "lwf-orig", "lwf-pureall"} {
			lines = append(lines,
				done(t, peer, "sim", "--jobs", "16", "--mix", "lwf", "--cluster", "lwf-16x4", "--peer", peer, "--policy",
					"ssf-lwf1-srsf-1-true,ssf-lwf1-srsf-0-false", "--json"))
		}
		for _, p := range []string{"fifo+easy", "las", "srtf+skip"} {
			clitest.Must(t, "sim", "jobs.csv", "--cluster", "2x4", "--estimates", "exact", "--policy", p, "--events",
				"events.jsonl", "--jobs-out", "out.csv", "--json")
			lines = append(lines, "events "+p+" "+clitest.Digest(clitest.Read(t, "events.jsonl")),
				"jobs-out "+p+" "+clitest.Digest(clitest.Read(t, "out.csv")))
		}
	})
	clitest.Unchanged(t, "sim.txt", lines)
}
