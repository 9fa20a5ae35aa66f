package htmlpage

import (
	"time"

	"clustergym/traces"
)

// jobTable holds the trace's facts about jobs, by position. All runs of a page share it.
type jobTable struct {
	over   bool // there are more jobs than can be kept
	known  []bool
	id     []string
	submit []time.Duration
	work   []time.Duration
	gpus   []int32
	milli  []int16
	shares bool // at least one job asks for less than a whole GPU
	user   names
	vc     names
	model  names
}

// names is a column that has few different texts.
type names struct {
	of    []int32 // by job, into text
	text  []string
	index map[string]int32 // of text, by its contents
}

// add adds the job at pos, unless an earlier run has.
func (t *jobTable) add(pos int, j *traces.Job, milli int, l *limits) {
	if t.over || pos < len(t.id) && t.known[pos] {
		return
	}
	if pos >= l.jobs {
		*t = jobTable{over: true}
		return
	}
	// A run that is observed from later on lacks the jobs that have ended before. Nothing on the page refers to them.
	for len(t.id) <= pos {
		t.id, t.known = append(t.id, ""), append(t.known, false)
		t.submit, t.work = append(t.submit, j.Submit), append(t.work, 0)
		t.gpus, t.milli = append(t.gpus, 0), append(t.milli, 1000)
	}
	t.known[pos] = true
	t.id[pos], t.submit[pos], t.work[pos] = shorten(j.ID, l.text), j.Submit, j.Work
	t.gpus[pos], t.milli[pos] = int32(j.GPUs), int16(milli)
	t.shares = t.shares || milli < 1000 && j.GPUs > 0
	t.user.set(pos, j.User, l)
	t.vc.set(pos, j.VC, l)
	t.model.set(pos, j.Model, l)
}

// set sets the text of the job at pos. Jobs before it that have none get the same one.
func (n *names) set(pos int, s string, l *limits) {
	s = shorten(s, l.text)
	i, known := n.index[s]
	if !known {
		if n.index == nil {
			n.index = map[string]int32{}
		}
		i = int32(len(n.text))
		n.index[s] = i
		n.text = append(n.text, s)
	}
	for len(n.of) <= pos {
		n.of = append(n.of, i)
	}
	n.of[pos] = i
}

// told reports whether the trace has values for this column.
func (n *names) told() bool { return len(n.text) > 1 || len(n.text) == 1 && n.text[0] != "" }

// shorten cuts s to at most runes runes.
func shorten(s string, runes int) string {
	if len(s) <= runes {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == runes {
			if cut := s[:i] + "…"; len([]rune(s)) > runes {
				return cut
			}
			return s
		}
	}
	return s
}
