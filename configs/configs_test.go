package configs

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/fault"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata")

// Every *.bad.yaml is refused with exactly the messages in the .txt file beside it, and leaves the value unchanged.
func TestBadFilesAreRefusedWithAllTheirFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d bad files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			cfg, want := defaults(), defaults()
			if strings.Contains(file, "default.bad") {
				cfg.Rate, want.Rate = 7, 7
			}
			name := filepath.Base(file)
			err := Decode(os.DirFS("testdata"), name, cfg)
			if err == nil {
				t.Fatal("was accepted")
			}
			if !reflect.DeepEqual(cfg, want) {
				t.Errorf("the value was changed to %+v", cfg)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if got := err.Error() + "\n"; got != string(expected) {
				t.Errorf("got\n%s\nwant\n%s", got, expected)
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, name+":") {
					t.Errorf("%q does not begin with the file's name", line)
				}
			}
		})
	}
}

func TestGoodFileIsReadAsWritten(t *testing.T) {
	got := defaults()
	if err := Decode(os.DirFS("testdata"), "anchors.good.yaml", got); err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Name, want.Seed, want.Steps, want.Small, want.Rate, want.Single = "1.10", math.MaxUint64, 1e6, -128, 0.25, 1
	want.On, want.Wait, want.Mode, want.Shelf.Width = true, 90*time.Minute, 1, 7
	base := rack{2, "big", 5 * time.Second}
	want.Racks = []rack{base, {2, "small", 5 * time.Second}, {9, "big", 5 * time.Second}}
	want.Limits, want.Pair, want.Speeds = nil, [2]int{1, 2}, map[string]float64{"V100": 2.5}
	want.Groups = map[string]rack{"east": base}
	want.Waits, want.Untaged = []time.Duration{0, 250 * time.Millisecond}, 1000
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestEmptyDocumentsAreTheDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "---\n# c\n...\n", "null\n", "{}\n", "\ufeff"} {
		cfg := defaults()
		if err := DecodeBytes("x.yaml", []byte(text), cfg); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if !reflect.DeepEqual(cfg, defaults()) {
			t.Errorf("%q changed the defaults", text)
		}
	}
}

// Whatever stands between them, a document behind another is not ignored.
func TestASecondDocumentIsRefused(t *testing.T) {
	for text, line := range map[string]int{"a: 1\n---\nb: 2\n": 3, "---\na: 1\n...\n---\nb: 2\n": 5,
		"a: 1\n---\n---\nb: 2\n": 4, "a: 1\n---\n# nothing\n---\nnull\n---\n- 2\n": 7, "---\n---\nb: 2\n": 3,
		"{\"a\": 1}\n---\n{\"b\": 2}\n": 3} {
		_, err := parse([]byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Line != line || e.Err.Error() != "got a second document, want one in a file" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"a: 1\n---\n", "a: 1\n...\n", "---\na: 1\n---\n# the end\n", "a: 1\n---\n---\n"} {
		if doc, err := parse([]byte(text)); err != nil || doc == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"{\"a\": 1}{\"b\": 2}", "{\"a\": 1}\n{\"b\": 2}\n", "{\"a\": 1}\n}"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestDefaultsAreNotSharedWithWhatIsDecoded(t *testing.T) {
	base := defaults()
	cfg := *base
	if err := DecodeBytes("x.yaml", []byte("limits: [9]\nspeeds: {P100: 3}\nracks: [{count: 8}]"), &cfg); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(base, defaults()) {
		t.Errorf("decoding into a copy changed the original: %+v", base)
	}
}

func TestHostileDocumentsEndSoon(t *testing.T) {
	var levels strings.Builder
	levels.WriteString("a: &a0 {count: 1, x: 1, delay: 3}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&levels, "a%d: &a%d {<<: [*a%d, *a%d], y: 2}\n", i, i, i-1, i-1)
	}
	for what, text := range map[string]string{
		"merge keys that double":       levels.String() + "racks: [*a29, *a29]\n",
		"merge keys that meet":         "train: &t\n  <<: [*t, *t, *t]\n",
		"lists that hold themselves":   "racks: &r [*r, *r]\nnames: &n [*n, *n]\n",
		"many faults in many elements": "racks: [" + strings.Repeat("{x: 1, count: y}, ", 100_000) + "]\n",
		"very deep":                    "racks: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
	} {
		done := make(chan error, 1)
		go func() { done <- DecodeBytes("x.yaml", []byte(text), defaults()) }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: accepted", what)
			} else if n := len(leaves(err)); n > maxFaults+10 {
				t.Errorf("%s: %d faults", what, n)
			}
		case <-time.After(time.Minute): // without the bound it would take days
			t.Fatalf("%s: takes too long", what)
		}
	}
}

func TestMissingFileIsErrNotExist(t *testing.T) {
	if err := Decode(fstest.MapFS{}, "no.yaml", defaults()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestFaultsKeepLineAndKey(t *testing.T) {
	err := DecodeBytes("x.yaml", []byte("steps: 1\ntrain:\n  gamma: 3\n"), defaults())
	var e *Error
	if !errors.As(err, &e) || e.File != "x.yaml" || e.Line != 3 {
		t.Fatalf("error %#v", err)
	}
	if all := fault.All(err); len(all) != 1 || all[0].Key != "train.gamma" {
		t.Errorf("faults %v", all)
	}
}

func TestOnlyPointersToStructsAreFilled(t *testing.T) {
	if err := DecodeBytes("x.yaml", nil, byValue{}); err == nil {
		t.Error("a struct by value was accepted")
	}
	if err := DecodeBytes("x.yaml", nil, (*shop)(nil)); err == nil {
		t.Error("a nil pointer was accepted")
	}
}

type byValue struct{}

func (byValue) Validate() error { return nil }

func TestSet(t *testing.T) {
	for _, c := range []struct {
		set  string
		want func(*shop)
	}{
		{"steps=3", func(s *shop) { s.Steps = 3 }},
		{"steps=1e3", func(s *shop) { s.Steps = 1000 }},
		{"train.gamma=0.5", func(s *shop) { s.Train.Gamma = 0.5 }},
		{"train={gamma: 0.5, inner: {depth: 2}}", func(s *shop) { s.Train.Gamma, s.Train.Inner.Depth = 0.5, 2 }},
		{"wait=2m", func(s *shop) { s.Wait = 2 * time.Minute }},
		{"mode=slow", func(s *shop) { s.Mode = 1 }},
		{"width=8", func(s *shop) { s.Shelf.Width = 8 }},
		{"limits[1]=9", func(s *shop) { s.Limits = []int{1, 9} }},
		{"limits.0=9", func(s *shop) { s.Limits = []int{9, 2} }},
		{"limits=[4]", func(s *shop) { s.Limits = []int{4} }},
		{"limits+=4", func(s *shop) { s.Limits = []int{1, 2, 4} }},
		{"limits+=[4, 5]", func(s *shop) { s.Limits = []int{1, 2, 4, 5} }},
		{"names += a=b", func(s *shop) { s.Names = append(s.Names, "a=b") }},
		{"racks[0].count=7", func(s *shop) { s.Racks = []rack{{Count: 7}} }},
		{"racks=[{count: 2}, {count: 3}]", func(s *shop) { s.Racks = []rack{{Count: 2}, {Count: 3}} }},
		{"speeds.V100=2", func(s *shop) { s.Speeds = map[string]float64{"P100": 1, "V100": 2} }},
		{"groups.east.count=2", func(s *shop) { s.Groups = map[string]rack{"east": {Count: 2}} }},
		{"name=a: b", func(s *shop) { s.Name = "a: b" }},
		{"name=x=y", func(s *shop) { s.Name = "x=y" }},
		{"name=*odd", func(s *shop) { s.Name = "*odd" }},
		{"name=007", func(s *shop) { s.Name = "007" }},
		{"name=", func(s *shop) { s.Name = "" }},
		{"names=[]", func(s *shop) { s.Names = nil }},
		{"pair[1]=4", func(s *shop) { s.Pair[1] = 4 }},
	} {
		base := defaults()
		got := *base
		if err := Set(&got, c.set); err != nil {
			t.Errorf("%s: %v", c.set, err)
			continue
		}
		want := defaults()
		c.want(want)
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("%s: got %+v, want %+v", c.set, got, *want)
		}
		if !reflect.DeepEqual(base, defaults()) {
			t.Errorf("%s changed what the configuration was copied from", c.set)
		}
	}
}

func TestSetRefusesInOneSentence(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"steps", `got "steps", want KEY.PATH=VALUE`},
		{"=3", `got "=3", want KEY.PATH=VALUE`},
		{"stpes=3", "stpes: unknown key; did you mean steps?"},
		{"train.gama=3", "train.gama: unknown key; did you mean gamma?"},
		{"train.inner.gamma=3", "train.inner.gamma: unknown key; known are depth"},
		{"depth=3", "depth: unknown key; did you mean train.inner.depth?"},
		{"steps=many", `steps: got "many", want a whole number`},
		{"steps=", "steps: got nothing, want a whole number"},
		{"steps=[", `steps: got "[", want a YAML value`},
		{"steps.x=1", "steps: is a single value and has no key x"},
		{"train=", "train: got nothing, want keys and values"},
		{"train=3", "train: got 3, want keys and values"},
		{"limits[2]=1", "limits[2]: there is no such element; limits has 2"},
		{"limits[-1]=1", "limits[-1]: there is no such element; limits has 2"},
		{"limits.x=1", `limits: "x" is no index into a list`},
		{"limits[x]=1", `got the path "limits[x]", want names and indices as racks[0].count`},
		{"limits[0=1", `got the path "limits[0", want names and indices as racks[0].count`},
		{"train..gamma=1", `got the path "train..gamma", want names and indices as racks[0].count`},
		{"steps+=3", "steps: is no list, to which += adds; want steps=VALUE"},
		{"limits+=many", `limits[2]: got "many", want a whole number`},
		{"limits+=[4, many]", `limits[1]: got "many", want a whole number`},
		{"mode=medium", `mode: got "medium", want fast or slow`},
		{"small=300", "small: got 300, want a whole number from -128 to 127"},
		{"Secret=1",
			"Secret: unknown key; known are name, seed, steps, small, rate, single, on, wait, mode, train, width, racks, limits, names, pair, speeds, groups, waits, untaged"},
	} {
		cfg := defaults()
		err := Set(cfg, c.set)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.set, err, c.want)
		}
		if !reflect.DeepEqual(cfg, defaults()) {
			t.Errorf("%s: the error changed the value", c.set)
		}
	}
}

// What Encode writes decodes to the same value, for any value.
func TestEncodedConfigurationsDecodeToThemselves(t *testing.T) {
	duration := rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
	racks := rapid.Custom(func(t *rapid.T) rack {
		return rack{rapid.IntRange(1, 9).Draw(t, "count"), rapid.String().Draw(t, "label"), duration.Draw(t, "delay")}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := defaults()
		want.Name = rapid.StringN(1, -1, -1).Draw(t, "name")
		want.Seed = rapid.Uint64().Draw(t, "seed")
		want.Steps = rapid.IntRange(1, math.MaxInt).Draw(t, "steps")
		want.Small = rapid.Int8().Draw(t, "small")
		want.Rate = rapid.Float64Range(0, 1).Draw(t, "rate")
		want.Single = rapid.Float32().Draw(t, "single")
		want.On = rapid.Bool().Draw(t, "on")
		want.Wait = time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "wait"))
		want.Mode = mode(rapid.IntRange(0, 1).Draw(t, "mode"))
		want.Train.Gamma = rapid.Float64Range(1e-300, 1).Draw(t, "gamma")
		want.Racks = nilled(rapid.SliceOf(racks).Draw(t, "racks"))
		want.Names = nilled(rapid.SliceOf(rapid.String()).Draw(t, "names"))
		want.Limits = nilled(rapid.SliceOf(rapid.Int()).Draw(t, "limits"))
		want.Waits = nilled(rapid.SliceOf(duration).Draw(t, "waits"))
		want.Speeds = rapid.MapOf(rapid.String(), rapid.Float64Range(1e-3, 1e300)).Draw(t, "speeds")
		want.Groups = rapid.MapOf(rapid.String(), racks).Draw(t, "groups")
		if len(want.Speeds) == 0 {
			want.Speeds = nil
		}
		if len(want.Groups) == 0 {
			want.Groups = nil
		}
		if want.Name == "closed" {
			want.Name = "open"
		}
		text, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Encode(want)
		if err != nil || string(again) != string(text) {
			t.Fatalf("the second encoding differs, error %v", err)
		}
		got := defaults()
		if err := DecodeBytes("x.yaml", text, got); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v\nfrom\n%s", got, want, text)
		}
	})
}

func nilled[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

func TestEncodeKeepsTheOrderOfFields(t *testing.T) {
	text, err := Encode(defaults())
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	names, _ := fields(reflect.ValueOf(shop{}), false)
	for _, name := range names {
		i := strings.Index("\n"+strings.ReplaceAll(string(text), `"`, ""), "\n"+name+":")
		if i <= at {
			t.Errorf("%s stands at %d, after a key at %d, in\n%s", name, i, at, text)
		}
		at = i
	}
}

func TestEncodeOfOddities(t *testing.T) {
	five := 5
	for _, c := range []struct {
		what string
		cfg  any
		want string // "" = an error
	}{
		{"omitempty", rack{Count: 1}, "count: 1\ndelay: 0s\n"},
		{"a text that looks like a number", struct{ A string }{"1e3"}, "a: \"1e3\"\n"},
		{"a text that looks like nothing", struct{ A string }{""}, "a: \"\"\n"},
		{"a text of two lines", struct{ A string }{"\tx\n"}, "a: \"\\tx\\n\"\n"},
		{"bytes that are no text", struct{ A string }{"\xff"}, "a: !!binary /w==\n"},
		{"flow", struct {
			A []int `yaml:"a,flow"`
		}{[]int{1, 2}}, "a: [1, 2]\n"},
		{"pointers", struct{ A, B *int }{&five, nil}, "a: 5\nb: null\n"},
		{"anything", struct{ A any }{map[string]any{"y": 1, "x": true}}, "a:\n  x: true\n  y: 1\n"},
		{"durations in anything", struct{ A []any }{[]any{time.Second}}, "a:\n  - 1s\n"},
		{"a channel", struct{ A chan int }{}, ""},
		{"a map by number", struct{ A map[int]int }{map[int]int{1: 1}}, ""},
	} {
		got, err := Encode(c.cfg)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, error %v, want %q", c.what, got, err, c.want)
		}
	}
}

// Presets cannot be decoded here, because this package knows no configuration, but they can be parsed as YAML.
func TestPresetsAreSingleDocuments(t *testing.T) {
	n := 0
	err := fs.WalkDir(Presets, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		data, err := fs.ReadFile(Presets, p)
		if err == nil {
			_, err = parse(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Errorf("%d presets, error %v", n, err)
	}
}

func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := defaults()
		if err := DecodeBytes("x.yaml", data, cfg); err != nil {
			if !reflect.DeepEqual(cfg, defaults()) {
				t.Error("the error changed the value")
			}
			return
		}
		text, err := Encode(cfg)
		if err != nil {
			t.Fatal(err)
		}
		again := defaults()
		if err := DecodeBytes("x.yaml", text, again); err != nil {
			t.Errorf("what was read is refused when written: %v\n%s", err, text)
		}
	})
}

// usual is a text whose default is left out.
type usual string

func (u usual) IsZero() bool { return u == "usual" }

// Whole writes defaults that have a text, and leaves out what is empty.
func TestWholeWritesDefaults(t *testing.T) {
	type inner struct {
		Mode usual    `yaml:"mode,omitempty"`
		List []string `yaml:"list,omitempty"`
		None string   `yaml:"none,omitempty"`
	}
	cfg := struct {
		Name  string `yaml:"name"`
		Inner inner  `yaml:"inner"`
	}{"x", inner{Mode: "usual"}}
	for _, c := range []struct {
		what       any
		yaml, json string
	}{
		{cfg, "name: x\ninner: {}\n", `{"name":"x","inner":{}}`},
		{Whole{Config: cfg}, "name: x\ninner:\n  mode: usual\n", `{"name":"x","inner":{"mode":"usual"}}`},
		{Whole{Config: &cfg}, "name: x\ninner:\n  mode: usual\n", `{"name":"x","inner":{"mode":"usual"}}`},
	} {
		text, err := Encode(c.what)
		if err != nil || string(text) != c.yaml {
			t.Errorf("%T: got %q, %v, want %q", c.what, text, err, c.yaml)
		}
		doc, err := JSON(c.what)
		if err != nil || string(doc) != c.json {
			t.Errorf("%T: got %s, %v, want %s", c.what, doc, err, c.json)
		}
	}
}
