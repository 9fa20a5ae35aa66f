package workload

import "context"

type notesKey struct{}

// WithNotes returns a context whose traces call tell with each sentence about what their file has that its user should look at,
// although it can be read: once they are read to the end, or closed. The goroutine that reads calls it.
func WithNotes(ctx context.Context, tell func(note string)) context.Context {
	return context.WithValue(ctx, notesKey{}, tell)
}

// notesOf returns the function of ctx, or nil.
func notesOf(ctx context.Context) func(note string) {
	tell, _ := ctx.Value(notesKey{}).(func(note string))
	return tell
}

// Note hands a sentence to the function of WithNotes, if ctx has one. It is for what is read beside traces.
func Note(ctx context.Context, note string) {
	if tell := notesOf(ctx); tell != nil {
		tell(note)
	}
}

// notes returns what the format's reader has to say about the file so far.
func (t *Trace) notes() []string {
	if d, ok := t.source.(interface{ Notes() []string }); ok {
		return d.Notes()
	}
	return nil
}

// note hands the notes to the function of WithNotes, once.
func (t *Trace) note() {
	if t.tell == nil {
		return
	}
	tell := t.tell
	t.tell = nil
	for _, n := range t.notes() {
		tell("trace " + t.info.File + ": " + n)
	}
	if n := t.urgent.note(); n != "" {
		tell("trace " + t.info.File + ": " + n)
	}
}
