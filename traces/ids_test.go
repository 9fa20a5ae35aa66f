package traces

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s IDs
		seen := map[string]bool{}
		id := rapid.OneOf(rapid.StringMatching(`0{0,2}[0-9]{0,3}`), rapid.StringMatching(`[a-c0-9]{0,2}`),
			rapid.Custom(func(t *rapid.T) string {
				return strconv.FormatUint(rapid.Uint64Range(0, 1<<50).Draw(t, "n")/rapid.Uint64Range(1, 1<<40).Draw(t, "d"), 10)
			}))
		for range rapid.IntRange(0, 200).Draw(t, "ids") {
			v := id.Draw(t, "id")
			if got := s.Add([]byte(v)); got == seen[v] {
				t.Fatalf("%q: new %v, want %v", v, got, !seen[v])
			}
			seen[v] = true
		}
	})
}

func BenchmarkIDs(b *testing.B) {
	var s IDs
	id, n := make([]byte, 0, 16), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		id = strconv.AppendInt(id[:0], n, 10)
		if !s.Add(id) {
			b.Fatal(n)
		}
		n++
	}
}
