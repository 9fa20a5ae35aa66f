package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
)

// Of 6 nodes of 2 GPUs, "a" owns 0 and 1, "b" owns 2, and 3 to 5 have no owner. Racks are of three nodes.
func TestPartsByHand(t *testing.T) {
	c := mustNew(t, "", divided())
	if err := errors.Join(c.SetDown(1, true), c.Allocate(&cluster.Request{GPUs: 1, Milli: 1000, VC: 1}, []cluster.GPU{1}),
		c.Allocate(&cluster.Request{GPUs: 2, Milli: 1000, VC: 3}, []cluster.GPU{6, 8})); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		vc, owner             int32
		gpus, free, down, max int
		has                   []int
	}{
		{1, 1, 4, 1, 2, 2, []int{0, 1}},
		{2, 2, 2, 2, 0, 2, []int{2}},
		{0, 0, 6, 4, 0, 2, []int{3, 4, 5}},
	} {
		p := c.Part(x.vc)
		if p.Free() != p.Own() || p.DownGPUs() != p.GPUs()-p.Own() {
			t.Errorf("part %d: of %d GPUs %d are free at first, %d down", x.vc, p.Own(), p.Free(), p.DownGPUs())
		}
		p.CopyFrom(c)
		var has []int
		for n := range p.Nodes() {
			if p.Has(n) {
				has = append(has, n)
			} else if !p.Down(n) {
				t.Errorf("part %d: node %d is up", x.vc, n)
			}
		}
		got := fmt.Sprint(p.Owner(), p.Own(), p.Free(), p.FreeMilli(), p.DownGPUs()-(p.GPUs()-p.Own()), p.MaxNode(), has)
		if want := fmt.Sprint(x.owner, x.gpus, x.free, x.free*1000, x.down, x.max, x.has); got != want {
			t.Errorf("part %d: %s, want %s", x.vc, got, want)
		}
	}
	if p := c.Part(1); p.SetDown(2, false) == nil || p.SetDown(2, true) != nil {
		t.Error("a node outside a part comes up, or must not be down")
	}
}

// A part that copies the whole cluster says the same of every request of its virtual clusters as the whole, also after
// further allocations, and so does a twin that copies the part. Nothing of the rest shows.
func TestPartsFollowTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawDivided(t)
		for i := range spec.VCs {
			spec.VCs[i].Hosts = nil // where some are named, there are no parts
		}
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.VCs) == 0 || c.Pool() {
			return
		}
		var parts, twins []*cluster.Cluster // by domain
		for d := range len(spec.VCs) + 1 {
			parts = append(parts, c.Part(int32(d)))
			twins = append(twins, parts[d].Twin())
		}
		first, err := cluster.NewPlacement("first-fit")
		if err != nil {
			t.Fatal(err)
		}
		type held struct {
			r    cluster.Request
			gpus []cluster.GPU
		}
		var all []held
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			j := drawWork(t)
			if r, ok := c.Request(&j); ok {
				d := 0
				if spec.VCs[r.VC-1].Nodes > 0 {
					d = int(r.VC)
				}
				want, fits := first.Place(c, &r, nil)
				for _, p := range []*cluster.Cluster{parts[d], twins[d]} {
					if got, ok := first.Place(p, &r, nil); ok != fits || p.Fits(&r) != fits || !slices.Equal(got, want) {
						t.Fatalf("%+v: part %d places %v (%v), the whole %v (%v)", r, d, got, ok, want, fits)
					}
				}
				if fits {
					all = append(all, held{r, want})
					for _, k := range []*cluster.Cluster{c, parts[d]} { // the twin copies
						if err := k.Allocate(&r, want); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if len(all) > 0 && rapid.Bool().Draw(t, "release") {
				k := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				c.Release(&all[k].r, all[k].gpus)
				all = slices.Delete(all, k, k+1)
			}
			if n := rapid.IntRange(0, 3*c.Nodes()).Draw(t, "down"); n < c.Nodes() {
				_ = c.SetDown(n, !c.Down(n)) // refused while jobs run there
			}
			free, down := 0, 0
			for d, p := range parts {
				p.CopyFrom(c)
				twins[d].CopyFrom(p)
				for _, k := range []*cluster.Cluster{p, twins[d]} {
					if err := k.CheckInvariants(); err != nil {
						t.Fatal(err)
					}
					if k.FreeMilli() != p.FreeMilli() || k.DownGPUs() != p.DownGPUs() || k.Own() != p.Own() {
						t.Fatalf("part %d and its twin differ: %d and %d thousandths free", d, p.FreeMilli(), k.FreeMilli())
					}
				}
				if d == 0 || spec.VCs[d-1].Nodes > 0 {
					free += p.FreeMilli()
					down += p.DownGPUs() - (p.GPUs() - p.Own())
				}
			}
			if free != c.FreeMilli() || down != c.DownGPUs() {
				t.Fatalf("%d thousandths are free and %d GPUs down in the parts, %d and %d in the whole", free, down, c.FreeMilli(),
					c.DownGPUs())
			}
		}
	})
}
