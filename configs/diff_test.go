package configs

import (
	"strings"
	"testing"
)

func TestDiffNamesWhatIsNotTheSame(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{nil, ""},
		{[]string{"steps=7"}, "steps: 10 → 7"},
		{[]string{"train.gamma=0.5", "train.inner.depth=9"}, "train.gamma: 0.9 → 0.5\ntrain.inner.depth: 1 → 9"},
		{[]string{"limits[1]=9"}, "limits[1]: 2 → 9"},
		{[]string{"limits+=3"}, "limits[2]: nothing → 3"},
		{[]string{"limits=[1]"}, "limits[1]: 2 → nothing"},
		{[]string{"limits=[5]"}, "limits: [1, 2] → [5]"},
		{[]string{"racks[0].count=7"}, "racks[0].count: 1 → 7"},
		{[]string{"speeds.V100=2"}, "speeds.V100: nothing → 2"},
		{[]string{`name=a "b"`}, `name: x → a "b"`},
	} {
		from, to := defaults(), defaults()
		for _, cfg := range []*shop{from, to} {
			cfg.Name, cfg.Steps, cfg.Train.Gamma, cfg.Train.Inner.Depth, cfg.Racks = "x", 10, 0.9, 1, []rack{{Count: 1}}
		}
		for _, s := range c.sets {
			if err := Set(to, s); err != nil {
				t.Fatal(err)
			}
		}
		changes, err := Diff(from, to)
		var got []string
		for _, ch := range changes {
			got = append(got, ch.String())
		}
		if err != nil || strings.Join(got, "\n") != c.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", c.sets, err, strings.Join(got, "\n"), c.want)
		}
	}
}

// What Restate writes is a file again, and gives the same values.
func TestRestateKeepsTheWordsOfAFile(t *testing.T) {
	const file = `# What it is.
# In two lines.
one:
  steps: 3 # of a day
  limits: &l [1, 2] # each
  # Above.
  racks:
    - {count: 4}
two:
  steps: 1e3
  limits: *l
  wait: 5m
`
	for _, c := range []struct{ section, want string }{
		{"one", "steps: 3 # of a day\n"}, {"one", "racks:\n  - {count: 4}\n"}, {"two", "steps: 1e3 # of a day\n"},
		{"two", "limits: [1, 2] # each\n"}, {"two", "wait: 5m\n"},
	} {
		own := defaults()
		text := file[strings.Index(file, c.section+":\n")+len(c.section)+2:]
		text, _, _ = strings.Cut(text, "two:\n")
		if err := DecodeBytes("x.yaml",
			[]byte(strings.ReplaceAll(strings.ReplaceAll(text, "*l", "[1, 2]"), "\n  ", "\n")[2:]), own); err != nil {
			t.Fatal(err)
		}
		recorded := *own
		out, err := Restate([]byte(file), c.section, map[string][]byte{"train": []byte("{gamma: 0.99} # by another file")},
			&recorded, own)
		if err != nil {
			t.Fatal(err)
		}
		again := defaults()
		if err := DecodeBytes("again.yaml", out, again); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if d, err := Diff(own, again); err != nil || len(d) > 0 {
			t.Errorf("%s: %v %v\n%s", c.section, err, d, out)
		}
		if !strings.HasPrefix(string(out), "# What it is.\n# In two lines.\n") {
			t.Errorf("the first comment is not there:\n%s", out)
		}
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %q is not there:\n%s", c.section, c.want, out)
		}
	}
}
