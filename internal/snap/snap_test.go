package snap

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

const magic = "TEST1"

func sample() []byte {
	b := Begin([]byte("before"), magic)
	b = U64(b, math.MaxUint64)
	b = Int(b, -7)
	b = F64(b, math.Copysign(0, -1))
	b = Bool(b, true)
	b = Bool(b, false)
	b = Bytes(b, []byte{1, 2, 3})
	b = String(b, "naïve")
	return Seal(b, len("before"))[len("before"):]
}

func TestReadsBackWhatWasWritten(t *testing.T) {
	r, err := Open(sample(), magic)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.U64(); v != math.MaxUint64 {
		t.Errorf("U64 = %d", v)
	}
	if v := r.Int(); v != -7 {
		t.Errorf("Int = %d", v)
	}
	if v := r.F64(); v != 0 || !math.Signbit(v) {
		t.Errorf("F64 = %v, want -0", v)
	}
	if !r.Bool() || r.Bool() {
		t.Error("Bools are not true, false")
	}
	if v := r.Bytes(); !bytes.Equal(v, []byte{1, 2, 3}) {
		t.Errorf("Bytes = %v", v)
	}
	if v := r.String(); v != "naïve" {
		t.Errorf("String = %q", v)
	}
	if err := r.Done(); err != nil {
		t.Error(err)
	}
}

func TestEveryFlippedBitAndEveryCutIsNoticed(t *testing.T) {
	good := sample()
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if _, err := Open(b, magic); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("bit %d of byte %d flipped: error %v", bit, i, err)
			}
		}
		if _, err := Open(good[:i], magic); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: error %v", i, err)
		}
	}
}

func TestHostileNumbersAllocateNothingAndFail(t *testing.T) {
	huge := Seal(U64(Begin(nil, magic), 1<<60), 0)
	for name, read := range map[string]func(*Reader){
		"count": func(r *Reader) { _ = make([]uint64, r.Count(8)) },
		"bytes": func(r *Reader) { r.Bytes() },
		"bool":  func(r *Reader) { r.take(7); r.b = []byte{2}; r.Bool() },
		"short": func(r *Reader) { r.U64(); r.U64() },
		"long":  func(*Reader) {},
	} {
		r, err := Open(huge, magic)
		if err != nil {
			t.Fatal(err)
		}
		read(&r)
		if err := r.Done(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: Done = %v, want ErrCorrupt", name, err)
		}
	}
	negative, _ := Open(Seal(Int(Begin(nil, magic), -1), 0), magic)
	if n := negative.Count(0); n != 0 || negative.Done() == nil {
		t.Errorf("a negative count reads as %d, error %v", n, negative.Done())
	}
}
