package control

import (
	"fmt"
	"io"

	"clustergym/env"
)

// pictured is a problem that can be drawn in a few lines of text, or that has hidden state to show.
type pictured interface {
	picture(dst []byte) []byte
}

// Render writes the current time step for people to read: what the agent observes, which actions are legal if some are
// not, and for some problems a small picture, which may show what the agent does not see. mode is "ansi".
func (e *Env) Render(w io.Writer, mode string) error {
	if e.closed {
		return env.ErrClosed
	}
	if mode != "ansi" {
		return fmt.Errorf("%s: render mode %q, want ansi; Paint draws rgb_array", e.spec.ID, mode)
	}
	if !e.begun {
		return env.ErrResetNeeded
	}
	b := fmt.Appendf(nil, "%s, step %d", e.spec.ID, e.steps)
	if e.kind != env.First {
		b = fmt.Appendf(b, ", reward %.4g", e.reward)
	}
	if e.kind.Last() {
		b = fmt.Appendf(b, ", %v", e.kind)
	}
	b = append(b, '\n')
	at := 0
	for _, f := range e.spec.Obs {
		b = appendField(b, f, e.obs[at:at+f.Len()])
		at += f.Len()
	}
	b = e.appendLegal(b)
	if p, ok := e.p.(pictured); ok {
		b = p.picture(b)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("%s: render: %w", e.spec.ID, err)
	}
	return nil
}

// appendField writes a field on one line; of a long field only the elements that are not 0.
func appendField(b []byte, f env.Field, v []float32) []byte {
	const long = 8
	b = append(append(b, f.Name...), ':')
	for i, x := range v {
		switch {
		case len(v) <= long:
			b = fmt.Appendf(b, " %.4g", x)
		case x != 0:
			b = fmt.Appendf(b, " [%d] %.4g", i, x)
		}
	}
	if f.Unit != "none" && f.Unit != "1" {
		b = append(append(b, ' '), f.Unit...)
	}
	return append(b, '\n')
}

// appendLegal names the legal actions, unless all are.
func (e *Env) appendLegal(b []byte) []byte {
	legal := 0
	for _, ok := range e.mask {
		if ok {
			legal++
		}
	}
	if legal == len(e.mask) {
		return b
	}
	b = append(b, "legal:"...)
	for a, ok := range e.mask {
		if ok {
			b = fmt.Appendf(b, " %d", a)
		}
	}
	return append(b, '\n')
}
