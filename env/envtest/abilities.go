package envtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"math"
	"runtime"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
)

func (s *suite) tasksArePartOfTheEpisode() error {
	e, ctx := s.first(), context.Background()
	tasker, ok := e.(env.Tasker)
	var fields []env.Field
	if ok {
		fields = tasker.TaskSpec()
	}
	n := 0
	for _, f := range fields {
		if err := fieldIsSane(f); err != nil {
			return fmt.Errorf("task %q: %w", f.Name, err)
		}
		n += f.Len()
	}
	// A task of the wrong length is refused, even by an environment without tasks; so is a NaN.
	ts := env.NewTimeStep(s.spec)
	ep := s.episode(0)
	ep.Task = make([]float64, n+1)
	if err := e.Reset(ctx, ep, ts); err == nil {
		return fmt.Errorf("a task of %d numbers was accepted, want %d", n+1, n)
	}
	if n == 0 {
		return nil
	}
	ep.Task = make([]float64, n)
	for i := range ep.Task {
		ep.Task[i] = math.NaN()
	}
	if err := e.Reset(ctx, ep, ts); err == nil {
		return errors.New("a task of NaN was accepted")
	}
	other := s.open()
	for k := range s.episodes {
		ep := s.episode(k)
		task, again := make([]float64, n), make([]float64, n)
		tasker.SampleTask(rng.Stream(uint64(k), "envtest/task"), task)
		tasker.SampleTask(rng.Stream(uint64(k), "envtest/task"), again)
		at := 0
		for _, f := range fields {
			for range f.Len() {
				if math.Float64bits(task[at]) != math.Float64bits(again[at]) {
					return fmt.Errorf("task %q is drawn from more than the generator passed in", f.Name)
				}
				// Bounds are float32, which may round inwards.
				if v := float32(task[at]); !(v >= f.Low && v <= f.High) {
					return fmt.Errorf("task %q is %v, outside [%v, %v]", f.Name, task[at], f.Low, f.High)
				}
				at++
			}
		}
		ep.Task = task
		want, err := s.record(e, ep)
		if err != nil {
			return fmt.Errorf("task %v: %w", task, err)
		}
		ep.Task = append([]float64(nil), task...)
		see := follow(want, 0)
		err = s.play(other, ep, func(ts *env.TimeStep) error {
			for i := range ep.Task { // the task slice belongs to the caller
				ep.Task[i] = -1e30
			}
			return see(ts)
		})
		if err != nil {
			return fmt.Errorf("task %v in a second instance: %w", task, err)
		}
	}
	return nil
}

func (s *suite) unknownSplitsAreRefused() error {
	e, ts := s.first(), env.NewTimeStep(s.spec)
	want, err := s.record(e, s.episode(0))
	if err != nil {
		return err
	}
	litter(ts)
	before := digestOf(ts)
	ep := s.episode(1)
	ep.Split = "no-such-split"
	if err := e.Reset(context.Background(), ep, ts); err == nil {
		return fmt.Errorf("split %q was accepted", ep.Split)
	}
	if err := digestOf(ts).differs(before); err != nil {
		return fmt.Errorf("the refused Reset changed the time step: %w", err)
	}
	return s.repeat(e, s.episode(0), want)
}

func (s *suite) renderingOnlyLooks() error {
	r, ok := s.first().(env.Renderer)
	if !ok {
		return skip("the environment cannot show itself")
	}
	want, err := s.record(s.open(), s.episode(0))
	if err != nil {
		return err
	}
	see := follow(want, 0)
	err = s.play(s.first(), s.episode(0), func(ts *env.TimeStep) error {
		var b bytes.Buffer
		if err := r.Render(&b, "ansi"); errors.Is(err, errors.ErrUnsupported) {
			return skip("the environment cannot show itself")
		} else if err != nil {
			return fmt.Errorf("Render: %w", err)
		}
		if b.Len() == 0 {
			return errors.New("Render wrote nothing")
		}
		return see(ts)
	})
	if err != nil {
		return err
	}
	if err := r.Render(new(bytes.Buffer), "no-such-mode"); err == nil {
		return errors.New("Render accepts a mode that does not exist")
	}
	return nil
}

// paintingOnlyLooks paints the first steps and then every 32nd, because pictures are large. A picture must be as
// env.Painter says: of the state alone, every pixel set. Those of an episode must differ, else they show nothing.
func (s *suite) paintingOnlyLooks() error {
	e := s.first()
	p, ok := e.(env.Painter)
	if !ok {
		return skip("the environment cannot draw itself")
	}
	frame, again := env.NewFrame(), env.NewFrame()
	if err := p.Paint(frame); errors.Is(err, errors.ErrUnsupported) {
		return skip("the environment cannot draw itself")
	} else if !errors.Is(err, env.ErrResetNeeded) {
		return fmt.Errorf("Paint before Reset: %v, want %v", err, env.ErrResetNeeded)
	}
	if n := p.FrameRate(); n < 1 || n > 240 {
		return fmt.Errorf("FrameRate is %d, want 1 to 240", n)
	}
	want, err := s.record(s.open(), s.episode(0))
	if err != nil {
		return err
	}
	see := follow(want, 0)
	step, kinds := -1, map[[sha256.Size]byte]bool{}
	err = s.play(e, s.episode(0), func(ts *env.TimeStep) error {
		if step++; step < 8 || step%32 == 0 || ts.Kind.Last() {
			for i := range again.Pix { // what stood there before must not matter
				again.Pix[i] = byte(i + step)
			}
			for _, dst := range []*image.RGBA{frame, again} {
				if err := p.Paint(dst); err != nil {
					return fmt.Errorf("Paint: %w", err)
				}
			}
			if !bytes.Equal(frame.Pix, again.Pix) {
				return errors.New("Paint does not set every pixel, or draws one state in two ways")
			}
			if err := sound(frame); err != nil {
				return err
			}
			kinds[sha256.Sum256(frame.Pix)] = true
		}
		return see(ts)
	})
	if err != nil {
		return err
	}
	if step > 0 && len(kinds) < 2 {
		return fmt.Errorf("all pictures of an episode of %d steps are the same", step)
	}
	if err := p.Paint(image.NewRGBA(image.Rect(0, 0, 8, 8))); !errors.Is(err, env.ErrFrame) {
		return fmt.Errorf("Paint on 8 by 8 pixels: %v, want %v", err, env.ErrFrame)
	}
	if err := e.Close(); err != nil {
		return err
	}
	if err := p.Paint(frame); !errors.Is(err, env.ErrClosed) {
		return fmt.Errorf("Paint after Close: %v, want %v", err, env.ErrClosed)
	}
	return nil
}

// sound returns what is wrong with a picture whatever it shows, or nil.
func sound(frame *image.RGBA) error {
	uniform := true
	for i := 0; i < len(frame.Pix); i += 4 {
		if frame.Pix[i+3] != 255 {
			return fmt.Errorf("pixel %d, %d is not opaque", i/4%env.FrameWidth, i/4/env.FrameWidth)
		}
		uniform = uniform && [3]byte(frame.Pix[i:]) == [3]byte(frame.Pix)
	}
	if uniform {
		return errors.New("the picture has one colour")
	}
	return nil
}

// stepsAllocateNothing plays the same episodes three times and counts in the third round, when every buffer has already
// reached its full size: the simulator has two for each job, which change places. A few steps in a hundred may show
// allocations by the Go runtime.
func (s *suite) stepsAllocateNothing() error {
	if !s.noAllocs {
		return skip("not asked for")
	}
	const steps = 300
	e, ctx := s.first(), context.Background()
	ts := env.NewTimeStep(s.spec)
	p := s.player(s.seed)
	episode, bad, allocs := 0, 0, 0.0
	var failed error
	round := func(count bool) {
		p.src, episode = rng.Stream(s.seed, "envtest/allocs"), 0
		ts.Kind = env.Terminated
		for i := 0; i < steps && failed == nil; i++ {
			var a env.Action
			prepare := true
			// AllocsPerRun calls its function twice and counts the second call.
			n := testing.AllocsPerRun(1, func() {
				if !prepare {
					if err := e.Step(ctx, a, ts); err != nil {
						failed = err
					}
					return
				}
				prepare = false
				if ts.Kind.Last() {
					if err := e.Reset(ctx, s.episode(episode), ts); err != nil {
						failed = err
					}
					episode++
				}
				a = p.choose(ts)
			})
			if count && n > 0 {
				bad++
				allocs += n
			}
		}
	}
	round(false)
	round(false)
	runtime.GC()
	round(true)
	if failed != nil {
		return failed
	}
	if bad > steps/50 {
		return fmt.Errorf("%d of %d steps allocate, %.1f times each", bad, steps, allocs/float64(bad))
	}
	return nil
}
