package workload

import "context"

// Note hands a sentence to the function of WithNotes, if ctx has one. It is for what is read beside traces.
func Note(ctx context.Context, note string) {
	if tell := of[noteFunc](ctx); tell != nil {
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
