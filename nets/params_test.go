package nets

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func sample() *Params {
	p := NewParams([]View{{Name: "trunk.weight", Shape: []int{2, 3}}, {Name: "bias", Shape: []int{3}}, {Name: "scale"}})
	for i := range p.Data {
		p.Data[i] = float32(i) - 2.5
	}
	return p
}

func TestViewsCoverTheDataInOrder(t *testing.T) {
	p := sample()
	if len(p.Data) != 10 {
		t.Fatalf("%d elements, want 10", len(p.Data))
	}
	at := 0
	for _, v := range p.Views {
		if len(v.Data) != v.Size() || &v.Data[0] != &p.Data[at] || cap(v.Data) != len(v.Data) {
			t.Errorf("view %q does not lie at %d", v.Name, at)
		}
		at += len(v.Data)
	}
	if v := p.View("bias"); v == nil || v.Data[0] != 3.5 {
		t.Errorf("View(bias) = %v", v)
	}
	if v := p.View("nothing"); v != nil {
		t.Errorf("View(nothing) = %v", v)
	}
}

func TestCopyAndLerp(t *testing.T) {
	p, q := sample(), sample()
	for i := range q.Data {
		q.Data[i] = 10
	}
	if err := p.Lerp(q, 0.25); err != nil || p.Data[0] != 0.75*-2.5+2.5 {
		t.Errorf("Lerp: %v, %v", p.Data[0], err)
	}
	p.Data[0] = float32(math.NaN())
	if err := p.Lerp(q, 1); err != nil || p.Data[0] != 10 {
		t.Errorf("Lerp by 1: %v, %v", p.Data[0], err)
	}
	c := q.Clone()
	c.Data[0] = 1
	if q.Data[0] != 10 {
		t.Error("a clone shares memory")
	}
	if err := p.CopyFrom(c); err != nil || p.Data[0] != 1 || p.Data[9] != 10 {
		t.Errorf("CopyFrom: %v, %v", p.Data, err)
	}
	if l := p.Like(); l.Data[3] != 0 || p.Match(l) != nil {
		t.Error("Like does not match, or is not zero")
	}
}

func TestDifferentLayoutsAreRefusedAndNamed(t *testing.T) {
	for _, c := range []struct {
		views []View
		want  string
	}{
		{[]View{{Name: "trunk.weight", Shape: []int{2, 3}}}, "1 tensors, want 3"},
		{[]View{{Name: "trunk.weight", Shape: []int{3, 2}}, {Name: "bias", Shape: []int{3}}, {Name: "scale"}},
			`"trunk.weight" has shape [3 2], want [2 3]`},
		{[]View{{Name: "trunk.weight", Shape: []int{2, 3}}, {Name: "bios", Shape: []int{3}}, {Name: "scale"}},
			`"bios", want "bias"`},
	} {
		p, q := sample(), NewParams(c.views)
		for name, err := range map[string]error{"CopyFrom": p.CopyFrom(q), "Lerp": p.Lerp(q, 1)} {
			if !errors.Is(err, ErrShape) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want ErrShape with %q", name, err, c.want)
			}
		}
		if p.Data[0] != -2.5 {
			t.Error("parameters changed all the same")
		}
	}
}

func TestBadListsPanic(t *testing.T) {
	for _, views := range [][]View{{{Name: "a", Shape: []int{1}}, {Name: "a", Shape: []int{2}}},
		{{Name: "a", Shape: []int{0}}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: no panic", views)
				}
			}()
			NewParams(views)
		}()
	}
}

func TestNotFiniteNamesTheFirst(t *testing.T) {
	p := NewParams([]View{{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{1, 2}}})
	if got, want := p.NotFinite(), "all of its 4 numbers together overflows"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.Data[3] = float32(math.Inf(-1))
	if got, want := p.NotFinite(), "b holds -Inf"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.Data[1] = float32(math.NaN())
	if got, want := p.NotFinite(), "a holds NaN"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Fingerprints are in checkpoints: the same network has the same one for ever.
func TestFingerprintStays(t *testing.T) {
	views := []View{{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{1, 2}}}
	if got, want := Fingerprint(views), "2d44bd4ab2d68625"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	views[1].Shape = []int{2, 1}
	if Fingerprint(views) == "2d44bd4ab2d68625" {
		t.Error("another shape has the same fingerprint")
	}
}
