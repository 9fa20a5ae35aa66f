package imitate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"clustergym/env"
)

// Play is one episode with what the teacher would do, and what was done, at every step.
type Play struct {
	Seed    uint64          // of the episode, whose window is drawn from it
	Label   []int32         // [steps, factors], the teacher's actions
	Taken   []int32         // likewise the actions that were taken; Label itself where the teacher played
	Reward  []float64       // [steps]
	Elapsed []time.Duration // [steps]
	Kind    env.Kind        // of the last time step: Terminated or Truncated
}

// Len returns the number of steps.
func (p *Play) Len() int { return len(p.Reward) }

// Taught reports whether the teacher played.
func (p *Play) Taught() bool { return len(p.Label) == 0 || &p.Label[0] == &p.Taken[0] }

// Returns appends the discounted sum of rewards from every step to the end of the episode to dst. For an episode that
// was truncated it is NaN, because what would have followed is not known.
func (p *Play) Returns(dst []float32, s env.Spec, gamma float64) []float32 {
	from := len(dst)
	for range p.Len() {
		dst = append(dst, float32(math.NaN()))
	}
	if p.Kind != env.Terminated {
		return dst
	}
	sum := 0.0
	for t := p.Len() - 1; t >= 0; t-- {
		sum = p.Reward[t] + s.Discount(gamma, p.Elapsed[t])*sum
		dst[from+t] = float32(sum)
	}
	return dst
}

// Append appends p to dst: the length of what follows, the play, and a checksum. Numbers are little-endian.
func (p *Play) Append(dst []byte) []byte {
	at := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, p.Seed)
	dst = append(dst, byte(p.Kind), 0)
	dst = le.AppendUint32(dst, uint32(p.Len()))
	for t := range p.Len() {
		dst = le.AppendUint64(dst, math.Float64bits(p.Reward[t]))
		dst = le.AppendUint64(dst, uint64(p.Elapsed[t]))
	}
	for _, k := range p.Label {
		dst = le.AppendUint32(dst, uint32(k))
	}
	if !p.Taught() {
		dst[at+13] = 1
		for _, k := range p.Taken {
			dst = le.AppendUint32(dst, uint32(k))
		}
	}
	le.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return le.AppendUint32(dst, crc32.ChecksumIEEE(dst[at+4:]))
}

// ErrCut is returned by Read for bytes that end within a play.
var ErrCut = errors.New("imitate: the recording ends within an episode")

// Read reads the first play of b, in an environment of spec s, and returns its size.
func Read(b []byte, s env.Spec) (p Play, size int, err error) {
	le := binary.LittleEndian
	if len(b) < 4 {
		return p, 0, ErrCut
	}
	n := int(le.Uint32(b))
	if len(b)-8 < n {
		return p, 0, ErrCut
	}
	size = n + 8
	b = b[4 : n+8]
	if n < 14 || crc32.ChecksumIEEE(b[:n]) != le.Uint32(b[n:]) {
		return p, 0, errors.New("imitate: an episode of the recording is damaged")
	}
	b = b[:n]
	p.Seed, p.Kind = le.Uint64(b), env.Kind(b[8])
	other, steps, f := int(b[9]), int(le.Uint32(b[10:])), len(s.Action.Sizes)
	b = b[14:]
	if want := float64(steps) * float64(16+4*f*(1+other)); other > 1 || p.Kind < env.Terminated ||
		p.Kind > env.Truncated || steps < 1 || float64(len(b)) != want {
		return p, 0, fmt.Errorf("imitate: an episode of the recording is none of %s", s.ID)
	}
	p.Reward, p.Elapsed = make([]float64, steps), make([]time.Duration, steps)
	for t := range steps {
		p.Reward[t], p.Elapsed[t] = math.Float64frombits(le.Uint64(b)), time.Duration(le.Uint64(b[8:]))
		b = b[16:]
	}
	actions := make([]int32, steps*f*(1+other))
	for i := range actions {
		k := int32(le.Uint32(b[4*i:]))
		if k < 0 || int(k) >= s.Action.Sizes[i%f] {
			return p, 0, fmt.Errorf("imitate: the recording has action %d of %d", k, s.Action.Sizes[i%f])
		}
		actions[i] = k
	}
	p.Label = actions[:steps*f]
	p.Taken = actions[len(actions)-steps*f:]
	return p, size, nil
}
