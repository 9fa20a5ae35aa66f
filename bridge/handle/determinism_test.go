package handle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"clustergym/bridge/wire"
)

// The protocol's invariant: for the same environment, kwargs, seed and actions the bytes of a row are the same,
// whatever rows are beside it and however it was requested.

const (
	detRows  = 6
	detSteps = 12
	detSeed  = 1000
)

// script returns the action of row i at its k-th step. Some are masked.
func script(id string, i, k int) int64 {
	n := 4
	if id == "InvalidAction-v1" {
		n = 80
	}
	return int64(rand.New(rand.NewPCG(uint64(i), uint64(k))).IntN(n))
}

// record holds the contents of replies by row.
type record [][]string

// bytesOf returns the bytes of element p of an array's first dimension.
func bytesOf(a wire.Array, p int) string {
	n := len(a.Data) / a.Shape[0]
	return fmt.Sprintf("%v%v:%x ", a.DType, a.Shape[1:], a.Data[n*p:n*(p+1)])
}

// rowOf returns row p of a map of columns, without the keys that the row does not have.
func rowOf(m wire.Map, p int) string {
	out := ""
	for _, e := range m {
		if has, ok := m.Get("_" + e.Key).(wire.Array); ok && has.Data[p] == 0 || e.Key[0] == '_' {
			continue
		}
		switch v := e.Value.(type) {
		case wire.Array:
			out += e.Key + "=" + bytesOf(v, p)
		case wire.Map:
			out += e.Key + "={" + rowOf(v, p) + "} "
		}
	}
	return out
}

// note adds a reply about rows to the record.
func (r record) note(m wire.Map, rows []int) {
	fin, _ := m.Get("fin").(wire.Map)
	ended := numbers(fin.Get("ids"))
	for p, i := range rows {
		s := ""
		for _, key := range []string{"obs", "r", "te", "tr", "info"} {
			switch v := m.Get(key).(type) {
			case wire.Map:
				s += key + "={" + rowOf(v, p) + "} "
			case wire.Array:
				s += key + "=" + bytesOf(v, p)
			}
		}
		if k := slices.Index(ended, float64(i)); k >= 0 {
			s += "fin={" + rowOf(fin[1:], k) + "}"
		}
		r[i] = append(r[i], s)
	}
}

// idsOf returns the rows of a reply.
func idsOf(m wire.Map, n int) []int {
	var ids []int
	for _, x := range numbers(m.Get("ids")) {
		ids = append(ids, int(x))
	}
	if ids == nil {
		for i := range n {
			ids = append(ids, i)
		}
	}
	return ids
}

// variant is one way of requesting the same steps.
type variant struct {
	name    string
	n       int // rows of the handle; those from detRows on are not compared
	first   int // the row of the script that row 0 plays
	workers int
	split   int  // requests for one step of all
	send    bool // send and recv in place of step
	batch   int
	restore int // at this step all rows move through a snapshot into another handle
}

// play plays the script in a variant and records each row under its number in the script.
func play(t *testing.T, id, mode, view string, v variant) record {
	t.Helper()
	fields := []wire.Pair{
		field("n",
			v.n), field("autoreset", mode), field("obs", view), field("info", "all"), field("invalid", "penalty"), field("recv",
			"any"),
	}
	if v.batch > 0 {
		fields = append(fields, field("batch", v.batch))
	}
	fresh := func() *driver {
		d := newDriver(t, toys(nil))
		d.lim.Workers = v.workers
		d.open(id, fields...)
		return d
	}
	d := fresh()
	rec := make(record, v.n)
	m := d.do(wire.OpReset, field("seed", detSeed+v.first))
	rec.note(m, idsOf(m, v.n))
	parts := max(v.split, 1)
	for k := range detSteps {
		if k == v.restore && k > 0 {
			blob := d.do(wire.OpSnapshot).Get("blob")
			d = fresh()
			d.do(wire.OpRestore, field("blob", blob))
		}
		var waiting int
		for part := range parts {
			var rows []int
			var a []int64
			for i := v.n - 1; i >= 0; i-- { // the order does not matter
				if i%parts == part {
					rows, a = append(rows, i), append(a, script(id, i+v.first, k))
				}
			}
			if len(rows) == 0 {
				continue
			}
			op := wire.OpStep
			if v.send {
				op = wire.OpSend
				waiting += len(rows)
			}
			ask := []wire.Pair{field("a", i64s(a...))}
			if parts > 1 || v.send {
				ask = append(ask, field("ids", rows))
			} else {
				slices.Reverse(a)
				ask = []wire.Pair{field("a", i64s(a...))}
			}
			m := d.do(op, ask...)
			if !v.send {
				rec.note(m, idsOf(m, v.n))
			}
		}
		for waiting > 0 {
			m := d.do(wire.OpRecv)
			rows := idsOf(m, v.n)
			waiting -= len(rows)
			rec.note(m, rows)
		}
	}
	out := make(record, detRows)
	for i := range rec {
		if s := i + v.first; s < detRows {
			out[s] = rec[i]
		}
	}
	return out
}

func TestARowsBytesDependOnItselfAlone(t *testing.T) {
	for _, id := range []string{"Toy-v3", "InvalidAction-v1"} {
		for _, mode := range []string{"next_step", "same_step"} {
			for _, view := range []string{"dict", "flat"} {
				want := play(t, id, mode, view, variant{n: detRows, workers: 1})
				for i, r := range want {
					if len(r) != detSteps+1 || len(r[1]) < 100 {
						t.Fatalf("row %d has said %d things, want %d", i, len(r), detSteps+1)
					}
				}
				many := 64
				if id == "Toy-v3" && mode == "same_step" && view == "dict" && !testing.Short() {
					many = 1024
				}
				variants := []variant{
					{name: "many rows, 8 workers", n: many, workers: 8},
					{name: "2 workers", n: detRows, workers: 2},
					{name: "workers as the server likes", n: detRows},
					{name: "in two requests", n: detRows, workers: 1, split: 2},
					{name: "one by one", n: detRows, workers: 3, split: detRows},
					{name: "sent", n: detRows, workers: 1, send: true},
					{name: "sent, received in threes", n: detRows, workers: 8, send: true, batch: 3, split: 2},
					{name: "restored in the middle", n: detRows, workers: 2, restore: 3},
					{name: "restored at an end", n: detRows, workers: 1, restore: toyEnd, split: 3},
				}
				for i := range detRows {
					variants = append(variants, variant{name: "alone", n: 1, first: i, workers: 1})
				}
				for _, v := range variants {
					for i, got := range play(t, id, mode, view, v) {
						if got == nil {
							continue // not a row of this variant
						}
						for k := range want[i] {
							if got[k] != want[i][k] {
								t.Fatalf("%s, %s, %s, %s: step %d of row %d is\n%s\nwant\n%s", id, mode, view, v.name, k, i, got[k], want[i][k])
							}
						}
					}
				}
			}
		}
	}
}

// The same requests in the same order give the same frames.
func TestRepliesRepeatThemselves(t *testing.T) {
	frames := func() (all []string) {
		d := newDriver(t, toys(nil))
		d.lim.Workers = 4
		d.open("Toy-v3", field("n", 16), field("info", "all"), field("autoreset", "same_step"))
		all = append(all, string(d.raw))
		d.do(wire.OpReset, field("seed", 3))
		all = append(all, string(d.raw))
		for range 2 * toyEnd {
			d.pass(16, 1)
			all = append(all, string(d.raw))
		}
		d.do(wire.OpSnapshot)
		return append(all, string(d.raw))
	}
	a, b := frames(), frames()
	for k := range a {
		if a[k] != b[k] {
			t.Fatalf("reply %d is\n%q, before\n%q", k, b[k], a[k])
		}
	}
}
