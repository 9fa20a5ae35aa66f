package nets

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
)

// ErrShape is returned when two sets of parameters differ in names, order or shapes.
var ErrShape = errors.New("nets: shape mismatch")

// View is one named parameter: a row-major slice of Params.Data.
type View struct {
	Name  string
	Shape []int
	Data  []float32
}

// Size returns the number of elements, the product of Shape (1 for a scalar).
func (v *View) Size() int {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	return n
}

// Params is one flat buffer with named views, so that target copies, averages and all-reduces are one loop. The views
// cover Data without gaps, in order. Concurrent reads are safe; writes are not.
type Params struct {
	Data  []float32
	Views []View
}

// NewParams allocates zeroed parameters with the names and shapes of shapes, in that order; it ignores their Data.
// Names must be unique and dimensions positive. Anything else is a bug in the code that built the list, and panics.
func NewParams(shapes []View) *Params {
	total := 0
	seen := make(map[string]bool, len(shapes))
	for i := range shapes {
		if seen[shapes[i].Name] {
			panic(fmt.Sprintf("nets: two parameters are called %q", shapes[i].Name))
		}
		seen[shapes[i].Name] = true
		for _, d := range shapes[i].Shape {
			if d <= 0 {
				panic(fmt.Sprintf("nets: parameter %q has shape %v", shapes[i].Name, shapes[i].Shape))
			}
		}
		total += shapes[i].Size()
	}
	p := &Params{Data: make([]float32, total), Views: make([]View, len(shapes))}
	at := 0
	for i := range shapes {
		end := at + shapes[i].Size()
		p.Views[i] = View{Name: shapes[i].Name, Shape: slices.Clone(shapes[i].Shape), Data: p.Data[at:end:end]}
		at = end
	}
	return p
}

// View returns the view called name, or nil. The view belongs to p and sees its changes.
func (p *Params) View(name string) *View {
	for i := range p.Views {
		if p.Views[i].Name == name {
			return &p.Views[i]
		}
	}
	return nil
}

// Like allocates zeroed parameters with p's names and shapes: gradients, moments, target networks.
func (p *Params) Like() *Params { return NewParams(p.Views) }

// Clone allocates a copy of p that shares nothing with it.
func (p *Params) Clone() *Params {
	q := p.Like()
	copy(q.Data, p.Data)
	return q
}

// Zero sets every element to 0.
func (p *Params) Zero() { clear(p.Data) }

// Match returns nil if src has p's names and shapes in p's order. Otherwise the error wraps ErrShape and names the
// first difference.
func (p *Params) Match(src *Params) error {
	if len(p.Views) != len(src.Views) {
		return fmt.Errorf("%w: %d tensors, want %d", ErrShape, len(src.Views), len(p.Views))
	}
	for i := range p.Views {
		a, b := &p.Views[i], &src.Views[i]
		if a.Name != b.Name {
			return fmt.Errorf("%w: tensor %d is %q, want %q", ErrShape, i, b.Name, a.Name)
		}
		if !slices.Equal(a.Shape, b.Shape) {
			return fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrShape, a.Name, b.Shape, a.Shape)
		}
	}
	return nil
}

// CopyFrom sets p to src. It returns ErrShape, and changes nothing, when names or shapes differ.
func (p *Params) CopyFrom(src *Params) error {
	if err := p.Match(src); err != nil {
		return err
	}
	copy(p.Data, src.Data)
	return nil
}

// Lerp sets p to (1-tau)·p + tau·src, the soft update of target networks (Lillicrap et al. 2016, algorithm 1).
// tau 1 copies src exactly and tau 0 changes nothing. It returns ErrShape, and changes nothing, when names or
// shapes differ.
func (p *Params) Lerp(src *Params, tau float32) error {
	if err := p.Match(src); err != nil {
		return err
	}
	if tau == 1 { // exactly, even where p is not finite
		copy(p.Data, src.Data)
		return nil
	}
	d, s := p.Data, src.Data[:len(p.Data)]
	for i, x := range s {
		d[i] = (1-tau)*d[i] + tau*x
	}
	return nil
}

// NotFinite describes the first element of p that is NaN or infinite, as "actor.0.weight holds NaN". If all are finite,
// it is for a p whose sum of squares is not, and says so.
func (p *Params) NotFinite() string {
	for i := range p.Views {
		for _, x := range p.Views[i].Data {
			if x-x != 0 {
				return fmt.Sprintf("%s holds %v", p.Views[i].Name, x)
			}
		}
	}
	return fmt.Sprintf("all of its %d numbers together overflows", len(p.Data))
}

// Fingerprint is a hash of the names and shapes of views, in their order, as 16 hexadecimal digits. Checkpoints keep
// it, so that weights of another network are recognised.
func Fingerprint(views []View) string {
	h := fnv.New64a()
	for _, v := range views {
		_, _ = fmt.Fprintf(h, "%s%v\n", v.Name, v.Shape) // a hash takes everything
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
