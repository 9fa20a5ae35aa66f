package traces

import "testing"

func TestWordsForWhatIsNotThere(t *testing.T) {
	for word, want := range map[string]struct{ value, name bool }{
		"": {true, true}, "NaN": {true, true}, "nan": {true, true}, "Nan": {true, false}, "None": {true, true},
		"NONE": {true, true}, "NULL": {true, true}, "Null": {true, false},
		"NA": {true, true}, "Na": {true, false}, "na": {true, false}, "n/a": {true, true}, "N/A": {true, true},
		"<NA>": {true, true}, "<na>": {true, true}, "#N/A": {true, true},
		`\N`: {true, true}, "-": {true, true}, "--": {true, true}, "NaT": {true, true}, "nil": {true, true},
		"Nil": {true, false}, "unknown": {true, false}, "Unknown": {true, false},
		"(null)": {true, true}, "undefined": {true, true}, "-nan": {true, true},
		"0": {}, "-1": {}, "n": {}, "none at all": {}, "nano": {}, "<a>": {}, "#1": {}, "---": {}, "(none": {},
	} {
		if v, n := NotGiven([]byte(word)), NoName([]byte(word)); v != want.value || n != want.name {
			t.Errorf("%q: %v, %v", word, v, n)
		}
	}
	b := []byte("unknown")
	if n := testing.AllocsPerRun(100, func() { NotGiven(b); NoName(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
