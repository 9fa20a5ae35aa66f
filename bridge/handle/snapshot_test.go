package handle

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"clustergym/bridge/wire"
	"clustergym/env"
)

func TestARestoredRowContinuesBitForBit(t *testing.T) {
	for _, mode := range []string{"next_step", "same_step", "disabled"} {
		for _, enc := range []wire.Encoding{wire.Ext, wire.JSON} {
			d := newDriver(t, toys(nil))
			d.enc = enc
			d.open("Toy-v3", field("n", 4), field("info", "all"), field("autoreset", mode))
			d.do(wire.OpReset, field("seed", 10))
			d.pass(4, 2)
			m := d.do(wire.OpSnapshot, field("ids", []int{3, 1}))
			is(t, "ids", m.Get("ids"), 3, 1)
			blob := m.Get("blob")
			steps := func(ids ...int) (raw []string) {
				t.Helper()
				for range 9 {
					m, err := d.try(wire.OpStep, field("a", i64s(2, 0)), field("ids", ids))
					if err != nil {
						raw = append(raw, err.Error())
						continue
					}
					var rows strings.Builder
					for _, p := range m {
						if p.Key == "fin" {
							ids := at(m, "fin", "ids")
							for _, p := range p.Value.(wire.Map)[1:] {
								fmt.Fprint(&rows, len(numbers(ids)), p)
							}
							continue
						}
						if p.Key != "re" && p.Key != "ids" {
							fmt.Fprint(&rows, p)
						}
					}
					raw = append(raw, rows.String())
				}
				return raw
			}
			want := steps(3, 1)
			// Back into the same rows, and into others.
			for _, ids := range [][]int{{3, 1}, {2, 0}} {
				m := d.do(wire.OpRestore, field("ids", ids), field("blob", blob))
				is(t, "obs", at(m, "obs", "aa"), 13, 2, 11, 2)
				is(t, "mask", at(m, "info", "action_mask"), 1, 0, 1, 1, 1, 0, 1, 1)
				is(t, "ids", m.Get("ids"), float64(ids[0]), float64(ids[1]))
				got := steps(ids...)
				for k := range want {
					if mode == "disabled" && k >= toyEnd-2 {
						break // the errors name environments
					}
					if got[k] != want[k] {
						t.Fatalf("%s, %v: step %d after the restored one is\n%s\nwant\n%s", mode, ids, k, got[k], want[k])
					}
				}
			}
		}
	}
}

func TestARestoreTellsTheTimeStepOfEachRow(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 3), field("invalid", "penalty"), field("autoreset", "disabled"))
	d.do(wire.OpReset, field("seed", 10))
	for range toyEnd - 1 {
		d.do(wire.OpStep, field("a", i64s(0)), field("ids", []int{1}))
	}
	d.do(wire.OpStep, field("a", i64s(2, 1)), field("ids", []int{1, 2})) // row 2's action is masked
	blob := d.do(wire.OpSnapshot).Get("blob")
	e := newDriver(t, toys(nil))
	e.open("Toy-v3", field("n", 3), field("invalid", "penalty"))
	m := e.do(wire.OpRestore, field("blob", blob))
	is(t, "first", m.Get("first"), 1, 0, 0)
	is(t, "r", m.Get("r"), 0, 2, 2.9)
	is(t, "te", m.Get("te"), 0, 0, 0)
	is(t, "tr", m.Get("tr"), 0, 1, 0)
	is(t, "elapsed", at(m, "info", "elapsed_s"), 0, 300, 60)
	is(t, "episode", at(m, "info", "episode", "r"), 0, 2, 0)
	is(t, "_episode", at(m, "info", "_episode"), 0, 1, 0)
	if at(m, "info", "invalid") != nil || m.Has("ids") {
		t.Errorf("reply %v", m)
	}
}

func TestAnotherHandleRestoresASnapshot(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("n", 2), field("kwargs", wire.Map{field("x", 1)}))
	d.do(wire.OpReset, field("seed", 10))
	d.pass(2, 3)
	blob := d.do(wire.OpSnapshot).Get("blob")

	open := func(f *testFactory, fields ...wire.Pair) *driver {
		d := newDriver(t, f)
		d.open("Toy-v3", fields...)
		return d
	}
	// The view, the treatment of masked actions, and whether the target was ever reset do not matter.
	e := open(toys(nil), field("n", 2), field("kwargs", wire.Map{field("x", 1)}), field("obs", "flat"),
		field("autoreset", "disabled"))
	is(t, "obs", e.do(wire.OpRestore, field("blob", blob)).Get("obs"), 10, 3, 0.5, 11, 3, 0.5)
	m := e.pass(2, toyEnd-3)
	is(t, "the episode's length", at(m, "info", "episode", "l"), 5, 5)
	e.do(wire.OpReset)
	if seed := theToy(e, 0).seed; seed == 10 {
		t.Error("the stream has not come with the snapshot")
	}

	for what, c := range map[string]*driver{
		"another environment": func() *driver { d := newDriver(t, toys(nil)); d.open("InvalidAction-v1"); return d }(),
		"other kwargs":        open(toys(nil), field("n", 2), field("kwargs", wire.Map{field("x", 2)})),
		"another number":      open(toys(nil), field("n", 3), field("kwargs", wire.Map{field("x", 1)})),
		"a scenario by hash": open(&testFactory{makers: toys(nil).makers, sha: "s"}, field("n", 2),
			field("kwargs", wire.Map{field("x", 1)})),
	} {
		c.do(wire.OpReset, field("seed", 1))
		if err := c.fails(wire.SnapshotMismatch, wire.OpRestore, field("blob", blob)); err.Want == "" {
			t.Errorf("%s: %v", what, err.Error())
		}
	}
}

// In mode same_step no row waits for its next episode, so it cannot restore such a row.
func TestAnEndedEpisodeDoesNotGoIntoSameStep(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3", field("autoreset", "disabled"))
	d.do(wire.OpReset, field("seed", 0))
	d.pass(1, toyEnd)
	blob := d.do(wire.OpSnapshot).Get("blob")
	e := newDriver(t, toys(nil))
	e.open("Toy-v3", field("autoreset", "same_step"))
	if err := e.fails(wire.SnapshotMismatch, wire.OpRestore, field("blob", blob)); !strings.Contains(err.Msg,
		"at the end of its episode") {
		t.Error(err.Error())
	}
}

func TestForeignSnapshotsNeedPermission(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 10))
	d.pass(1, 2)
	blob := d.do(wire.OpSnapshot).Get("blob")
	for foreign, want := range map[bool]wire.Code{false: wire.Forbidden, true: ""} {
		e := newDriver(t, toys(nil))
		e.o.Key, e.o.Foreign = keyed("the key of another server"), foreign
		e.open("Toy-v3")
		m, err := e.try(wire.OpRestore, field("blob", blob))
		if want != "" {
			if err == nil || err.Code != want {
				t.Errorf("foreign %v: %v", foreign, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("foreign %v: %v", foreign, err)
		}
		is(t, "obs", at(m, "obs", "aa"), 10, 2)
	}
}

// Any blob either restores what it says or changes nothing.
func TestHostileSnapshotsChangeNothing(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		d := newDriver(t, toys(nil))
		d.o.Foreign = foreign
		d.open("Toy-v3", field("n", 2))
		d.do(wire.OpReset, field("seed", 10))
		d.pass(2, 2)
		good, _ := d.do(wire.OpSnapshot).Get("blob").([]byte)
		d.pass(2, 1)
		check := func(what string, blob []byte) {
			t.Helper()
			_, err := d.try(wire.OpRestore, field("blob", blob))
			if err == nil || err.Code != wire.SnapshotMismatch && (err.Code != wire.Forbidden || foreign) {
				t.Fatalf("foreign %v, %s: %v", foreign, what, err)
			}
			for i := range 2 {
				if e := theToy(d, i); e.steps != 3 || e.seed != uint64(10+i) {
					t.Fatalf("foreign %v, %s: environment %d is at step %d", foreign, what, i, e.steps)
				}
			}
		}
		for k := range good {
			broken := bytes.Clone(good)
			broken[k] ^= 1 << (k % 8)
			if foreign && k >= len(good)-sha256.Size {
				break // no signature is needed, so a broken one does not matter
			}
			check(fmt.Sprintf("byte %d", k), broken)
			check(fmt.Sprintf("cut at %d", k), good[:k])
		}
		check("a byte more", append(bytes.Clone(good), 0))
		check("nothing", []byte{})
		rng := rand.New(rand.NewPCG(1, 2))
		noise := make([]byte, 300)
		for k := range noise {
			noise[k] = byte(rng.Uint32())
		}
		check("noise", noise)
		// Even with correct sums contents that make no sense are refused.
		body := good[:len(good)-seals]
		for k := len(snapshotMagic); k < len(body); k++ {
			broken := bytes.Clone(body)
			broken[k] ^= 0x80
			check(fmt.Sprintf("byte %d, signed", k), seal(broken, d.o.Key.signing()))
		}
		for k := range body {
			check(fmt.Sprintf("cut at %d, signed", k), seal(bytes.Clone(body[:k]), d.o.Key.signing()))
		}
		d.fails(wire.BadRequest, wire.OpRestore)
		d.fails(wire.BadRequest, wire.OpRestore, field("blob", 7))
		d.do(wire.OpRestore, field("blob", good))
	}
}

func TestASnapshotIsSigned(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Toy-v3")
	d.do(wire.OpReset, field("seed", 10))
	blob := d.do(wire.OpSnapshot).Get("blob").([]byte)
	n := len(blob)
	sum := sha256.Sum256(blob[:n-64])
	m := hmac.New(sha256.New, d.o.Key.signing())
	m.Write(blob[:n-32])
	if !bytes.Equal(sum[:], blob[n-64:n-32]) || !bytes.Equal(m.Sum(nil), blob[n-32:]) ||
		!strings.HasPrefix(string(blob), "clustergym bridge snapshot 1\n") {
		t.Errorf("blob %q", blob)
	}
	if again := d.do(wire.OpSnapshot).Get("blob").([]byte); !bytes.Equal(again, blob) {
		t.Error("two snapshots of one state differ")
	}
}

func TestASnapshotThatCouldNotComeBackIsTooLarge(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Ext, wire.JSON} {
		d := newDriver(t, toys(nil))
		d.enc, d.lim.MaxFrameIn = enc, 4<<10
		d.open("Toy-v3", field("n", 100))
		d.do(wire.OpReset, field("seed", 0))
		e := d.fails(wire.TooLarge, wire.OpSnapshot)
		if !strings.Contains(e.Want, "name fewer environments in ids") {
			t.Error(e.Error())
		}
		m := d.do(wire.OpSnapshot, field("ids", []int{0, 1, 2}))
		d.do(wire.OpRestore, field("ids", []int{5, 6, 7}), field("blob", m.Get("blob")))
	}
}

func TestWithoutSnapshotsThereAreNone(t *testing.T) {
	d := newDriver(t, toys(nil))
	d.open("Bare-v3")
	d.do(wire.OpReset, field("seed", 0))
	d.fails(wire.Unsupported, wire.OpSnapshot)
	d.fails(wire.Unsupported, wire.OpRestore, field("blob", []byte{1}))
}

// A row that has failed can be restored as well as reset.
func TestAFailedRowCanBeRestored(t *testing.T) {
	d := newDriver(t, toys(func(_ int, e *toy) { e.panicAt = 3 }))
	d.open("Toy-v3", field("n", 2))
	d.do(wire.OpReset, field("seed", 10))
	d.pass(2, 1)
	blob := d.do(wire.OpSnapshot, field("ids", []int{0})).Get("blob")
	d.pass(2, 1)
	d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(0, 0)))
	m := d.do(wire.OpRestore, field("ids", []int{1}), field("blob", blob))
	is(t, "obs", at(m, "obs", "aa"), 10, 1)
	d.do(wire.OpStep, field("a", i64s(2)), field("ids", []int{1}))
	if e := d.fails(wire.EnvFault, wire.OpStep, field("a", i64s(2, 2))); !reflect.DeepEqual(e.Env, []int{0}) {
		t.Errorf("environments %v", e.Env)
	}
}

// Every mode takes the snapshots of every mode, but for ended rows in same_step, which are refused with the reason.
// What the restored row shows says how it goes on: te or tr mean that its episode is over, as in a reply to a step in
// that mode.
func TestSnapshotsAcrossModes(t *testing.T) {
	modes := []string{"next_step", "same_step", "disabled"}
	open := func(mode string) *driver {
		d := newDriver(t, toys(nil))
		d.open("Toy-v3", field("autoreset", mode), field("info", "all"), field("invalid", "error"))
		return d
	}
	step := field("a", i64s(2))
	for _, from := range modes {
		for _, to := range modes {
			for state, steps := range map[string]int{"first": 0, "running": 2, "ended": toyEnd} {
				for _, target := range []string{"fresh", "running", "ended"} {
					name := fmt.Sprintf("%s row of %s into a %s row of %s", state, from, target, to)
					d := open(from)
					d.do(wire.OpReset, field("seed", 10))
					for range steps {
						d.do(wire.OpStep, step)
					}
					blob := d.do(wire.OpSnapshot).Get("blob")
					e := open(to)
					if target != "fresh" {
						e.do(wire.OpReset, field("seed", 50))
						e.do(wire.OpStep, step)
					}
					if target == "ended" {
						for range toyEnd - 1 {
							e.do(wire.OpStep, step)
						}
					}
					if state == "ended" && from != "same_step" && to == "same_step" {
						err := e.fails(wire.SnapshotMismatch, wire.OpRestore, field("blob", blob))
						if want := "at the end of its episode"; !strings.Contains(err.Msg, want) ||
							!strings.Contains(err.Msg, "same_step") || !reflect.DeepEqual(err.Env, []int{0}) {
							t.Errorf("%s: %v of %v, want %q", name, err.Error(), err.Env, want)
						}
						if target == "fresh" {
							e.fails(wire.NeedsReset, wire.OpStep, step)
						} else {
							e.do(wire.OpStep, step) // it goes on as before
						}
						continue
					}
					m := e.do(wire.OpRestore, field("blob", blob))
					over := state == "ended" && (from != "same_step" || to == "same_step")
					next := float64(env.EpisodeSeed(10, 1) % 100)
					switch {
					case state == "ended" && from == "same_step": // the row is in its next episode
						is(t, name+": obs", at(m, "obs", "aa"), next, 0)
					case state == "ended":
						is(t, name+": obs", at(m, "obs", "aa"), 10, toyEnd)
					default:
						is(t, name+": obs", at(m, "obs", "aa"), 10, float64(steps))
					}
					bit := func(b bool) float64 {
						if b {
							return 1
						}
						return 0
					}
					is(t, name+": te", m.Get("te"), bit(over))
					is(t, name+": first", m.Get("first"), bit(state == "first" || state == "ended" && !over))
					is(t, name+": r", m.Get("r"), bit(state == "running" || over)*2)
					// A reset always works, and continues the stream.
					f := open(to)
					f.do(wire.OpRestore, field("blob", blob))
					k := 1
					if state == "ended" && from == "same_step" {
						k = 2
					}
					is(t, name+": reset", at(f.do(wire.OpReset), "obs", "aa"), float64(env.EpisodeSeed(10, k)%100), 0)
					// A step is what the row shows: the next of a running episode, the first of the next one, or needs_reset.
					switch {
					case over && to == "disabled":
						e.fails(wire.NeedsReset, wire.OpStep, step)
						continue
					case over && to == "next_step":
						m = e.do(wire.OpStep, field("a", i64s(1))) // masked, and ignored
						is(t, name+": obs after", at(m, "obs", "aa"), next, 0)
						is(t, name+": r after", m.Get("r"), 0)
					default:
						e.fails(wire.BadAction, wire.OpStep, field("a", i64s(9)))
						m = e.do(wire.OpStep, step)
						is(t, name+": r after", m.Get("r"), 2)
						if state == "ended" {
							is(t, name+": obs after", at(m, "obs", "aa"), next, 1)
						} else {
							is(t, name+": obs after", at(m, "obs", "aa"), 10, float64(steps+1))
						}
					}
					is(t, name+": te after", m.Get("te"), 0)
				}
			}
		}
	}
}
