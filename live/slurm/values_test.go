package slurm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLists(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "gpu": "1", "gpu:8": "8", "gpu:a100:4": "4 a100", "gpu:a100:4(S:0-1)": "4 a100", "gres:gpu:2": "2",
		"gres/gpu:a100:4": "4 a100", "gres/gpu=4": "4",
		"gpu:a100:2(IDX:0,4)": "2 a100 [0 4]", "gpu:a100:1(IDX:0),gpu:v100:2(IDX:4-5)": "1 a100 [0], 2 v100 [4 5]",
		"gpu(IDX:0-3)": "1", "craynetwork:1,gpu:2": "2",
		"shard:4,mps:100": "", "gpu:1g.5gb:3": "3 1g.5gb", "gpu:1g.5gb": "1 1g.5gb", "gpu:a100:0": "0 a100",
		"gpu:a100:2(IDX:N/A)": "2 a100", "gpu:a100:9999999999999": "!", "gpu:-1": "!",
	} {
		all, err := parseGres(list)
		var parts []string
		for _, g := range all {
			p := fmt.Sprint(g.n)
			if g.kind != "" {
				p += " " + g.kind
			}
			if g.index != nil {
				p += " " + fmt.Sprint(g.index)
			}
			parts = append(parts, p)
		}
		if text := strings.Join(parts, ", "); (err != nil) != (want == "!") || err == nil && text != want {
			t.Errorf("%q: %q, %v; want %q", list, text, err, want)
		}
	}
}

func TestNumbersOfAllReleases(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5 true false", "null": "0 false false", "4294967294": "0 false false", "4294967295": "0 false true",
		`"7"`: "7 true false", `""`: "0 false false", "1.5": "1 true false",
		`{"set": true, "infinite": false, "number": 60}`: "60 true false",
		`{"set": false, "infinite": true, "number": 0}`:  "0 false true",
		`{"set": false, "infinite": false, "number": 9}`: "0 false false", `{"number": 3}`: "3 true false",
		`{"set": true, "number": 1e3}`: "1000 true false",
		"18446744073709551614":         "0 false false", "18446744073709551615": "0 false true",
		`{"set": true, "infinite": false, "number": 18446744073709551614}`: "0 false false",
		`"x"`: "!", `[]`: "!", `1e99`: "!", `true`: "!",
	} {
		var n number
		err := json.Unmarshal([]byte(text), &n)
		if got := fmt.Sprint(n.V, " ", n.Set, " ", n.Infinite); (err != nil) != (want == "!") ||
			err == nil && strings.ReplaceAll(got, "  ", " ") != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string][]string{`"A"`: {"A"}, `["A", "B"]`: {"A", "B"}, "null": nil, `""`: nil, "[]": {}} {
		var w words
		if err := json.Unmarshal([]byte(text), &w); err != nil || !slices.Equal(w, want) {
			t.Errorf("%s: %v, %v", text, w, err)
		}
	}
}

func TestASecondDocumentIsNoJSONOfSlurm(t *testing.T) {
	const one = `{"jobs": [{"job_id": 5, "job_state": ["PENDING"]}]}`
	for text, good := range map[string]bool{one: true, one + "\n\n": true, one + one: false, one + "\n" + one: false,
		one + "}": false, one + "rubbish": false} {
		n := 0
		_, err := readJobs(strings.NewReader(text), func(*record) error { n++; return nil })
		if (err == nil) != good || !good && !strings.Contains(err.Error(), "something follows the document") || n != 1 {
			t.Errorf("%s: %v, %d jobs", text, err, n)
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{"64G": 64 << 30, "512": 512 << 20, "1.5T": 3 << 39, "x": 0, "": 0, "-1G": 0,
		"9e9P": 0} {
		if got := parseMem(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]time.Duration{"01:00:00": time.Hour, "2-00:00:30": 48*time.Hour + 30*time.Second,
		"UNLIMITED": 0, "Partition_Limit": 0, "": 0, "x:y": 0} {
		if got := parseLimit(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string][2]int{"slurm 23.11.4": {23, 11}, "slurm-wlm 22.05.8": {22, 5},
		"25.05.0-rc1": {25, 5}, "": {0, 0}, "slurm": {0, 0}} {
		if a, b := release(text); a != want[0] || b != want[1] {
			t.Errorf("%q: %d.%d", text, a, b)
		}
	}
	c := New(nil, Options{Weight: 1000})
	if c.site(0) != 0 || c.site(1<<20) != 1000 || c.score(1000) != 1<<20 || c.score(5000) != 1<<20 || c.score(-3) != 0 {
		t.Error("scores are scaled wrongly")
	}
}
