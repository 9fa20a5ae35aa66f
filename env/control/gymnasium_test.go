package control

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"clustergym/env"
)

// recording is what testdata/record.py writes.
type recording struct {
	MadeWith string `json:"made_with"`
	Episodes []struct {
		Start      any            `json:"start"`
		Actions    string         `json:"actions"`
		Rewards    string         `json:"rewards"` // +, 0, - for each step
		State      []string       `json:"state"`
		Obs        []string       `json:"obs"`
		Exact      map[int]string `json:"exact"`
		Terminated bool           `json:"terminated"`
	} `json:"episodes"`
}

func readRecording(t *testing.T, name string) recording {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// words splits s into hexadecimal numbers with the given number of digits.
func words(t *testing.T, s string, digits int) []uint64 {
	t.Helper()
	var out []uint64
	for ; len(s) >= digits; s = s[digits:] {
		v, err := strconv.ParseUint(s[:digits], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// state returns pointers to the float64 state of a recorded problem, for reading and writing.
func state(p problem) []*float64 {
	switch p := p.(type) {
	case *cart:
		return []*float64{&p.x, &p.v, &p.angle, &p.spin}
	case *car:
		return []*float64{&p.x, &p.v}
	case *robot:
		return []*float64{&p.s[0], &p.s[1], &p.s[2], &p.s[3]}
	}
	panic(fmt.Sprintf("%T has no recordings", p))
}

func setState(t *testing.T, p problem, bits string) {
	t.Helper()
	for i, w := range words(t, bits, 16) {
		*state(p)[i] = math.Float64frombits(w)
	}
}

func stateBits(p problem) string {
	s := ""
	for _, v := range state(p) {
		s += fmt.Sprintf("%016x", math.Float64bits(*v))
	}
	return s
}

func obsBits(obs []float32) string {
	s := ""
	for _, v := range obs {
		s += fmt.Sprintf("%08x", math.Float32bits(v))
	}
	return s
}

// begin resets e and sets it to a recorded start.
func begin(t *testing.T, e *Env, ts *env.TimeStep, bits string) {
	t.Helper()
	if err := e.Reset(context.Background(), env.Episode{}, ts); err != nil {
		t.Fatal(err)
	}
	setState(t, e.p, bits)
	e.p.observe(e.obs, e.mask)
	e.fill(ts)
}

var recorded = []struct{ name, id string }{
	{"cartpole", "CartPole-v1"}, {"mountaincar", "MountainCar-v0"}, {"acrobot", "Acrobot-v1"},
}

// Whole episodes are played from their recorded starts, without corrections on the way. The states equal, bit for bit,
// those of Gymnasium's own code with correctly rounded sine, cosine and squares. Observations, rewards and ends also
// equal those of the Gymnasium installed where they were recorded.
func TestEpisodesAreGymnasiums(t *testing.T) {
	for _, c := range recorded {
		r := readRecording(t, c.name)
		e := instance(t, c.id)
		ts := env.NewTimeStep(e.Spec())
		steps := 0
		for k, ep := range r.Episodes {
			begin(t, e, ts, ep.State[0])
			for i := 0; ; i++ {
				want := ep.State[i]
				if exact, ok := ep.Exact[i]; ok {
					want = exact
				}
				if got := stateBits(e.p); got != want {
					t.Fatalf("%s, episode %d (from %v), step %d: state %s, want %s", c.id, k, ep.Start, i, got, want)
				}
				if got := obsBits(ts.Obs); i > 0 && got != ep.Obs[i] {
					t.Fatalf("%s, episode %d, step %d: observation %s, want %s", c.id, k, i, got, ep.Obs[i])
				}
				if i > 0 && ts.Reward != map[byte]float64{'+': 1, '0': 0, '-': -1}[ep.Rewards[i-1]] {
					t.Fatalf("%s, episode %d, step %d: reward %v, want %c", c.id, k, i, ts.Reward, ep.Rewards[i-1])
				}
				if i == len(ep.Actions) {
					break
				}
				if err := e.Step(context.Background(), env.Action{Disc: []int32{int32(ep.Actions[i] - '0')}}, ts); err != nil {
					t.Fatalf("%s, episode %d, step %d: %v", c.id, k, i+1, err)
				}
				steps++
			}
			want := env.Mid
			if ep.Terminated {
				want = env.Terminated
			} else if len(ep.Actions) == e.Spec().MaxSteps {
				want = env.Truncated
			}
			if ts.Kind != want {
				t.Errorf("%s, episode %d ends %v, want %v", c.id, k, ts.Kind, want)
			}
		}
		t.Logf("%s: %d steps of %s", c.id, steps, r.MadeWith)
	}
}

// At the start Gymnasium computes Acrobot's sine and cosine in float32, whose library functions are correct only to a
// unit in the last place; all other first observations are equal bit for bit.
func TestFirstObservationsAreGymnasiums(t *testing.T) {
	for _, c := range recorded {
		e := instance(t, c.id)
		ts := env.NewTimeStep(e.Spec())
		for k, ep := range readRecording(t, c.name).Episodes {
			begin(t, e, ts, ep.State[0])
			for i, w := range words(t, ep.Obs[0], 8) {
				off := int64(math.Float32bits(ts.Obs[i])) - int64(w)
				if off != 0 && (c.id != "Acrobot-v1" || off < -1 || off > 1) {
					t.Errorf("%s, episode %d: observation %d is %x, want %x", c.id, k, i, math.Float32bits(ts.Obs[i]), w)
				}
			}
		}
	}
}

// One step is taken from every recorded state of the installed Gymnasium. If the next state differs, the C library
// rounded a sine, a cosine or a square the wrong way, and only the last bits differ.
func TestSingleStepsDifferFromTheCLibraryRarely(t *testing.T) {
	for _, c := range []struct {
		name, id string
		differ   int // steps
	}{{"cartpole", "CartPole-v1", 0}, {"mountaincar", "MountainCar-v0", 0}, {"acrobot", "Acrobot-v1", 3}} {
		e := instance(t, c.id)
		ts := env.NewTimeStep(e.Spec())
		steps, differ := 0, 0
		for k, ep := range readRecording(t, c.name).Episodes {
			for i := range ep.Actions {
				begin(t, e, ts, ep.State[i])
				if err := e.Step(context.Background(), env.Action{Disc: []int32{int32(ep.Actions[i] - '0')}}, ts); err != nil {
					t.Fatal(err)
				}
				steps++
				if stateBits(e.p) == ep.State[i+1] {
					continue
				}
				differ++
				for j, w := range words(t, ep.State[i+1], 16) {
					if want, got := math.Float64frombits(w), *state(e.p)[j]; math.Abs(got-want) > 1e-14 {
						t.Errorf("%s, episode %d, step %d: state %d is %v, want %v", c.id, k, i+1, j, got, want)
					}
				}
				if obsBits(ts.Obs) != ep.Obs[i+1] {
					t.Errorf("%s, episode %d, step %d: the observation differs", c.id, k, i+1)
				}
			}
		}
		if differ != c.differ {
			t.Errorf("%s: %d of %d steps differ, want %d", c.id, differ, steps, c.differ)
		}
	}
}

// Five steps as printed by another run of Gymnasium, to the precision printed.
func TestCartPoleFromAPublishedStart(t *testing.T) {
	e := instance(t, "CartPole-v1")
	ts := env.NewTimeStep(e.Spec())
	begin(t, e, ts, "")
	p := e.p.(*cart)
	p.x, p.v, p.angle, p.spin = 0.0273956, -0.0061122, 0.0358598, 0.0197368
	for i, want := range [][4]float64{
		{0.0272734, 0.1884777, 0.0362545, -0.2614198},
		{0.0310429, 0.3830639, 0.0310261, -0.5424507},
		{0.0387042, 0.1875199, 0.0201771, -0.2401557},
		{0.0424546, 0.3823479, 0.015374, -0.5264066},
		{0.0501015, 0.187013, 0.0048459, -0.2289191},
	} {
		if err := e.Step(context.Background(), env.Action{Disc: []int32{[]int32{1, 1, 0, 1, 0}[i]}}, ts); err != nil {
			t.Fatal(err)
		}
		for j, v := range want {
			if math.Abs(float64(ts.Obs[j])-v) > 2e-7 {
				t.Errorf("step %d: observation %d is %v, want %v", i+1, j, ts.Obs[j], v)
			}
		}
	}
}

// No recording falls between the two float64 next to 12 degrees: Gymnasium's is the lower one.
func TestTheCartPolesLimitIsGymnasiumsToTheBit(t *testing.T) {
	if cartAngleLimit != 0x1.acee9f37bebd5p-3 {
		t.Errorf("12 degrees are %x, want 0x1.acee9f37bebd5p-3", cartAngleLimit)
	}
}
