package policyname

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWrittenOrdersAreTakenApart(t *testing.T) {
	for text, want := range map[string]Name{
		"key: estimate":                {Base: "key: estimate"},
		" key :estimate +skip ":        {Base: "key: estimate", Admission: "skip"},
		"key: wait + 1+strict+easy":    {Base: "key: wait + 1", Admission: "strict", Backfill: "easy"},
		"key: estimate+easy":           {Base: "key: estimate", Backfill: "easy"},
		"rollout:key: -wait/gpus+skip": {Ahead: Rollout, Base: "key: -wait/gpus", Admission: "skip"},
		"key: estimate@slots":          {Kind: Rule, Base: "key: estimate"},
		"fair = key: user_gpus":        {Base: "fair = key: user_gpus"},
		"hindsight:a-1.b=key:gpus+skip": {Ahead: Hindsight, Base: "a-1.b = key: gpus",
			Admission: "skip"},
		"# mine\n// too\nkey: gpus // GPUs\nstop  if: true": {Base: "key: gpus; stop if: true"},
		"key: gpus > 1 ?\n  wait : estimate\n":              {Base: "key: gpus > 1 ? wait : estimate"},
		"$a: 1; key: gpus ** $a; start if: wait > 5":        {Base: "$a: 1; key: gpus ** $a; start if: wait > 5"},
		`key: user == "a;b: +skip" ? 0 : 1`:                 {Base: `key: user == "a;b: +skip" ? 0 : 1`},
		"key: user == 'http://x' ? 0 : 1":                   {Base: "key: user == 'http://x' ? 0 : 1"},
		"start if: gpus < 2\nkey: max(\n  wait,\n  1)":      {Base: "start if: gpus < 2; key: max( wait, 1)"},
		"key: x.onnx": {Base: "key: x.onnx"},
	} {
		n, err := Parse(text)
		if err != nil || n != want {
			t.Errorf("%q is %+v (%v), want %+v", text, n, err, want)
		}
		if again, err := Parse(n.String()); err != nil || again != n {
			t.Errorf("%q is written as %q, which is %+v (%v)", text, n, again, err)
		}
	}
	for _, text := range []string{"", "sjf", "keys: x", "fifo+skip", "a/b:c", "x = y", "keynote", "1a = key: x",
		"$: 1", "key"} {
		if IsWritten(text) {
			t.Errorf("%q is taken for a written order", text)
		}
	}
}

func TestWrittenOrdersThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"key:":                  "key: is empty",
		"key: ;":                "key: is empty",
		"start if: true":        "it has no key; write key: and an expression",
		"key: wait; key: gpus":  "it has key: twice",
		"$a: 1; $a: 2; key: $a": "it has $a: twice",
		"key: wait; star if: gpus < 2": `a clause begins with "star if"; begin it with key:, start if:, stop if: or $NAME:; ` +
			`did you mean start if?`,
		"key: wait; gpus":                             `a clause begins with "gpus"`,
		"key: gpus+skip+skip":                         "what follows the order is +strict",
		"key: gpus+easy+skip":                         "what follows the order is +strict",
		"key: gpus+skip@slots":                        "a rule has neither admission nor back-filling; leave +skip out",
		"key: \x1b[31m":                               "it contains U+001B, which cannot be printed",
		"key: " + strings.Repeat("1+", MostWritten/2): "it has 4005 bytes; write an order in at most 4000",
	} {
		n, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || n != (Name{}) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q is %+v (%v), want %s", text, n, err, want)
		}
		if !IsWritten(text) {
			t.Errorf("%.60q is not taken for a written order", text)
		}
	}
}

func TestListsAreSplitAtTheCommasBetweenNames(t *testing.T) {
	for list, want := range map[string][]string{
		"":                                {""},
		"fifo":                            {"fifo"},
		"fifo, sjf+skip,":                 {"fifo", "sjf+skip", ""},
		"a(b,c":                           {"a(b", "c"},
		"key: max(wait, 1)/gpus,sjf":      {"key: max(wait, 1)/gpus", "sjf"},
		"sjf,rollout:key: min(gpus,2),x":  {"sjf", "rollout:key: min(gpus,2)", "x"},
		`key: user in ["a,b", 'c,"'],sjf`: {`key: user in ["a,b", 'c,"']`, "sjf"},
		`"key: a == ""x""",fifo`:          {`key: a == "x"`, "fifo"},
		`"a,b",c`:                         {"a,b", "c"},
		`"a"b,c`:                          {`"a"b`, "c"},
		"a = key: max(1, 2); start if: min(1,\n2) > 0,b": {"a = key: max(1, 2); start if: min(1,\n2) > 0", "b"},
	} {
		if got := Split(list); !slices.Equal(got, want) {
			t.Errorf("%q is split into %q, want %q", list, got, want)
		}
	}
}

func TestTablesShowShortNames(t *testing.T) {
	long := "key: " + strings.Repeat("wait + ", 10) + "gpus"
	for text, want := range map[string]string{
		"sjf+skip": "sjf+skip", "runs/a": "runs/a", "key: wait+skip": "key: wait+skip",
		"fair = key: user_gpus+skip": "fair+skip", "rollout:fair = key: user_gpus@slots": "rollout:fair@slots",
		long + "+skip": "expr-bfcf0363+skip", "key: gpus+skip+skip": "key: gpus+skip+skip",
	} {
		if got := Short(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestWrittenOrdersResolve(t *testing.T) {
	r := Resolver{Orders: []string{"fifo"}}
	if _, err := r.Find("key: gpus"); err == nil || !strings.Contains(err.Error(), "cannot play here; use ORDER") {
		t.Errorf("without orders that are written out: %v", err)
	}
	r.Written = func(Name) error { return nil }
	if n, err := r.Find("key: gpus+skip"); err != nil || n.Base != "key: gpus" {
		t.Errorf("it is %+v (%v)", n, err)
	}
	if _, err := r.Find("rollout:key: gpus"); err == nil || !strings.Contains(err.Error(), "leave rollout: out") {
		t.Errorf("where nothing looks ahead: %v", err)
	}
	if !strings.Contains(r.Forms(), "key: EXPRESSION") {
		t.Errorf("the forms are %s", r.Forms())
	}
}

// What is read is written on one line and read as the same order, and a list of such names is split into them.
func TestWrittenOrdersComeBack(t *testing.T) {
	part := rapid.SampledFrom([]string{"wait", "gpus ", "+", " - 1", "(a, b)", "\n", "'x,;:'", `"\""`, "// c\n",
		"?", ":", "==",
		"[1,2]", "`q`"})
	rapid.Check(t, func(t *rapid.T) {
		text := "key: " + strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "parts"), "")
		for _, c := range rapid.SliceOfN(rapid.SampledFrom([]string{"start if", "stop if", "$a"}), 0, 3).Draw(t, "more") {
			text += rapid.SampledFrom([]string{"; ", ";\n", "\n"}).Draw(t, "end") + c + ": gpus"
		}
		n, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(n.String())
		if err != nil || again != n || strings.Contains(n.String(), "\n") {
			t.Fatalf("%q is %+v, then %+v (%v)", text, n, again, err)
		}
		w, err := ReadWritten(n.Base)
		if err != nil || w.String() != n.Base {
			t.Fatalf("%q is written as %q (%v)", n.Base, w, err)
		}
		if got := Split("fifo," + n.String()); got[0] != "fifo" {
			t.Fatalf("%q is split into %q", n.String(), got)
		}
	})
}
