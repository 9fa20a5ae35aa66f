// Package actor answers observations of any program with the actions of a checkpoint, over a pipe.
package actor

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
)

// Actor is a checkpoint that answers observations of any program with the actions that gymctl eval would take. It is
// not safe for concurrent use.
type Actor struct {
	About  About
	spec   env.Spec
	policy agents.Policy
	batch  *env.Batch
	action *env.Actions
}

// About describes an Actor: the first line of what gymctl ckpt act prints.
type About struct {
	Env  string  `json:"env"`
	Name string  `json:"name"` // agent, run and step, as in the table of gymctl eval
	Obs  []Field `json:"obs"`  // the fields of an observation, in order
	// of the discrete factors of an action; a mask has as many entries as they have together
	Sizes []int     `json:"sizes"`
	Low   []float32 `json:"low"` // bounds of the numbers of an action
	High  []float32 `json:"high"`
}

// Field is one field of an observation.
type Field struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// New reads a checkpoint, or the checkpoint of a run. It does not read the run's workload unless observations depend on
// it. Faults are *fault.Mistakes.
func New(dir string) (*Actor, error) {
	c, p, spec, err := arena.OpenPolicy(dir)
	if err != nil {
		return nil, err
	}
	a := &Actor{
		About: About{Env: spec.ID, Name: c.Name, Sizes: spec.Action.Sizes, Low: spec.Action.Low, High: spec.Action.High},
		spec:  spec, policy: p,
	}
	for _, f := range spec.Obs {
		a.About.Obs = append(a.About.Obs, Field{f.Name, f.Shape})
	}
	return a, nil
}

// mostRows bounds the observations of one request.
const mostRows = 1 << 16

// Serve writes About as one line of JSON, then answers requests until r ends. All numbers are little-endian.
//
//	request   uint32 n, float32 [n × observation], uint8 [n × mask] (1 = legal)
//	reply     uint32 n, int32 [n × factors], float32 [n × numbers]
//	refusal   uint32 0, uint32 length, text
//
// A refused request changes nothing.
func (a *Actor) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	out := bufio.NewWriter(w)
	about, err := json.Marshal(a.About)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(about, '\n')); err != nil {
		return err
	}
	in := bufio.NewReader(r)
	each := 4*a.spec.ObsLen() + a.spec.MaskLen()
	var buf []byte
	for ctx.Err() == nil {
		if err := out.Flush(); err != nil {
			return err
		}
		buf = grown(buf, 4)
		if _, err := io.ReadFull(in, buf); err == io.EOF {
			return nil
		} else if err != nil {
			return cutShort(err)
		}
		n := int(binary.LittleEndian.Uint32(buf))
		if n < 1 || n > mostRows {
			return fault.Mistakef("a request of %d observations, want 1 to %d", n, mostRows)
		}
		buf = grown(buf, n*each)
		if _, err := io.ReadFull(in, buf); err != nil {
			return cutShort(err)
		}
		if err := a.act(ctx, n, buf); err != nil {
			buf = refusal(buf[:0], err)
		} else {
			buf = a.reply(buf[:0], n)
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func cutShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fault.Mistakef("the input ends within a request")
	}
	return err
}

// grown returns a slice of n bytes, which is buf if that is large enough.
func grown(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n)
	}
	return buf[:n]
}

// act fills a.action with the actions for n observations and masks.
func (a *Actor) act(ctx context.Context, n int, data []byte) error {
	if a.batch == nil || a.batch.N != n {
		a.batch, a.action = env.NewBatch(a.spec, n), env.NewActions(a.spec, n)
	}
	for i := range a.batch.Obs {
		a.batch.Obs[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	mask := data[4*len(a.batch.Obs):]
	for i := range a.batch.Mask {
		a.batch.Mask[i] = mask[i] != 0
	}
	for i := range a.batch.Kind {
		a.batch.Kind[i] = env.Mid
	}
	return a.policy.Act(ctx, a.batch, a.action, nil)
}

func (a *Actor) reply(b []byte, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, x := range a.action.Disc {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	for _, x := range a.action.Cont {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func refusal(b []byte, err error) []byte {
	text := err.Error()
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}
