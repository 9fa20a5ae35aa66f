package budget

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clustergym/bridge/wire"
)

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	b := New(100)
	a := b.Account()
	if !a.Reserve(Environments, 60) || !a.Reserve(Replies, 30) || a.Reserve(Frames, 11) || !a.Reserve(Frames, 10) ||
		b.Free() != 0 {
		t.Fatalf("%d are free, %d held", b.Free(), a.Held())
	}
	if !a.Set(Replies, 10) || b.Used(Replies) != 10 || a.Set(Environments, 81) || b.Used(Environments) != 60 {
		t.Errorf("replies %d, environments %d", b.Used(Replies), b.Used(Environments))
	}
	a.Release()
	a.Release()
	for _, k := range Kinds() {
		if b.Used(k) != 0 {
			t.Errorf("%v: %d after everything was released", k, b.Used(k))
		}
	}
	if b.Free() != 100 {
		t.Errorf("%d are free", b.Free())
	}
	var none *Budget
	if !none.Reserve(Frames, 1<<60) || !none.Account().Reserve(Frames, 1<<60) {
		t.Error("there is a limit without a budget")
	}
	none.Release(Frames, 1)
}

func TestWhatNobodyUsesMakesRoom(t *testing.T) {
	b := New(100)
	cached := int64(70)
	b.Reserve(Workloads, cached)
	asked := []int64{}
	b.Reclaim(func(n int64) {
		asked = append(asked, n)
		give := min(cached, n)
		cached -= give
		b.Release(Workloads, give)
	})
	if !b.Reserve(Environments, 50) || cached != 50 || b.Reserve(Environments, 101) || len(asked) != 1 {
		t.Errorf("%d cached, asked for %v", cached, asked)
	}
	if !b.Reserve(Environments, 50) || cached != 0 || b.Reserve(Environments, 1) {
		t.Errorf("%d cached, asked for %v", cached, asked)
	}
}

func TestManyAtOnceNeverExceedTheBudget(t *testing.T) {
	b := New(1000)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				a := b.Account()
				a.Reserve(Kind((g+i)%4), int64(1+(i*37+g)%400))
				if f := b.Free(); f < 0 {
					t.Errorf("%d are free", f)
				}
				a.Release()
			}
		})
	}
	wg.Wait()
	if b.Free() != 1000 {
		t.Errorf("%d are free at the end", b.Free())
	}
}

// The error says what is needed, what is free, what would help, and whether it is worth trying again.
func TestRefusalsSayWhatWouldHelp(t *testing.T) {
	b := New(1 << 30)
	b.Reserve(Frames, 900<<20)
	a := b.Account()
	a.Reserve(Workloads, 24<<20)
	e := a.Refuse("4096 environments", 400<<20)
	if e.Code != wire.Capacity || !e.Retry || !strings.Contains(e.Error(), "4096 environments") ||
		!strings.Contains(e.Got, "424 MiB") ||
		!strings.Contains(e.Got, "124 MiB of 1 GiB are free") || !strings.Contains(e.Want, "more memory") {
		t.Errorf("%v", e)
	}
	if e := a.Refuse("4096 environments", 1<<30); e.Code != wire.Capacity || e.Retry ||
		!strings.Contains(e.Got, "1.0 GiB") || !strings.Contains(e.Want, "more memory") {
		t.Errorf("%v", e)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"4GiB": 4 << 30, "500MB": 500e6, "1.5 gib": 3 << 29, "1024": 1024, "2kb": 2000, "7 B": 7, "1TiB": 1 << 40,
		"0.5MiB": 1 << 19, " 3 MiB ": 3 << 20,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1e9", "0", "0.1", "1 XB", "1GiB2", "inf", "nan", "99999999TiB", "4Gi",
		"0x10", "1_000", "..MB", "∞"} {
		if got, err := ParseSize(text); !errors.Is(err, errSize) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB",
		100 << 20: "100 MiB", 1<<40 + 1: "1.0 TiB", math.MaxInt64: "8 EiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTheDefaultIsAShareOfTheLeastLimit(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		files   map[string]string
		runtime int64
		want    int64
	}{
		"nothing is known": {nil, none, 2 << 30},
		"the machine":      {map[string]string{"proc/meminfo": "MemFree: 1 kB\nMemTotal:       1000 kB\n"}, none, 614400},
		"GOMEMLIMIT":       {map[string]string{"proc/meminfo": "MemTotal: 1000 kB\n"}, 300, 200},
		"version 2, in a container": {map[string]string{
			"proc/meminfo": "MemTotal: 1000 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n",
		}, none, 600},
		"version 2, a group above": {map[string]string{
			"proc/meminfo": "MemTotal: 1000 kB\n", "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n",
		}, none, 600},
		"version 1": {map[string]string{
			"proc/meminfo": "MemTotal: 1000 kB\n", "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, none, 1200},
		"nonsense": {map[string]string{"proc/meminfo": "MemTotal: many kB\n", "proc/self/cgroup": "0::\n:\n\n",
			"sys/fs/cgroup/memory.max": "-5"}, none, 2 << 30},
	} {
		root := t.TempDir()
		for f, text := range c.files {
			at := filepath.Join(root, f)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := defaultOf(root, c.runtime); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := Default(); got < 1<<20 {
		t.Errorf("this machine: %d", got)
	}
}
