//go:build unix

package envs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env/dagplace"
	"clustergym/env/jobselect"
	"clustergym/env/workerplace"
	"clustergym/internal/raced"
)

// secret stands in files that clients must not see anything of.
const secret = "hunter2-s3cret"

// places are all arguments with which a client can name a file or a folder.
func places(name string) []struct {
	what   string
	id     string
	kwargs wire.Map
} {
	with := func(more ...wire.Pair) wire.Map { return more }
	file, profiles := wire.Pair{Key: "trace.file", Value: name}, wire.Pair{Key: "trace.profiles", Value: name}
	window := wire.Pair{Key: "window", Value: int64(16)}
	return []struct {
		what   string
		id     string
		kwargs wire.Map
	}{
		{"trace", jobselect.V1, with(file, window)},
		{"profiles", jobselect.V1, with(profiles, window, wire.Pair{Key: "trace.synth.jobs", Value: int64(400)})},
		{"model", jobselect.V1, with(wire.Pair{Key: "estimates", Value: "gbdt:" + name}, window,
			wire.Pair{Key: "trace.synth.jobs", Value: int64(400)})},
		{"cluster", jobselect.V1, with(wire.Pair{Key: "cluster", Value: name}, window)},
		{"graphs", dagplace.ID, with(file)},
		{"workers", workerplace.ID, with(file)},
		{"speeds", workerplace.ID, with(wire.Pair{Key: "trace.file", Value: "fine.csv"}, profiles)},
	}
}

// hostile fills a trace root beside a secret file and returns the names that must all be refused.
func hostile(t *testing.T) (root string, names []string) {
	t.Helper()
	dir := t.TempDir()
	root = filepath.Join(dir, "root")
	put := func(path, text string) {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var fine strings.Builder
	fine.WriteString("submit_time,duration,num_gpu,model,iterations\n")
	for i := range 400 {
		fmt.Fprintf(&fine, "%d,%d,%d,resnet50,100\n", 60*i, 100+i, 1+i%4)
	}
	put("fine.csv", fine.String())
	put("../secret.csv", secret+"\n")
	put("../out/secret.json", secret+"\n")
	add := func(all ...string) { names = append(names, all...) }

	for link, to := range map[string]string{
		"out.csv": "../secret.csv", "absolute.csv": filepath.Join(dir,
			"secret.csv"), "passwd.csv": "/etc/passwd", "zero.csv": "/dev/zero",
		"random.json": "/dev/urandom", "up": "..", "loop.csv": "loop.csv", "dangling.csv": "nothing.csv",
	} {
		must(os.Symlink(to, filepath.Join(root, link)))
		add(link)
	}
	add("up/secret.csv", "../secret.csv", "folder/../../secret.csv", filepath.Join(dir, "secret.csv"), "/etc/passwd",
		"/dev/zero", "nowhere.csv", "fine.csv/x", "get:../../etc/passwd", "get:/etc/passwd",
		"get:philly-jobs", "a\x00b", strings.Repeat("x/", 3000))
	for _, fifo := range []string{"fifo.csv", "fifo.json", "fifo"} {
		must(syscall.Mkfifo(filepath.Join(root, fifo), 0o600))
		add(fifo)
	}

	// Folders: empty, and with one bad file among good ones.
	must(os.Mkdir(filepath.Join(root, "empty"), 0o750))
	add("empty", ".")
	good := "model_name,tensor_size_mb\nx,1\n"
	for _, ext := range []string{".csv", ".json"} {
		for kind, to := range map[string]string{"link": "../../secret.csv", "device": "/dev/zero", "fifo": "",
			"folder": "../../out", "text": secret} {
			name := kind + ext
			put(name+"d/a.csv", good)
			at := filepath.Join(root, name+"d", "b"+ext)
			switch kind {
			case "fifo":
				must(syscall.Mkfifo(at, 0o600))
			case "text":
				must(os.WriteFile(at, []byte(secret+"\n"), 0o600))
			default:
				must(os.Symlink(to, at))
			}
			add(name + "d")
		}
	}

	// Files with a secret wherever a reader may quote it.
	header := "submit_time,duration,num_gpu"
	texts := map[string]string{
		"first.csv": secret + ",x\n1,2\n", "first.json": secret, "first.swf": "; MaxProcs: " + secret + "\n",
		"twice.csv": header + "," + secret + "," + secret + "\n",
		"row.csv":   header + "\n" + secret + ",1,1\n", "fields.csv": header + "\n1,1,1," + secret + "\n",
		"quote.csv": header + "\n1,1,\"" + secret + "\"x\n",
		"id.csv":    "job_id," + header + "\n" + secret + ",1,1,1\n" + secret + ",1,1,1\n",
		"order.csv": header + "\n777123,1,1\n5,1,1\n", "open.csv": header + "\n1,1,\"" + secret + "\n",
		"philly.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n" + secret + ",1,1,1,1\n",
		"swf.swf":    strings.Repeat("1 ", 17) + "1\n" + secret + strings.Repeat(" 1", 17) + "\n",
		"openb.csv":  "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na," + secret + ",1,1,1\n",
		"alibaba.csv": "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n" + secret +
			"," + secret + ",j,1,Terminated,1,2,1,1\n",
		"tpch.json": `{"edges": "` + secret + `", "fresh_durations": {}}`,
		"dag.json":  `{"tasks": [{"id": "` + secret + `", "work": "` + secret + `"}], "edges": [["` + secret + `", "b"]]}`,
		"wf.json": `{"name": "x", "schemaVersion": "` + secret +
			`", "workflow": {"specification": {"tasks": [{"name": "` + secret + `", "id": "` + secret + `"}]}}}`,
		"gavel.json":   `{"v100": {"('` + secret + `', 1)": {"null": "` + secret + `"}}}`,
		"chronus.json": `{"` + secret + `": {"1": "` + secret + `"}}`, "key.json": `{"a": {"` + secret + `": 1}}`,
		"gavel.tsv":    strings.Repeat(secret+"\t", 6) + "1\n",
		"elastic.csv":  "global_batch_size," + secret + "\n" + secret + ",1\n",
		"tiresias.csv": "model_name,tensor_size_mb\n" + secret + "," + secret + "\n",
		"pairs.csv":    "model1,model2,speed1,speed2\n" + secret + ",b," + secret + ",1\n",
		"alone.csv":    "model,dataset,batchsize,speed,gpu_util,gpu_mem_util\n" + secret + ",b," + secret + ",1,1,1\n",
		"sia.csv":      "placement,local_bsz\n" + secret + "," + secret + "\n",
		"speeds.csv":   "model,workers," + secret + "\n" + secret + "," + secret + ",1\n",
		"words.csv":    "model,workers\n" + secret + ",1\n",
	}
	for name, text := range texts {
		put(name, text)
		add(name)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := io.WriteString(z, text)
		must(errors.Join(err, z.Close()))
		put(name+".gz", b.String()[:b.Len()-6]) // cut short
		add(name + ".gz")
	}

	// Files of a terabyte that take no space.
	for _, name := range []string{"huge.csv", "huge.json"} {
		put(name, "")
		must(os.Truncate(filepath.Join(root, name), 1<<40))
		add(name)
	}
	put("huge2.csv", header+"\n1,1,1\n")
	must(os.Truncate(filepath.Join(root, "huge2.csv"), 1<<40))
	add("huge2.csv")
	return root, names
}

// Whatever a client names, and wherever it can name something: it gets one sentence that quotes no file and tells no
// path of the server, nothing blocks, and afterwards an honest client is served.
func TestClientsGetNothingThatTheyMayNotRead(t *testing.T) {
	if raced.On {
		t.Skip("one request at a time; the race detector sees many in TestTheServedRegistryKeepsTheProtocol; make unit runs this test")
	}
	t.Setenv("CLUSTERGYM_CACHE", t.TempDir())
	root, names := hostile(t)
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = root })
	// ask returns what the registry says, or gives up: the deadline only ends a hang.
	ask := func(id string, kwargs wire.Map) error {
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		go func() {
			m, err := r.Make(ctx, id, kwargs, 1)
			if m != nil {
				_ = m.Envs[0].Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-time.After(3 * time.Minute):
			return errors.New("blocked")
		}
	}
	for _, name := range names {
		for _, p := range places(name) {
			err := ask(p.id, p.kwargs)
			var e *wire.Error
			if !errors.As(err, &e) || e.Code != wire.BadKwargs {
				t.Errorf("%s %.40q: %v, want it refused", p.what, name, err)
				continue
			}
			said := strings.ReplaceAll(e.Error(), name, "NAME")
			for _, leak := range []string{secret, "hunter2", "777123", filepath.Dir(root), "root:", "\n"} {
				if strings.Contains(said, leak) {
					t.Errorf("%s %.40q: the client is told %q, with %q in it", p.what, name, e.Error(), leak)
				}
			}
		}
	}
	if err := ask(jobselect.V1, wire.Map{{Key: "trace.file", Value: "fine.csv"},
		{Key: "window", Value: int64(16)}}); err != nil {
		t.Errorf("an honest client afterwards: %v", err)
	}
}

// A load ends with the request for it, also within a file that goes on for hours, and leaves its slot to others.
func TestALoadThatNobodyWaitsForEnds(t *testing.T) {
	root := t.TempDir()
	var part bytes.Buffer
	z := gzip.NewWriter(&part)
	for range 1 << 10 {
		if _, err := z.Write(bytes.Repeat([]byte("\n"), 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	z = gzip.NewWriter(&head)
	_, err := io.WriteString(z, "submit_time,duration,num_gpu\n")
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	blank := append(head.Bytes(), bytes.Repeat(part.Bytes(), 300)...) // 20 GB of empty lines
	for _, name := range []string{"blank.csv.gz", "blank.json.gz"} {
		if err := os.WriteFile(filepath.Join(root, name),
			blank[min(len(blank), len(head.Bytes())*strings.Count(name, "json")):], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = root })
	for _, p := range []struct {
		id, key, name string
	}{{jobselect.V1, "trace.file", "blank.csv.gz"}, {dagplace.ID, "trace.file", "blank.json.gz"},
		{workerplace.ID, "trace.file", "blank.csv.gz"}, {jobselect.V1, "trace.file", "blank.csv.gz"}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Make(ctx, p.id, wire.Map{{Key: p.key, Value: p.name}}, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("%s of %s: %v, want the end of a request that ended while the file was looked at", p.name, p.id, err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := r.Make(ctx, p.id, wire.Map{{Key: p.key, Value: p.name}}, 1)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s of %s: %v, want the end of the request", p.name, p.id, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s of %s is still read a minute after its request ended", p.name, p.id)
		}
		cancel()
	}
	if n := len(r.workloads.loads); n != 0 {
		t.Errorf("%d slots are taken after all loads ended", n)
	}
}

// Links are followed as long as they are relative and stay below the root.
func TestLinksBelowTheRootAreFollowed(t *testing.T) {
	root, _ := hostile(t)
	for link, to := range map[string]string{"inside.csv": "fine.csv", "deep/up.csv": "../fine.csv",
		"chain.csv": "inside.csv", "gone.csv": "deep/../../root/fine.csv"} {
		at := filepath.Join(root, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o750), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
	}
	r := registry(t, func(c *RegistryConfig) { c.TraceRoot = root })
	for name, ok := range map[string]bool{"inside.csv": true, "deep/up.csv": true, "chain.csv": true, "gone.csv": false,
		"absolute.csv": false} {
		m, err := r.Make(t.Context(), jobselect.V1,
			wire.Map{{Key: "trace.file", Value: name}, {Key: "window", Value: int64(16)}}, 1)
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = m.Envs[0].Close()
		}
	}
}
