package snap

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// state is what the tests save.
type state struct {
	a    uint64
	f    float64
	yes  bool
	b    []byte
	i    int64
	k    int8
	list []int32
}

func (s *state) code(c *Codec) {
	c.U64(&s.a)
	c.F64(&s.f)
	c.Bool(&s.yes)
	c.Bytes(&s.b)
	Ints(c, &s.i)
	Ints(c, &s.k)
	List(c, &s.list, 8, func(_ int, v *int32) { Ints(c, v) })
}

func TestACodecReadsWhatItHasAppended(t *testing.T) {
	s := state{7, -0.5, true, []byte("abc"), -1 << 40, -3, []int32{1, -2}}
	c := Appender(Begin(nil, magic))
	s.code(c)
	want := U64(Begin(nil, magic), 7)
	want = Bytes(Bool(F64(want, -0.5), true), []byte("abc"))
	want = Int(Int(Int(want, -1<<40), -3), 2)
	want = Int(Int(want, 1), -2)
	if !bytes.Equal(c.Appended(), want) {
		t.Fatalf("appended %x, want %x", c.Appended(), want)
	}
	r, err := Open(Seal(want, 0), magic)
	if err != nil {
		t.Fatal(err)
	}
	var got state
	got.code(r.Codec())
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	if got.a != 7 || got.f != -0.5 || !got.yes || string(got.b) != "abc" || got.i != -1<<40 || got.k != -3 ||
		!slices.Equal(got.list, s.list) {
		t.Errorf("read %+v", got)
	}
}

func TestANumberThatItsTypeCannotHoldIsAFailure(t *testing.T) {
	for _, n := range []int{128, -129, 1 << 40} {
		r, err := Open(Seal(Int(Begin(nil, magic), n), 0), magic)
		if err != nil {
			t.Fatal(err)
		}
		var k int8
		Ints(r.Codec(), &k)
		if err := r.Done(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d as an int8: error %v", n, err)
		}
	}
}
