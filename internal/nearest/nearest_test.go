package nearest

import "testing"

func TestNameFindsTyposAndNothingElse(t *testing.T) {
	keys := []string{"gamma", "lambda", "rollout", "lr", "anneal_lr"}
	orders := []string{"fifo", "sjf", "srtf", "smallest", "las-2d"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"gama", keys, "gamma"}, {"gmama", keys, "gamma"}, {"GAMMA", keys, "gamma"}, {"lamda", keys, "lambda"},
		{"roll", keys, "rollout"}, {"ROLL", keys, "rollout"}, {"lrr", keys, "lr"}, {"rl", keys, "lr"},
		{"aneal-lr", keys, "anneal_lr"}, {"x", keys, ""}, {"nothing", keys, ""}, {"", keys, ""},

		{"sfj", orders, "sjf"}, {"fifo", orders, "fifo"}, {"small", orders, "smallest"}, {"smalest", orders, "smallest"},
		{"las2d", orders, "las-2d"}, {"priority", orders, ""}, {"x", orders, ""}, {"", orders, ""},

		{"cat", []string{"bat", "rat"}, "bat"},
		{"x", []string{"n"}, ""}, // no letter would stay
		{"größe", []string{"grösse", "größte"}, "größte"},
		{"é", []string{"e"}, ""}, // letters count, not bytes
		{"gamma", nil, ""},
	} {
		if got := Name(c.name, c.names); got != c.want {
			t.Errorf("the nearest to %q in %q is %q, want %q", c.name, c.names, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		d    int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"acb", "abc", 1}, {"kitten", "sitting", 3},
		{"ca", "abc", 3}, // 2 if a letter could be changed twice
		{"größe", "grösse", 2},
	} {
		if d := distance([]rune(c.a), []rune(c.b)); d != c.d {
			t.Errorf("distance of %q and %q is %d, want %d", c.a, c.b, d, c.d)
		}
	}
}

func TestWhatWouldHaveBeenRight(t *testing.T) {
	names := []string{"fifo", "sjf"}
	for name, want := range map[string]string{"sfj": "one of fifo, sjf; did you mean sjf?", "sjf": "one of fifo, sjf",
		"xyz": "one of fifo, sjf", "": "one of fifo, sjf"} {
		if got := OneOf(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
