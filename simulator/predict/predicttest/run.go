package predicttest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/internal/snap"
	"clustergym/simulator/predict"
)

// origin is where runs begin on the clock of the archive.
const origin = time.Hour

// Run checks that the predictors of maker keep the contract, on n jobs. Their snapshots begin with magic.
func Run(t *testing.T, maker predict.Maker, magic string, n int) {
	r := rand.New(rand.NewPCG(uint64(n), 77))
	events := Draw(r, n, 5)
	fresh := func() predict.Predictor {
		p := maker.New()
		p.Reset(origin)
		return p
	}
	first := fresh()
	want := Play(first, events)
	end := first.AppendSnapshot(nil)

	t.Run("forecasts are valid", func(t *testing.T) {
		for i := range want {
			if !want[i].Valid() {
				t.Fatalf("job %d: %+v", i, want[i])
			}
		}
	})
	t.Run("repeats", func(t *testing.T) {
		other := Draw(rand.New(rand.NewPCG(uint64(n), 78)), n/2, 3)
		p := fresh()
		Play(p, other)
		p.Reset(origin)
		for what, p := range map[string]predict.Predictor{"another predictor": fresh(), "a predictor that was reset": p} {
			if got := Play(p, events); !slices.Equal(got, want) {
				t.Errorf("%s forecasts otherwise", what)
			}
			if !bytes.Equal(p.AppendSnapshot(nil), end) {
				t.Errorf("%s has another snapshot at the end", what)
			}
		}
	})
	t.Run("run times are hidden", func(t *testing.T) {
		blind := slices.Clone(events)
		for i := range blind {
			blind[i].Job.Work = time.Duration(i)
		}
		if !slices.Equal(Play(fresh(), blind), want) {
			t.Error("forecasts depend on run times that the predictor cannot know")
		}
	})
	t.Run("snapshots continue", func(t *testing.T) { continues(t, r, fresh, events, want) })
	t.Run("hostile snapshots", func(t *testing.T) { hostile(t, fresh, events, magic) })
	t.Run("allocates nothing", func(t *testing.T) {
		p := fresh()
		few := events[:min(len(events), 300)]
		all := make([]predict.Forecast, len(few))
		again := func() {
			p.Reset(origin)
			play(p, few, all[:0])
		}
		if a := testing.AllocsPerRun(5, again); a != 0 {
			t.Errorf("%v allocations in a run that repeats an earlier one", a)
		}
	})
}

// continues checks that a predictor goes on from a snapshot as the one that was saved. want are the forecasts of all
// events.
func continues(t *testing.T, r *rand.Rand, fresh func() predict.Predictor, events []Event, want []predict.Forecast) {
	for range 8 {
		at := r.IntN(len(events) + 1)
		p := fresh()
		Play(p, events[:at])
		saved := p.AppendSnapshot([]byte("before"))[len("before"):]
		q := fresh()
		Play(q, events[:r.IntN(len(events))]) // is replaced
		if err := q.RestoreSnapshot(saved); err != nil {
			t.Fatalf("after %d events: %v", at, err)
		}
		if !bytes.Equal(q.AppendSnapshot(nil), saved) {
			t.Fatalf("after %d events: the snapshot of what was restored differs", at)
		}
		if a, b := Play(p, events[at:]), Play(q, events[at:]); !slices.Equal(a, b) {
			t.Fatalf("after %d events: what was restored forecasts otherwise", at)
		}
		if !bytes.Equal(p.AppendSnapshot(nil), q.AppendSnapshot(nil)) {
			t.Fatalf("after %d events: the snapshots at the end differ", at)
		}
		q.Reset(origin)
		if !slices.Equal(Play(q, events), want) {
			t.Fatalf("after %d events: what was restored and then reset forecasts otherwise", at)
		}
	}
}

// hostile checks that bytes behind a correct seal are refused without a trace, or leave a predictor that works on.
func hostile(t *testing.T, fresh func() predict.Predictor, events []Event, magic string) {
	r := rand.New(rand.NewPCG(uint64(len(events)), 79))
	at := len(events) * 9 / 10
	p := fresh()
	Play(p, events[:at])
	good := p.AppendSnapshot(nil)
	body := good[len(magic) : len(good)-4]

	q := fresh()
	Play(q, events[:at/2])
	before := q.AppendSnapshot(nil)
	taken := 0
	try := func(what string, at int, bad []byte) {
		t.Helper()
		if err := q.RestoreSnapshot(bad); err != nil {
			if !bytes.Equal(q.AppendSnapshot(nil), before) {
				t.Fatalf("%s at %d: refused (%v), and has changed the predictor", what, at, err)
			}
			return
		}
		taken++
		again := q.AppendSnapshot(nil)
		if err := fresh().RestoreSnapshot(again); err != nil {
			t.Fatalf("%s at %d: what was restored cannot be restored again: %v", what, at, err)
		}
		// The simulator knows its jobs; what the snapshot says of them need not agree.
		for i, f := range Play(q, events[len(events)*9/10:]) {
			if !f.Valid() {
				t.Fatalf("%s at %d: forecast %d is %+v", what, at, i, f)
			}
		}
		if err := q.RestoreSnapshot(before); err != nil {
			t.Fatal(err)
		}
	}
	seal := func(body []byte) []byte { return snap.Seal(append(snap.Begin(nil, magic), body...), 0) }
	for i := range 200 {
		at := r.IntN(len(body))
		if i < 40 { // the head, or the end
			if at = i * 4; i%2 == 0 {
				at = len(body) - 1 - i*4
			}
			at = min(max(0, at), len(body)-1)
		}
		try("cut", at, seal(body[:at]))
		for _, x := range []byte{1, 0x80, 0xff, 1 << r.IntN(8)} {
			bad := bytes.Clone(body)
			bad[at] ^= x
			try("flipped", at, seal(bad))
		}
		bad := bytes.Clone(body) // a whole number
		for k := at; k < min(at+8, len(bad)); k++ {
			bad[k] = []byte{0, 0xff, 0x7f, 0xf0}[i%4]
		}
		try("overwritten", at, seal(bad))
	}
	for i := range min(len(good), 64) {
		bad := bytes.Clone(good)
		bad[len(bad)-1-i] ^= 1
		if err := q.RestoreSnapshot(bad); err == nil {
			t.Fatalf("a byte is changed %d from the end, and the seal is not noticed", i)
		}
	}
	try("a byte more", 0, seal(append(bytes.Clone(body), 0)))
	if taken == 0 {
		t.Error("every change was refused, so nothing was tested after a restore")
	}
	if err := q.RestoreSnapshot(good); err != nil || !bytes.Equal(q.AppendSnapshot(nil), good) {
		t.Errorf("the good snapshot is not restored: %v", err)
	}
}
