package handle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// broads makes toys whose observations are large enough to be shared.
func broads() *testFactory {
	return &testFactory{makers: map[string]makeOne{"Broad-v1": func(wire.Map) (env.Env,
		error) {
		return broad{savedToy{newToy()}}, nil
	}}}
}

// broad is a toy with 2048 more numbers.
type broad struct{ savedToy }

const broadLen = 2048

func (e broad) Spec() env.Spec {
	s := e.savedToy.Spec()
	s.Obs = append(append([]env.Field{}, s.Obs[:1]...),
		env.Field{Name: "bb", Shape: []int{2, broadLen / 2}, Low: 0, High: 100}, s.Obs[1])
	return s
}

func (e broad) widen(ts *env.TimeStep) {
	ts.Obs[2+broadLen] = ts.Obs[2]
	for i := range broadLen {
		ts.Obs[2+i] = float32(e.steps*broadLen + i)
	}
}

func (e broad) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	err := e.savedToy.Reset(ctx, ep, ts)
	e.widen(ts)
	return err
}

func (e broad) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	err := e.savedToy.Step(ctx, a, ts)
	e.widen(ts)
	return err
}

func (e broad) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	err := e.savedToy.RestoreSnapshot(src, ts)
	e.widen(ts)
	return err
}

// seen reads an observation as a client does, from the file at the path.
func seen(t *testing.T, opened wire.Map, name string, n, each int) (rows [][]float32) {
	t.Helper()
	shm, _ := opened.Get("shm").(wire.Map)
	row, _ := shm.Int("row", 0, 0, 1<<30)
	size, _ := shm.Int("size", 0, 0, 1<<30)
	from := int64(0)
	if name != "" {
		from, _ = shm.Get("at").(wire.Map).Int(name, -1, 0, 1<<30)
	}
	path, _ := shm.Str("path", "")
	b, err := os.ReadFile(path)
	if err != nil || int64(len(b)) != size || size != 4*int64(n)*row || from < 0 {
		t.Fatalf("%v has %d bytes, error %v", shm, len(b), err)
	}
	a := wire.Array{DType: wire.F32, Shape: []int{len(b) / 4}, Data: b}
	for i := range n {
		var one []float32
		for k := range each {
			one = append(one, float32(a.Float(i*int(row)+int(from)+k)))
		}
		rows = append(rows, one)
	}
	return rows
}

// Two handles play the same steps, and one of them shares: its client sees what the other's is sent.
func TestSharedObservationsAreThoseThatWouldBeSent(t *testing.T) {
	const n = 16
	parts := map[string]int{"aa": 2, "bb": broadLen, "zz": 1}
	for _, view := range []string{wire.ViewDict, wire.ViewFlat} {
		for _, mode := range []string{"next_step", "same_step", "disabled"} {
			t.Run(view+" "+mode, func(t *testing.T) {
				sent, shared := newDriver(t, broads()), newDriver(t, broads())
				shared.o.Share = true
				fields := []wire.Pair{field("n", n), field("obs", view), field("autoreset", mode), field("invalid", "noop")}
				if view == wire.ViewDict {
					fields = append(fields, field("mask", []string{"info", "obs"}))
				}
				sent.open("Broad-v1", fields...)
				opened := shared.open("Broad-v1", append(fields, field("shm", true))...)
				now := make([]map[string][]float32, n) // the current observation of every row, as sent
				play := func(op string, rows []int, more ...wire.Pair) {
					t.Helper()
					x, y := sent.do(op, more...), shared.do(op, more...)
					for k, i := range rows {
						now[i] = map[string][]float32{}
						take := func(name string, v any, each int) {
							for _, z := range numbers(v)[k*each : (k+1)*each] {
								now[i][name] = append(now[i][name], float32(z))
							}
						}
						if view == wire.ViewFlat {
							take("", x.Get("obs"), broadLen+3)
							continue
						}
						for name, each := range parts {
							take(name, at(x, "obs", name), each)
						}
					}
					// All but the observations is the same, and they are not sent twice.
					if view == wire.ViewDict {
						mask := at(x, "obs", wire.MaskKey)
						is(t, op+": the mask", at(y, "obs", wire.MaskKey), numbers(mask)...)
						if obs, _ := y.Get("obs").(wire.Map); len(obs) != 1 {
							t.Errorf("%s: the reply has observations %v", op, obs)
						}
					} else if y.Get("obs") != nil {
						t.Errorf("%s: the reply has observations", op)
					}
					a, b := fmt.Sprint(unseen(x)), fmt.Sprint(unseen(y))
					if a != b {
						t.Fatalf("%s: replies differ:\n%.300s\n%.300s", op, a, b)
					}
					for name, each := range map[string]int{"": broadLen + 3, "aa": 2, "bb": broadLen, "zz": 1} {
						if (name == "") != (view == wire.ViewFlat) {
							continue
						}
						for i, got := range seen(t, opened, name, n, each) {
							for k, z := range now[i][name] {
								if got[k] != z {
									t.Fatalf("%s: row %d, %q at %d is %v, want %v", op, i, name, k, got[k], z)
								}
							}
						}
					}
				}
				every := make([]int, n)
				for i := range every {
					every[i] = i
				}
				play(wire.OpReset, every, field("seed", 3))
				for k := range 2 * toyEnd {
					if mode == "disabled" && k == toyEnd {
						play(wire.OpReset, every)
					}
					if k == 2 {
						play(wire.OpReset, []int{5, 1}, field("ids", []int{5, 1}), field("seed", []any{8, 9}))
					}
					if k == 3 && mode != "disabled" {
						play(wire.OpStep, []int{7, 2}, field("ids", []int{7, 2}), field("a", i64s(0, 2)))
					}
					a := make([]int64, n)
					if mode == "disabled" && k == toyEnd-1 {
						continue // rows that were reset in between are behind
					}
					play(wire.OpStep, every, field("a", i64s(a...)))
				}
				name := "bb"
				if view == wire.ViewFlat {
					name = ""
				}
				sent.do(wire.OpSnapshot)
				blob := shared.do(wire.OpSnapshot).Get("blob")
				before := seen(t, opened, name, n, 8)
				play(wire.OpReset, every, field("seed", 100))
				y := shared.do(wire.OpRestore, field("blob", blob))
				if view == wire.ViewFlat && y.Get("obs") != nil {
					t.Error("restore: the reply has observations")
				}
				after := seen(t, opened, name, n, 8)
				if fmt.Sprint(before) != fmt.Sprint(after) {
					t.Error("a restored batch shows something else than when it was saved")
				}
			})
		}
	}
}

func TestSmallObservationsAreSent(t *testing.T) {
	d := newDriver(t, broads())
	d.o.Share = true
	if opened := d.open("Broad-v1", field("n", 2), field("shm", true)); opened.Get("shm") != nil {
		t.Error("16 KiB are shared")
	}
	reply := d.do(wire.OpReset, field("seed", 1))
	if len(numbers(at(reply, "obs", "bb"))) != 2*broadLen {
		t.Errorf("the reply is %v", reply)
	}
}

func TestSharingHasToBeAgreedOn(t *testing.T) {
	d := newDriver(t, broads())
	if _, e := d.tryOpen(wire.Map{field("env", "Broad-v1"), field("n", 16), field("shm", true)}); e == nil ||
		e.Code != wire.Unsupported {
		t.Errorf("without the feature: %v", e)
	}
	d.o.Share = true
	if _,
		e := d.tryOpen(wire.Map{field("env", "Broad-v1"), field("n", 16), field("shm", true), field("recv", "any")}); e ==
		nil || e.Code != wire.BadRequest {
		t.Errorf("with recv any: %v", e)
	}
}

// Clients can neither shrink the memory, which would kill the server, nor write to it.
func TestClientsCanOnlyReadWhatIsShared(t *testing.T) {
	r, err := newRegion("test", 1<<16)
	if err != nil {
		t.Skipf("this system has no such memory: %v", err)
	}
	defer r.close()
	r.floats()[5] = 7
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	for _, size := range []int64{0, 1 << 20} {
		if err := f.Truncate(size); !errors.Is(err, syscall.EPERM) {
			t.Errorf("truncating to %d: error %v, want %v", size, err, syscall.EPERM)
		}
	}
	if _, err := f.WriteAt([]byte{1}, 0); !errors.Is(err, syscall.EPERM) {
		t.Errorf("writing: error %v, want %v", err, syscall.EPERM)
	}
	if b, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(b)
		t.Error("it can be mapped for writing")
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b) //nolint:errcheck // the test ends
	r.floats()[6] = 8
	a := wire.Array{DType: wire.F32, Shape: []int{8}, Data: b[:32]}
	if a.Float(5) != 7 || a.Float(6) != 8 {
		t.Errorf("it shows %v and %v, want 7 and 8", a.Float(5), a.Float(6))
	}
	if math.Float32bits(r.floats()[0]) != 0 {
		t.Error("it does not begin with zeros")
	}
}

// unseen returns a reply without its observations.
func unseen(m wire.Map) wire.Map {
	return slices.DeleteFunc(slices.Clone(m), func(p wire.Pair) bool { return p.Key == "obs" })
}

// regions returns the open descriptors of shared memory of this process.
func regions(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("the descriptors cannot be listed: %v", err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "/memfd:clustergym") {
			n++
		}
	}
	return n
}

func TestClosedHandlesGiveTheirMemoryBack(t *testing.T) {
	before := regions(t)
	d := newDriver(t, broads())
	d.o.Share = true
	d.open("Broad-v1", field("n", 16), field("shm", true))
	if n := regions(t); n != before+1 {
		t.Fatalf("%d descriptors of shared memory, want %d", n, before+1)
	}
	if err := d.h.Close(); err != nil {
		t.Fatal(err)
	}
	if n := regions(t); n != before {
		t.Errorf("%d descriptors of shared memory after close, want %d", n, before)
	}
}
