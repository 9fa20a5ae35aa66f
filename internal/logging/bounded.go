package logging

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"clustergym/internal/plain"
)

// mostRunes is the length at which strings of a log are cut; mostStack is that of the attribute "stack", in bytes,
// which is no client's.
const (
	mostRunes = 200
	mostStack = 16 << 10
)

// Bounded returns a handler that passes records to h with every string clipped: the message and all attributes, errors
// and values of other types included.
func Bounded(h slog.Handler) slog.Handler { return &bounded{h} }

type bounded struct{ h slog.Handler }

func (b *bounded) Enabled(ctx context.Context, l slog.Level) bool { return b.h.Enabled(ctx, l) }

func (b *bounded) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, plain.Clip(r.Message, mostRunes), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(clipped(a))
		return true
	})
	return b.h.Handle(ctx, out)
}

func (b *bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i := range attrs {
		attrs[i] = clipped(attrs[i])
	}
	return &bounded{b.h.WithAttrs(attrs)}
}

func (b *bounded) WithGroup(name string) slog.Handler { return &bounded{b.h.WithGroup(name)} }

func clipped(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		if a.Key == "stack" {
			s := v.String()
			v = slog.StringValue(s[:min(len(s), mostStack)])
		} else {
			v = slog.StringValue(plain.Clip(v.String(), mostRunes))
		}
	case slog.KindGroup:
		group := slices.Clone(v.Group())
		for i := range group {
			group[i] = clipped(group[i])
		}
		v = slog.GroupValue(group...)
	case slog.KindAny:
		v = slog.StringValue(plain.Clip(fmt.Sprint(v.Any()), mostRunes))
	}
	return slog.Attr{Key: a.Key, Value: v}
}
