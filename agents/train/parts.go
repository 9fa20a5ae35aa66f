package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"clustergym/agents"
)

// Parts are the trainer's own parts of a checkpoint; the agent's come beside them.
func (t *Trainer) Parts() []agents.Part { return []agents.Part{(*statePart)(t), (*envsPart)(t)} }

// statePart is trainer.json. Floats are kept as bits: a decimal would have to be read back exactly.
type statePart Trainer

type state struct {
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
}

type learnedState struct {
	Name string `json:"name"`
	Sum  uint64 `json:"sum_bits"`
	N    int64  `json:"n"`
}

// Name implements agents.Part.
func (p *statePart) Name() string { return "trainer.json" }

// WriteTo implements agents.Part.
func (p *statePart) WriteTo(w io.Writer) (int64, error) {
	s := state{
		Step: p.step, Episodes: p.episodes, Updates: p.updates, Return: bits(p.ret), Length: p.length,
		LastReturn: bits(p.lastReturn), LastLength: bits(p.lastLength),
	}
	for _, g := range p.pcg {
		b, err := g.MarshalBinary()
		if err != nil {
			return 0, err
		}
		s.Streams = append(s.Streams, b)
	}
	for _, row := range p.lastInfo {
		s.LastInfo = append(s.LastInfo, bits(row))
	}
	for i, l := range p.learn {
		s.Learn = append(s.Learn, learnedState{l.Name, math.Float64bits(l.Value), p.learnN[i]})
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(b, '\n'))
	return int64(n), err
}

// ReadFrom implements agents.Part.
func (p *statePart) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return int64(len(b)), err
	}
	var s state
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return int64(len(b)), fmt.Errorf("trainer.json: %w", err)
	}
	n := len(p.pcg)
	if len(s.Streams) != n || len(s.Return) != n || len(s.Length) != n {
		return int64(len(b)), fmt.Errorf("trainer.json: %d environments, want %d", len(s.Streams), n)
	}
	for _, row := range s.LastInfo {
		if len(row) != len(p.spec.Info) {
			return int64(len(b)), fmt.Errorf("trainer.json: %d infos of an episode, want %d", len(row), len(p.spec.Info))
		}
	}
	for i, g := range p.pcg {
		if err := g.UnmarshalBinary(s.Streams[i]); err != nil {
			return int64(len(b)), fmt.Errorf("trainer.json: stream %d: %w", i, err)
		}
	}
	p.step, p.episodes, p.updates = s.Step, s.Episodes, s.Updates
	p.ret, p.length = floats(s.Return), s.Length
	p.lastReturn, p.lastLength, p.lastInfo = floats(s.LastReturn), floats(s.LastLength), nil
	for _, row := range s.LastInfo {
		p.lastInfo = append(p.lastInfo, floats(row))
	}
	p.learn, p.learnN = nil, nil
	for _, l := range s.Learn {
		p.learn = append(p.learn, agents.Stat{Name: l.Name, Value: math.Float64frombits(l.Sum)})
		p.learnN = append(p.learnN, l.N)
	}
	return int64(len(b)), nil
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

// envsPart is envs.bin: every training environment and what its row is about to do.
type envsPart Trainer

// Name implements agents.Part.
func (p *envsPart) Name() string { return "envs.bin" }

// WriteTo implements agents.Part.
func (p *envsPart) WriteTo(w io.Writer) (int64, error) {
	b, err := p.vec.AppendSnapshot(nil)
	if err != nil {
		return 0, err
	}
	n, err := w.Write(b)
	return int64(n), err
}

// ReadFrom implements agents.Part.
func (p *envsPart) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return int64(len(b)), err
	}
	if err := p.vec.RestoreSnapshot(b, p.cur); err != nil {
		return int64(len(b)), err
	}
	p.begun = true
	return int64(len(b)), nil
}
