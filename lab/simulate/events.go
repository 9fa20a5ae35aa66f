package simulate

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// eventLog writes every event of a run as one JSON line:
//
//	{"t_s":12.5,"event":"start","job":"17","gpus":[0,1]}
//
// in the order in which they happened. t_s is exact, in seconds since the trace's origin. gpus are the gang's GPUs by
// their numbers in the cluster; the list is empty for submits, and on a pool, whose GPUs have no identity. An event of
// a node names the node instead of job and GPUs:
//
//	{"t_s":12.5,"event":"node-fail","node":3}
type eventLog struct {
	w   *bufio.Writer
	row []byte
}

var _ sim.Observer = (*eventLog)(nil)

func newEventLog(w io.Writer) *eventLog { return &eventLog{w: bufio.NewWriterSize(w, 1<<16)} }

// Observe implements sim.Observer.
func (l *eventLog) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind == sim.Timer {
			continue
		}
		b := traces.AppendSeconds(append(l.row[:0], `{"t_s":`...), e.At)
		if e.Job < 0 { // an event of a node
			b = append(append(append(b, `,"event":"`...), e.Kind.String()...), `","node":`...)
			l.row = append(strconv.AppendInt(b, int64(e.Node), 10), "}\n"...)
		} else {
			l.row = appendJobEvent(b, e.Kind.String(), v.Trace(e.Job).ID, e.GPUs)
		}
		if _, err := l.w.Write(l.row); err != nil {
			return err
		}
	}
	return nil
}

// appendJobEvent appends the rest of a line behind its time.
func appendJobEvent[G ~int32](b []byte, kind, id string, gpus []G) []byte {
	b = append(append(append(b, `,"event":"`...), kind...), `","job":`...)
	b = append(appendJSON(b, id), `,"gpus":[`...)
	for k, g := range gpus {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(g), 10)
	}
	return append(b, "]}\n"...)
}

func (l *eventLog) flush() error { return l.w.Flush() }

// appendJSON appends s as a JSON string. The loop is fast for usual IDs, which need no escapes.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			q, _ := json.Marshal(s) // encoding a string cannot fail
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
