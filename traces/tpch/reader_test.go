package tpch

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const ms = time.Millisecond

// two stages: 0 has 3 tasks, 1 has 1 task and an empty list at 10 executors.
const two = `{"2": {"edges": [[0,1]], "spark_stage_id": {"0": 4, "1": 7}, "stages": [
 {"fresh_durations": {"2": [30,40], "10": [50]}, "first_wave": {"2": [30,40], "10": [50,20,10]}, "rest_wave": {"2": [12], "10": []}},
 {"fresh_durations": {"5": []}, "first_wave": {"5": [8]}, "rest_wave": {"5": []}}]}}`

func read(t *testing.T, text string, o Options) ([]traces.Job, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "q.json", o)
	if err != nil {
		return nil, err
	}
	return traces.ReadAll(r)
}

func TestAQueryByHand(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want time.Duration // of a task of stage 0
	}{
		// All: (30+40 + 50+20+10 + 12 + 30+40+50)/9 = 282/9.
		{All, 31333333},
		// Decima: at 2 the first wave loses 30 and 40, and has no smaller one to take from; at 10 it loses 50.
		// (20+10 + 12 + 30+40+50)/6 = 27.
		{Decima, 27 * ms},
		{Rest, 12 * ms}, // the rest wave at 10 is empty, so that at 2
	} {
		jobs, err := read(t, two, Options{Rule: c.rule})
		if err != nil {
			t.Fatal(err)
		}
		want := []traces.Job{{ID: "2", Work: 3*c.want + 8*ms, GPUs: 1, GPUMilli: 1000, Graph: &traces.Graph{
			Tasks: []traces.Task{{Name: "stage 4", Instances: 3, Work: c.want}, {Name: "stage 7", Instances: 1, Work: 8 * ms}},
			Edges: []traces.Edge{{Parent: 0, Child: 1}},
		}}}
		if !reflect.DeepEqual(jobs, want) {
			t.Errorf("rule %d: %+v, want %+v", c.rule, jobs, want)
		}
	}
}

func TestAnEmptyFirstWaveTakesTheNextSmaller(t *testing.T) {
	st := &stage{fresh: waves{2: {1}, 5: {7, 7}}, first: waves{2: {1, 3}, 5: {7, 7}, 9: {7}}, rest: waves{}}
	got := clean(st, []int{2, 5, 9})
	if want := (waves{2: {3}, 5: {3}, 9: {7}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestQueriesComeByNumber(t *testing.T) {
	st := `{"edges": [], "stages": [{"first_wave": {"1": [5]}, "rest_wave": {}}]}`
	jobs, err := read(t, `{"b": `+st+`, "10": `+st+`, "9": `+st+`, "a": `+st+`}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	if got := strings.Join(ids, " "); got != "9 10 a b" {
		t.Errorf("%s", got)
	}
	if jobs, err := read(t, "\xef\xbb\xbf{}\n", Options{}); err != nil || jobs != nil {
		t.Errorf("no queries: %v, %v", jobs, err)
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	one := `{"1": {"edges": [], "stages": [{"first_wave": {"1": [5]}, "rest_wave": {}}]}`
	for _, c := range []struct{ text, want string }{
		{"", `q.json:1: got "", want a JSON object`},
		{"[]", `want a JSON object of queries`},
		{one, `q.json:1: query 1: got "EOF", want a JSON document that is whole`},
		{one[:30], "want a JSON document that is whole"},
		{one + "}x", "want nothing after"},
		{one + ",\n" + one[1:] + "}", `q.json:2: query 1: got "1", want each query once`},
		{`{"1": {"stages": []}}`, `q.json:1: query 1 stages: got "none", want one or more`},
		{`{"1": {"stages": 3}}`, "query 1 stages: got \"number\", want what JSON reads as"},
		{`{"1": {"stages": [{}]}}`, `query 1 stages[0]: got "0 tasks", want 1 to`},
		{strings.Replace(one, "[5]", "[-5]", 1) + "}", `query 1 stages[0].first_wave[1][0]: got "-5", want milliseconds`},
		{strings.Replace(one, `"1": [5]`, `"x": [5]`, 1) + "}",
			`query 1 stages[0].first_wave: got "x", want a number of executors`},
		{strings.Replace(two, "[[0,1]]", "[[0,2]]", 1),
			`query 2 edges[0]: got "[0 2]", want [parent, child], two of the 2 stages`},
		{strings.Replace(two, "[[0,1]]", "[[0]]", 1), `query 2 edges[0]: got "[0]"`},
		{strings.Replace(two, "[[0,1]]", "[[0,1],[0,1]]", 1), `query 2 edges[1]: got "[0 1]", want each edge once`},
		{strings.Replace(two, "[[0,1]]", "[[0,1],[1,0]]", 1), `query 2 edges: got "a cycle", want stages`},
	} {
		if _, err := read(t, c.text, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{two: true, "": false, `{"k80": {"null": 1}}`: false,
		"submit_time,edges\n": false} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte(`{"1": {"edges": [[1,0]], "stages": [{"first_wave": {"1": [5e9]}, "rest_wave": {}}, {"first_wave": {"1": [0]}}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for r := Decima; r <= Rest; r++ {
			d, err := NewReader(strings.NewReader(string(b)), "f", Options{Rule: r})
			if err != nil {
				continue
			}
			jobs, err := traces.ReadAll(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				if _, ok := j.Graph.Order(nil); !ok || j.Work < 0 || len(j.Graph.Tasks) == 0 {
					t.Fatalf("%+v", j)
				}
			}
		}
	})
}
