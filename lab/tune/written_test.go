package tune_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/lab/tune"
	"clustergym/simulator/policyname"
)

// From an order that serves the longest jobs first the search finds constants that do not, whatever the number of
// workers. The file of the result is the order that was played.
func TestConstantsOfAWrittenOrderAreFitted(t *testing.T) {
	cfg, dir := run(t), t.TempDir()
	const policy = "mine = $short: -0.5; $still: 3; key: log(estimate) * ($short + 0.3) + $still+skip"
	opt := tune.Options{Settings: small(10), Workers: 2, Policy: policy, Dir: dir}
	opt.Only = []string{"$short"}
	w, r, err := tune.Run(ctx, cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.Best > 0.99*r.Start || *w.Values()[0] <= -0.3 || *w.Values()[1] != 3 || r.At == 0 {
		t.Errorf("%s: %+v", w.Written(), r)
	}
	if !slices.Equal(w.Names(), []string{"$short", "$still"}) || w.File() != "order.expr" {
		t.Errorf("%v in %s", w.Names(), w.File())
	}
	b, err := os.ReadFile(filepath.Join(dir, "order.expr"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := policyname.Parse(string(b)); err != nil || n.String() != w.Written() {
		t.Errorf("the file is\n%s(%v), the result %s", b, err, w.Written())
	}
	played, err := cfg.Rival(w.Written())
	if err != nil || !strings.HasPrefix(played.Name, "mine = $short: ") || !strings.HasSuffix(played.Name, "$still+skip") {
		t.Errorf("it plays as %s (%v)", played.Name, err)
	}
	opt.Dir, opt.Workers = "", 1
	if again, _, err := tune.Run(ctx, cfg, opt); err != nil || again != w {
		t.Errorf("one worker finds %s (%v), two %s", again.Written(), err, w.Written())
	}
	opt.Dir, opt.Policy = dir, "$short: 1; key: gpus ** $short"
	if _, _, err := tune.Run(ctx, cfg, opt); err == nil || !strings.Contains(err.Error(), "a search for another policy") {
		t.Errorf("another order in the folder: %v", err)
	}
	words := strings.Join(w.Compared("order.expr", true), " ")
	if words != "--policies sjf+skip,area+skip --policy-file order.expr" {
		t.Errorf("compared by %s", words)
	}
}

func TestWrittenOrdersThatCannotBeFitted(t *testing.T) {
	cfg := run(t)
	many := "key: gpus"
	for i := range tune.MostConstants + 1 {
		many = "$" + strings.Repeat("a", i+1) + ": 1; " + many
	}
	for policy, want := range map[string]string{
		"key: gpus":             "has no constants to be fitted; want some, as $a in $a: 1; key",
		"$a: 1; key: gpuss":     `"gpuss" is unknown; use gpus`,
		"$a: 1; key: $a@slots":  "acts in slots or looks ahead; want an order over the whole queue",
		"rollout:$a: 1; key:$a": "acts in slots or looks ahead",
		many:                    "has 17 constants; want at most 16",
	} {
		if err := tune.Able(&cfg, policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", policy, err, want)
		}
	}
	opt := tune.Options{Settings: small(1), Policy: "$a: 1; key: gpus ** $a"}
	opt.Only = []string{"$b"}
	if _, _, err := tune.Run(ctx, cfg, opt); err == nil || !strings.Contains(err.Error(), `only: got "$b", want one of $a`) {
		t.Errorf("another constant: %v", err)
	}
}
