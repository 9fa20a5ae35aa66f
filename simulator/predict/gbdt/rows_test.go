package gbdt

import (
	"slices"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/traces"
)

// A run fits trees to First jobs, and again with every First jobs or a part 1/Again of the last fit's, whichever is
// more.
func TestFitsAreDue(t *testing.T) {
	var r rows
	var at []int
	fitted := 0
	for n := 1; n <= 30_000; n++ {
		r.add(make([]float32, columns), float64(n))
		if r.due(fitted) {
			at, fitted, r.since = append(at, n), len(r.y), 0
		}
	}
	want := []int{500, 1000, 1500, 2000, 2666, 3554, 4738, 6317, 8422, 11229, 14972, 19962, 26616}
	if !slices.Equal(at, want) {
		t.Errorf("trees are fitted after %v jobs, want %v", at, want)
	}
	if len(r.y) != Rows || slices.Min(r.y) != 10_001 || len(r.x) != Rows*columns {
		t.Errorf("%d rows are kept, the oldest of job %v, want the last %d", len(r.y), slices.Min(r.y), Rows)
	}
}

// The predictor follows due: its trees are those of the jobs that had ended, and of no other.
func TestPredictorFitsWhenDue(t *testing.T) {
	p := New(1).New().(*predictor)
	p.Reset(0)
	for i := range First + First/2 {
		j := traces.Job{Submit: time.Duration(i) * time.Minute, Work: time.Duration(1+i%97) * time.Second, GPUs: 1 + i%4,
			GPUMilli: 1000}
		p.Predict(j.Submit, 0, &j)
		p.Finished(j.Submit, 0, j.Work)
		want := 0
		if i+1 >= First {
			want = First
		}
		if p.fitted != want || (p.model != nil) != (want > 0) || p.rows.since != i+1-want {
			t.Fatalf("after %d jobs trees are fitted to %d, %d since, want %d", i+1, p.fitted, p.rows.since, want)
		}
	}
}

// A run that begins with an archive goes on from it: it fits anew when a part has been added to what its trees know,
// and then to the archive's last jobs and its own.
func TestRunsGoOnFromTheirArchive(t *testing.T) {
	raced.Alone(t)
	const all = 4000
	jobs := make([]traces.Job, all)
	for i := range jobs {
		jobs[i] = traces.Job{Submit: time.Duration(i) * time.Minute, Work: time.Duration(1+i%53) * time.Second, GPUs: 1 + i%4,
			GPUMilli: 1000}
	}
	m := NewArchive(jobs, 1)
	p := m.New().(*predictor)
	begin := 3 * all / 4
	p.Reset(jobs[begin].Submit)
	known := m.known(p.origin)
	if p.model == nil || known < all/2 || known > begin {
		t.Fatalf("the run begins with trees of %d jobs, of the %d before it", known, begin)
	}
	due := known / Again
	for i := range due + 1 {
		j := jobs[begin+i]
		j.Submit -= p.origin
		p.Predict(j.Submit, 0, &j)
		p.Finished(j.Submit+j.Work, 0, j.Work)
		want := 0
		if i+1 >= due {
			want = begin + due // no job of the archive runs when the run begins
		}
		if p.fitted != want {
			t.Fatalf("after %d jobs of the run trees are fitted to %d, want %d", i+1, p.fitted, want)
		}
	}
}
