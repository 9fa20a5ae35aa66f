package train

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/agents/imitate"
)

// Parts returns the trainer's own parts of a checkpoint; the agent's are beside them.
func (t *Trainer) Parts() []agents.Part {
	return []agents.Part{agents.NewJSONPart("trainer.json", t.save, t.load), agents.NewPart("envs.bin", (*envsState)(t))}
}

// state is trainer.json. Floats are kept as bits because JSON has no NaN.
type state struct {
	Kernels    string         `json:"kernels,omitempty"` // for information; another set continues with other last bits
	Step       int64          `json:"step"`
	Episodes   int64          `json:"episodes"`
	Updates    int64          `json:"updates"`
	Streams    [][]byte       `json:"streams"` // by row, PCG state
	Return     []uint64       `json:"return_bits"`
	Length     []int64        `json:"length"`
	LastReturn []uint64       `json:"last_return_bits"`
	LastLength []uint64       `json:"last_length_bits"`
	LastInfo   [][]uint64     `json:"last_info_bits"`
	Learn      []learnedState `json:"learn"`
	// Imitation is set in runs that imitate.
	Imitation *imitate.State `json:"imitation,omitempty"`
}

type learnedState struct {
	Name string `json:"name"`
	Sum  uint64 `json:"sum_bits"`
	N    int64  `json:"n"`
}

func (t *Trainer) save() (state, error) {
	s := state{
		Kernels: t.Kernels, Step: t.step, Episodes: t.episodes, Updates: t.updates, Return: bits(t.ret), Length: t.length,
		LastReturn: bits(t.lastReturn), LastLength: bits(t.lastLength),
	}
	if t.Lessons != nil {
		at := t.Lessons.State()
		s.Imitation = &at
	}
	for _, g := range t.pcg {
		b, err := g.MarshalBinary()
		if err != nil {
			return s, err
		}
		s.Streams = append(s.Streams, b)
	}
	for _, row := range t.lastInfo {
		s.LastInfo = append(s.LastInfo, bits(row))
	}
	for i, l := range t.learn {
		s.Learn = append(s.Learn, learnedState{l.Name, math.Float64bits(l.Value), t.learnN[i]})
	}
	return s, nil
}

// load sets the state to s, or changes nothing if s is faulty.
func (t *Trainer) load(s state) error {
	n := len(t.pcg) * t.of
	if len(s.Streams) != n || len(s.Return) != n || len(s.Length) != n {
		return fmt.Errorf("%d streams, %d returns and %d lengths, want those of %d environments", len(s.Streams),
			len(s.Return), len(s.Length), n)
	}
	if s.Step < 0 || s.Episodes < 0 || s.Updates < 0 {
		return fmt.Errorf("%d steps, %d episodes and %d updates cannot be", s.Step, s.Episodes, s.Updates)
	}
	if last := len(s.LastReturn); last > recent || len(s.LastLength) != last || len(s.LastInfo) != last {
		return fmt.Errorf("%d returns, %d lengths and %d infos of finished episodes, want equally many, %d at most",
			last, len(s.LastLength), len(s.LastInfo), recent)
	}
	for _, row := range s.LastInfo {
		if len(row) != len(t.spec.Info) {
			return fmt.Errorf("%d infos of an episode, want %d", len(row), len(t.spec.Info))
		}
	}
	for _, l := range s.Learn {
		if l.N < 1 {
			return fmt.Errorf("a mean of %s over %d updates", l.Name, l.N)
		}
	}
	streams := make([]rand.PCG, n)
	for i, b := range s.Streams {
		if err := streams[i].UnmarshalBinary(b); err != nil {
			return fmt.Errorf("stream %d: %w", i, err)
		}
	}
	if (s.Imitation != nil) != (t.Lessons != nil) {
		return errors.New("of the run and its checkpoint, one imitates and the other does not")
	}
	if s.Imitation != nil {
		if err := t.Lessons.Restore(*s.Imitation); err != nil {
			return err
		}
	}

	from, to := t.first, t.first+len(t.pcg) // of a rank
	for i := range t.pcg {
		*t.pcg[i] = streams[from+i]
	}
	t.step, t.episodes, t.updates = s.Step, s.Episodes, s.Updates
	t.ret, t.length, t.rowRanges = floats(s.Return[from:to]), s.Length[from:to:to], nil
	t.over, t.taken = nil, 0
	t.lastReturn, t.lastLength, t.lastInfo = floats(s.LastReturn), floats(s.LastLength), nil
	for _, row := range s.LastInfo {
		t.lastInfo = append(t.lastInfo, floats(row))
	}
	t.learn, t.learnN = nil, nil
	for _, l := range s.Learn {
		t.learn = append(t.learn, agents.Stat{Name: l.Name, Value: math.Float64frombits(l.Sum)})
		t.learnN = append(t.learnN, l.N)
	}
	return nil
}

func bits(v []float64) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = math.Float64bits(x)
	}
	return out
}

func floats(v []uint64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Float64frombits(x)
	}
	return out
}

// envsState is envs.bin: every training environment with the state of its row.
type envsState Trainer

// WriteTo implements io.WriterTo.
func (p *envsState) WriteTo(w io.Writer) (int64, error) {
	b, err := p.vec.AppendSnapshot(nil)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(b)
	return int64(n), err
}

// ReadFrom implements io.ReaderFrom.
func (p *envsState) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return int64(len(b)), err
	}
	n := int64(len(b))
	if p.of > 1 {
		if b, err = p.vec.CutSnapshot(b, p.cfg.Envs, p.first, p.first+p.vec.Len()); err != nil {
			return n, err
		}
	}
	if err := p.vec.RestoreSnapshot(b, p.cur); err != nil {
		return n, err
	}
	p.begun, p.rowRanges = true, nil
	return n, nil
}
