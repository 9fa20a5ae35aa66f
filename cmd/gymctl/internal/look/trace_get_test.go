package look_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/lab/catalog"
)

const (
	madeUpJobs  = "submit_time,duration,num_gpu\n0,60,1\n5,30,2\n"
	madeUpNodes = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,2,4,8,16\n"
)

// publish replaces the public catalogue with one of made-up files, and the publisher with a server that has them. It
// returns the server's address, the number of requests to it, and the cache folder.
func publish(t *testing.T, handle func(w http.ResponseWriter, r *http.Request) (handled bool)) (mirror string,
	asked *atomic.Int64, cache string) {
	t.Helper()
	t.Chdir(t.TempDir())
	cache = filepath.Join(t.TempDir(), "cache")
	t.Setenv(catalog.CacheVar, cache)
	files := map[string]string{"jobs.csv": madeUpJobs, "nodes.csv": madeUpNodes, "a.csv": "a\n", "b.csv": "b\n"}
	file := func(path, to string) catalog.File {
		h := sha256.Sum256([]byte(files[path]))
		return catalog.File{Path: path, To: to, Size: int64(len(files[path])), SHA256: hex.EncodeToString(h[:])}
	}
	c := &catalog.Catalog{
		Sources: []catalog.Source{
			{Name: "free", Repository: "someone/free", Commit: strings.Repeat("ab", 20), Licence: "MIT", Cite: "Someone, 2020"},
			{Name: "bound", Repository: "someone/bound", Commit: strings.Repeat("cd", 20),
				Licence: "for non-commercial use only", NonCommercial: true, Cite: "Someone, 2021"},
		},
		Entries: []catalog.Entry{
			{Name: "jobs", What: "two jobs", Kind: catalog.KindTrace, Format: "csv", Source: "free",
				Files: []catalog.File{file("jobs.csv", "jobs.csv")}},
			{Name: "nodes", What: "two nodes", Kind: catalog.KindInventory, Format: "inventory", Source: "bound",
				Files: []catalog.File{file("nodes.csv", "nodes.csv")}},
			{Name: "table", What: "two tables", Kind: catalog.KindProfiles, Format: "profile", Source: "free", Folder: true,
				Files: []catalog.File{file("a.csv", "A/a.csv"), file("b.csv", "b.csv")}},
			{Name: "steps", What: "jobs in steps", Kind: catalog.KindTrace, Format: "csv", Source: "free", Profiles: "table",
				Reference: "v100",
				Files:     []catalog.File{file("jobs.csv", "steps.csv")}},
		},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	old := look.PublicTraces
	look.PublicTraces = func() *catalog.Catalog { return c }
	t.Cleanup(func() { look.PublicTraces = old })
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if handle == nil || !handle(w, r) {
			_, _ = w.Write([]byte(files[filepath.Base(r.URL.Path)]))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked, cache
}

func TestGetFetchesPrintsAndIsContentTheSecondTime(t *testing.T) {
	mirror, asked, cache := publish(t, nil)
	for _, how := range []string{"fetched", "was here already"} {
		want := "jobs: two jobs\n" +
			"  path     " + filepath.Join(cache, "jobs.csv") + " (" + how + ", 43 bytes, sha256 right)\n" +
			"  licence  MIT\n  cite     Someone, 2020\n" +
			"  try      gymctl trace stats " + filepath.Join(cache, "jobs.csv") + "\n\n" +
			"nodes: two nodes\n" +
			"  path     " + filepath.Join(cache, "nodes.csv") + " (" + how + ", 81 bytes, sha256 right)\n" +
			"  licence  for non-commercial use only\n  cite     Someone, 2021\n" +
			"  try      gymctl config show --cluster " + filepath.Join(cache, "nodes.csv") + "\n"
		if got := clitest.Must(t, "trace", "get", "jobs", "nodes", "--mirror", mirror); got != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	}
	if got := clitest.Read(t, filepath.Join(cache, "jobs.csv")); got != madeUpJobs {
		t.Errorf("the file holds %q", got)
	}
	// The suggested next command works.
	if out := clitest.Must(t, "trace", "stats", filepath.Join(cache, "jobs.csv")); !strings.Contains(out, ": 2 jobs") {
		t.Errorf("stats print %q", out)
	}
	if out := clitest.Must(t, "config", "show", "--cluster", filepath.Join(cache, "nodes.csv")); !strings.Contains(out,
		"8 GPUs") {
		t.Errorf("the nodes are %q", out)
	}
}

func TestGetSaysWhatATraceWithoutRunTimesNeeds(t *testing.T) {
	mirror, _, cache := publish(t, nil)
	try := "  try      gymctl trace stats " + filepath.Join(cache,
		"steps.csv") + " --profiles " + filepath.Join(cache, "table") + " --reference v100\n"
	needs := "  needs    table, from which its run times follow: gymctl trace get table\n"
	if got := clitest.Must(t, "trace", "get", "steps", "--mirror", mirror); !strings.HasSuffix(got, needs+try) {
		t.Errorf("printed\n%s", got)
	}
	if got := clitest.Must(t, "trace", "get", "table", "--mirror", mirror); !strings.Contains(got,
		filepath.Join(cache, "table")+" (fetched, 4 bytes in 2 files, each sha256 right)\n") {
		t.Errorf("printed\n%s", got)
	}
	if got := clitest.Must(t, "trace", "get", "steps", "--mirror", mirror); strings.Contains(got, needs) ||
		!strings.HasSuffix(got, try) {
		t.Errorf("printed\n%s", got)
	}
}

func TestGetAsJSON(t *testing.T) {
	mirror, _, cache := publish(t, nil)
	var d struct {
		Traces []look.PublicTrace `json:"traces"`
	}
	clitest.Strict(t, clitest.Must(t, "trace", "get", "--all", "--json", "--mirror", mirror, "-o", "out dir"), &d)
	if len(d.Traces) != 4 {
		t.Fatalf("%d traces", len(d.Traces))
	}
	p := d.Traces[0]
	if p.Name != "jobs" || !p.Here || !p.Fetched || p.Path != filepath.Join("out dir", "jobs.csv") ||
		p.Next != "gymctl trace stats '"+p.Path+"'" ||
		p.Files[0].URL != "https://raw.githubusercontent.com/someone/free/"+strings.Repeat("ab",
			20)+"/jobs.csv" || len(p.Files[0].SHA256) != 64 || p.Bytes != 43 {
		t.Errorf("got %+v", p)
	}
	if clitest.Read(t, p.Path) != madeUpJobs || clitest.Read(t, filepath.Join("out dir", "table", "A", "a.csv")) !=
		"a\n" || clitest.Read(t, filepath.Join(cache, "table", "b.csv")) != "b\n" {
		t.Error("the copies differ")
	}
	var l struct {
		Cache  string             `json:"cache"`
		Traces []look.PublicTrace `json:"traces"`
	}
	clitest.Strict(t, clitest.Must(t, "trace", "get", "--list", "--json"), &l)
	if l.Cache != cache || len(l.Traces) != 4 || !l.Traces[1].Here || l.Traces[1].Fetched || !l.Traces[1].NonCommercial {
		t.Errorf("got %+v", l)
	}
}

func TestGetListsWhatThereIs(t *testing.T) {
	mirror, _, cache := publish(t, nil)
	clitest.Must(t, "trace", "get", "nodes", "--mirror", mirror, "--cache", "mine")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nodes *  inventory  inventory        81 bytes  two nodes\n"},
		{[]string{"--cache", "mine"}, "nodes *  inventory  inventory  yes   81 bytes  two nodes\n"},
	} {
		out := clitest.Must(t, append([]string{"trace", "get", "--list"}, c.args...)...)
		if !strings.Contains(out, c.want) || !strings.HasSuffix(out, "\n*: for non-commercial use only\n") {
			t.Errorf("%v: %q is missing in\n%s", c.args, c.want, out)
		}
	}
	if out := clitest.Must(t, "trace", "get", "--list"); !strings.Contains(out, "here: in the cache, "+cache+"\n") {
		t.Errorf("printed\n%s", out)
	}
}

func TestThePublicListIsLong(t *testing.T) {
	t.Setenv(catalog.CacheVar, t.TempDir())
	out := clitest.Must(t, "trace", "get", "--list")
	for _, name := range []string{"philly-jobs ", "openb-pods-default ", "openb-nodes ", "gavel-throughputs ",
		"lublin-256 ", "kth-sp2 ", "nasa-ipsc ", "ricc-2010 ", "helios-venus-throughput *"} {
		if !strings.Contains("\n"+out, "\n"+name) {
			t.Errorf("%s is missing in\n%s", name, out)
		}
	}
	if out := clitest.Must(t, "__complete", "trace", "get", "philly-j"); !strings.HasPrefix(out, "philly-jobs\n") {
		t.Errorf("completion offers %q", out)
	}
}

func TestGetMistakes(t *testing.T) {
	mirror, asked, _ := publish(t, nil)
	clitest.Write(t, "file", "")
	for _, c := range []struct{ args, want string }{
		{"", "trace get: want one or more NAMEs, --list or --all; see gymctl trace get --help"},
		{"job", `public trace "job" is unknown; did you mean jobs?`},
		{"jobs ../../etc/passwd", `public trace "../../etc/passwd" is unknown; gymctl trace get --list shows all`},
		{"--list jobs", `trace get: got "jobs", want no NAME beside --list and --all; see gymctl trace get --help`},
		{"--list --all", "--all does not go with --list"},
		{"jobs --mirror http://mirror.example",
			`--mirror: got "http://mirror.example", want https (http is for this machine only)`},
		{"jobs --mirror=", `--mirror: got "", want the beginning of an address, as in https://mirror.example/traces`},
		{"jobs --cache=", `--cache: got "", want DIR`},
		{"jobs --output=", `--output: got "", want DIR`},
		{"jobs --cache file", "folder file cannot be used: not a directory"},
		{"--list --cache file", "folder file cannot be used: not a directory"},
		{"jobs --cache file/below", "folder file/below cannot be used: not a directory"},
	} {
		args := append([]string{"trace", "get"}, strings.Fields(c.args)...)
		if !strings.Contains(c.args, "--mirror") {
			args = append(args, "--mirror", mirror)
		}
		code, out, said := clitest.Run(t, args...)
		if code != cli.ExitMistake || out != "" || said != "gymctl: "+c.want+"\n" {
			t.Errorf("gymctl trace get %s: exit code %d, printed %q, said %q; want 2, nothing, %q", c.args, code, out, said,
				c.want)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests", asked.Load())
	}
	clitest.Write(t, "jobs.csv", "mine\n")
	if code, out, said := clitest.Run(t, "trace", "get", "jobs", "-o", ".", "--mirror", mirror); code != cli.ExitMistake ||
		out != "" ||
		said != "gymctl: folder . cannot be used: jobs.csv is there already and is another file\n" || clitest.Read(t,
		"jobs.csv") != "mine\n" {
		t.Errorf("over another file: exit code %d, printed %q, said %q", code, out, said)
	}
}

func TestOneThatFailsDoesNotStopTheOthers(t *testing.T) {
	mirror, _, cache := publish(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/jobs.csv") {
			_, _ = w.Write([]byte(strings.ToUpper(madeUpJobs)))
			return true
		}
		if strings.HasSuffix(r.URL.Path, "/a.csv") {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	code, out, said := clitest.Run(t, "trace", "get", "jobs", "table", "nodes", "--mirror", mirror)
	lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	if code != cli.ExitFailed || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "gymctl: public trace jobs: jobs.csv from "+mirror+"/someone/free/") ||
		!strings.HasSuffix(lines[0], ": this is not the published file, and it was removed") ||
		!strings.HasSuffix(lines[1],
			"/a.csv: the publisher does not have it (404 Not Found)") || !strings.HasPrefix(out, "nodes: two nodes\n") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	if list, err := os.ReadDir(cache); err != nil || len(list) != 2 || list[0].Name() != "nodes.csv" {
		t.Errorf("the cache holds %v (%v)", list, err)
	}
	if code, out, _ := clitest.Run(t, "trace", "get", "jobs", "nodes", "--json", "--mirror", mirror); code !=
		cli.ExitFailed || out != "" {
		t.Errorf("--json: exit code %d, printed %q; want no half document", code, out)
	}
}

func TestAnInterruptedGetSaysHowToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mirror, _, _ := publish(t, func(w http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	var out, said bytes.Buffer
	if code := clitest.Execute(ctx, []string{"trace", "get", "jobs", "--mirror", mirror}, &out, &said); code !=
		cli.ExitInterrupted || out.Len() != 0 ||
		said.String() != "gymctl: interrupted: nothing of jobs has arrived yet; the same command begins again\n" {
		t.Errorf("exit code %d, printed %q, said %q", code, out.String(), said.String())
	}
}

func TestTheBarIsDrawnOnATerminalOnly(t *testing.T) {
	e := &catalog.Entry{Name: "philly-jobs"}
	for _, tty := range []bool{true, false} {
		var w bytes.Buffer
		b := cli.NewBar(&cli.App{Stderr: &w, Now: time.Now}, 0)
		if tty {
			b.Status = &cli.Status{W: &w, Now: time.Now}
		}
		for _, done := range []int64{100, 2000} {
			b.Show(e.Name, done, 2000, func(done, all int64) string { return "" }, func(float64) string { return "" })
		}
		b.Clear()
		if strings.Contains(w.String(), "philly-jobs") != tty {
			t.Errorf("on a terminal %v: %q", tty, w.String())
		}
	}
}

func TestShellWords(t *testing.T) {
	for s, want := range map[string]string{"/a/b-c.csv": "/a/b-c.csv", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'"} {
		if got := cli.ShellWords(s); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}
