package hostlist

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestListsOfNodes(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "g1": "g1", "g[1-3]": "g1 g2 g3", "g[01-03,07],h": "g01 g02 g03 g07 h", "r[1-2]n[8-9]": "r1n8 r1n9 r2n8 r2n9",
		"g[9-10]-ib": "g9-ib g10-ib", "g[1-4,7],h01": "g1 g2 g3 g4 g7 h01", "node-a.example.org": "node-a.example.org",
		"g[1": "!", "g]": "!", "g[3-1]": "!", "g[x]": "!", "a,,b": "!", ",a": "!", "a,": "!", "g[1-99999999999]": "!",
		"g[]": "!", "g[1-]": "!", "g[+1]": "!", "g [1-2]": "!", "a b": "!", "g[1][2][3][4][5][6][7][8][9]": "!",
		"g[1-1000]h[1-1000]": "!", "g[1-100000],h[1-100000]": "!", "g[" + strings.Repeat("0", 300) + "1]": "!",
		strings.Repeat("x", 256): "!", "g[1-2]" + strings.Repeat("x", 254): "!",
		"r[1-100,201-300]n[1-400]": "many",
	} {
		got, err := Expand(list)
		if want == "many" {
			if err != nil || len(got) != 200*400 {
				t.Errorf("%q: %d nodes, %v", list, len(got), err)
			}
			continue
		}
		if text := strings.Join(got, " "); (err != nil) != (want == "!") || err == nil && text != want {
			t.Errorf("%.40q: %q, %v", list, text, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("%.40q: a message of %d bytes", list, len(err.Error()))
		}
	}
	for list, want := range map[string]string{"": "", "g1": "g1", "g1 g10 g2 g9": "g[1-2],g[9-10]",
		"g01 g02 h": "g[01-02],h", "a b3 b5": "a,b3,b5", "g9 g10 g010 g011": "g[9-10],g[010-011]"} {
		if got := Compress(strings.Fields(list)); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
	if got := Compress(strings.Fields("g9 g10 g010 g011")); got != "g[9-10],g[010-011]" {
		t.Errorf("%q", got)
	}
}

func TestListsOfTasks(t *testing.T) {
	for list, want := range map[string]string{
		"5": "[[5 5]] 0 1", "1-3,7%2": "[[1 3] [7 7]] 2 4", "0-6:3": "[[0 0] [3 3] [6 6]] 0 3", "3-1": "!", "x": "!", "": "!",
		"1-3,...": "!", "1%x": "!", "1-5:0": "!", "0-2147483647:2": "!",
	} {
		some, limit, err := ParseTasks(list)
		if text := fmt.Sprint(some, limit, some.Len()); (err != nil) != (want == "!") || err == nil && text != want {
			t.Errorf("%q: %q, %v", list, text, err)
		}
	}
	some, _, _ := ParseTasks("1-3,7")
	if got := slices.Collect(some.All()); !slices.Equal(got, []int64{1, 2, 3, 7}) || !some.Has(7) || some.Has(5) {
		t.Errorf("%v", got)
	}
}

// FuzzExpand checks the bounds of any list, and that a list that is written from the nodes of another names the same.
func FuzzExpand(f *testing.F) {
	for _, list := range []string{"g[01-03,07]-ib,h1", "r[1-2]n[8-9]", "g[1-4,7],h01", "a,,b", "g[", "[1-9][1-9]",
		"g[08-11]"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		all, err := Expand(list)
		if err != nil {
			return
		}
		if len(all) > MaxHosts || (list == "") != (all == nil) {
			t.Fatalf("%d nodes of %q", len(all), list)
		}
		for _, name := range all {
			if name == "" || len(name) > maxName || strings.ContainsAny(name, "[], ") {
				t.Fatalf("%q of %q", name, list)
			}
		}
		if len(all) > 1000 {
			return
		}
		again, err := Expand(Compress(all))
		slices.Sort(all)
		slices.Sort(again)
		if err != nil || !slices.Equal(all, again) {
			t.Fatalf("%q: %q is written %q, which reads %q, %v", list, all, Compress(all), again, err)
		}
	})
}
