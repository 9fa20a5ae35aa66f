package envs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env/jobselect"
	"clustergym/internal/raced"
)

// ofSize returns a loader of a workload of so many bytes.
func ofSize(bytes int64) func(context.Context, *budget.Account) (*Workload, error) {
	return func(context.Context, *budget.Account) (*Workload, error) { return &Workload{bytes: bytes}, nil }
}

func TestWorkloadsInUseStayAndOthersMakeRoom(t *testing.T) {
	b := budget.New(100)
	c := newWorkloadCache(1 << 30)
	c.budget = b
	b.Reclaim(c.free)
	use := func(key string, bytes int64) (func(), error) {
		_, leave, err := c.use(t.Context(), key, ofSize(bytes))
		return leave, err
	}
	leaveA, err := use("a", 40)
	if err != nil {
		t.Fatal(err)
	}
	again, err := use("a", 40)
	if err != nil {
		t.Fatal(err)
	}
	leaveB, err := use("b", 40)
	if err != nil || b.Used(budget.Workloads) != 80 {
		t.Fatalf("%v, %d bytes", err, b.Used(budget.Workloads))
	}
	var e *wire.Error
	if _, err := use("c", 40); !errors.As(err, &e) || e.Code != wire.Capacity || !e.Retry {
		t.Fatalf("no workload is unused, and one more gives %v", err)
	}
	if _, err := use("c", 140); !errors.As(err, &e) || e.Code != wire.Capacity || e.Retry {
		t.Fatalf("one larger than everything gives %v", err)
	}
	leaveA()
	leaveA() // counts once
	if b.Reserve(budget.Environments, 30) {
		t.Fatal("a is in use, and made room")
	}
	again()
	if b.Used(budget.Workloads) != 80 {
		t.Error("a is not cached")
	}
	if !b.Reserve(budget.Environments, 30) || b.Used(budget.Workloads) != 40 {
		t.Errorf("an unused workload makes no room: %d", b.Used(budget.Workloads))
	}
	leaveB()
	b.Release(budget.Environments, 30)
	c.free(1)
	if b.Free() != 100 {
		t.Errorf("%d are free", b.Free())
	}
}

// A workload is read only as far as there is memory for it, and what is reserved for it is what it takes.
func TestWorkloadsAreReadAsFarAsThereIsMemory(t *testing.T) {
	root := t.TempDir()
	var csv strings.Builder
	csv.WriteString("submit_time,duration,num_gpu\n")
	for i := range 40_000 {
		fmt.Fprintf(&csv, "%d,%d,%d\n", 60*i, 100+i, 1+i%4)
	}
	if err := os.WriteFile(filepath.Join(root, "jobs.csv"), []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	kwargs := wire.Map{{Key: "trace.file", Value: "jobs.csv"}}
	synthetic := wire.Map{{Key: "trace.synth.jobs", Value: int64(40_000)}}
	for name, kw := range map[string]wire.Map{"a file": kwargs, "generated": synthetic} {
		for _, total := range []int64{1 << 10, 8 << 20, 24 << 20} {
			b := budget.New(total)
			r := registry(t, func(c *RegistryConfig) { c.TraceRoot = root })
			r.UseBudget(b)
			var e *wire.Error
			if _, err := r.Make(t.Context(), jobselect.V1, kw, 1); !errors.As(err, &e) || e.Code != wire.Capacity {
				t.Errorf("%s with %d bytes: %v", name, total, err)
			}
			if b.Free() != total {
				t.Errorf("%s with %d bytes: %d are free after a refusal", name, total, b.Free())
			}
		}
		b := budget.New(64 << 20)
		r := registry(t, func(c *RegistryConfig) { c.TraceRoot = root })
		r.UseBudget(b)
		before := heapInUse()
		m, err := r.Make(t.Context(), jobselect.V1, kw, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, room := heapInUse()-before, b.Used(budget.Workloads)
		if !raced.On && (got > 1.05*float64(room)+1<<20 || float64(room) > 2*got) {
			t.Errorf("%s: %.0f bytes, %d reserved", name, got, room)
		}
		runtime.KeepAlive(r)
		m.Release()
		if b.Used(budget.Environments) != 0 || b.Used(budget.Workloads) != room {
			t.Errorf("%s: environments %d, workloads %d of %d", name, b.Used(budget.Environments), b.Used(budget.Workloads),
				room)
		}
	}
}

// Environments are reserved before they are made, refused ones leave nothing behind, and the list of environments loads
// no jobs.
func TestEnvironmentsAreReservedBeforeTheyAreMade(t *testing.T) {
	b := budget.New(64 << 20)
	r := registry(t, nil)
	r.UseBudget(b)
	var e *wire.Error
	if _, err := r.Make(t.Context(), jobselect.V1, nil, 4096); !errors.As(err, &e) || e.Code != wire.Capacity || e.Retry ||
		!strings.Contains(e.Error(), "4096 environments of JobSelect-v1") {
		t.Errorf("4096 in 64 MiB: %v", err)
	}
	var all []*Made
	for {
		m, err := r.Make(t.Context(), "DAGPlace-v1", wire.Map{{Key: "gpus", Value: int64(10000)}}, 1)
		if err != nil {
			if !errors.As(err, &e) || e.Code != wire.Capacity || !e.Retry {
				t.Error(err)
			}
			break
		}
		all = append(all, m)
	}
	if len(all) < 2 || len(all) > 6 || b.Used(budget.Workloads) != 0 {
		t.Errorf("%d environments; %d bytes of unused workloads", len(all), b.Used(budget.Workloads))
	}
	for _, m := range all {
		for _, e := range m.Envs {
			_ = e.Close()
		}
		m.Release()
	}
	if b.Used(budget.Environments) != 0 || b.Used(budget.Workloads) != 0 {
		t.Errorf("environments %d, workloads %d", b.Used(budget.Environments), b.Used(budget.Workloads))
	}
	// The list of environments loads no jobs.
	for _, l := range NewFactory(r).List() {
		if (l.SHA == "") != Find(l.ID).Simulated() {
			t.Errorf("%s has hash %q", l.ID, l.SHA)
		}
	}
	if b.Used(budget.Workloads) != 0 {
		t.Errorf("the list takes %d bytes of workloads", b.Used(budget.Workloads))
	}
}
