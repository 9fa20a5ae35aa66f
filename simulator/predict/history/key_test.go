package history

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// Strings that differ in anything have hashes that differ in about half of their bits.
func TestHashTellsStringsApart(t *testing.T) {
	seen := map[uint64]string{}
	enter := func(s string) {
		h := hash(s)
		if other, ok := seen[h]; ok && other != s {
			t.Fatalf("%q and %q have one hash", other, s)
		}
		seen[h] = s
	}
	for i := range 100_000 {
		enter(fmt.Sprint("user", i))
		enter(fmt.Sprint("a rather long name of a job, number ", i, " of many"))
	}
	for n := range 40 {
		enter(string(make([]byte, n))) // zeros count by their number
	}
	r := rand.New(rand.NewPCG(1, 1))
	differ, n := 0, 0
	for range 2000 {
		b := make([]byte, 1+r.IntN(30))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		h := hash(string(b))
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		differ += bits.OnesCount64(h ^ hash(string(b)))
		n++
	}
	if mean := float64(differ) / float64(n); mean < 31 || mean > 33 {
		t.Errorf("a changed bit changes %.1f bits of 64", mean)
	}
}

// The table finds what was entered, and nothing else, however it grows.
func TestTable(t *testing.T) {
	var tab table
	want := map[uint64]int32{}
	r := rand.New(rand.NewPCG(2, 2))
	for i := range int32(10_000) {
		key := r.Uint64()
		if i%3 == 0 {
			key = uint64(i) // also keys that are no hashes, 0 among them
		}
		if _, ok := tab.find(key); ok {
			t.Fatalf("%d is found before it was entered", key)
		}
		tab.add(key, i)
		want[key] = i
	}
	for key, i := range want {
		if got, ok := tab.find(key); !ok || got != i {
			t.Fatalf("%d is at %d (%t), want %d", key, got, ok, i)
		}
		if _, ok := tab.find(key + 1<<40); ok != (want[key+1<<40] != 0) {
			t.Fatalf("%d is found", key+1<<40)
		}
	}
	if tab.clear(); tab.n != 0 {
		t.Error("keys are left")
	}
	if _, ok := tab.find(0); ok {
		t.Error("a key is found in an empty table")
	}
}
