package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/live"
)

// digest names a snapshot by what it says, but for its time, and for priorities and forecasts, which change by
// themselves.
func digest(s *live.Snapshot) string {
	sum := sha256.New()
	e := json.NewEncoder(sum)
	t := *s
	t.At, t.Jobs, t.Ended = time.Time{}, nil, nil
	err := e.Encode(&t)
	for _, list := range [][]live.Job{s.Jobs, s.Ended} {
		for i := range list { // one by one, so that nothing grows with the queue
			j := list[i]
			j.Priority, j.Planned = 0, time.Time{}
			err = errors.Join(err, e.Encode(&j))
		}
		err = errors.Join(err, e.Encode(nil)) // the end of a list
	}
	if err != nil { // there is nothing in it that has no JSON
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// tell fills the line with what has happened since the last snapshot.
func (l *loop) tell(s *live.Snapshot) {
	if !l.looked {
		begun := l.Begun
		begun.Every, begun.Limit = l.Every.Seconds(), l.Mirror.Limit.Seconds()
		l.line.Begun = &begun
	}
	alone := l.Log.Fresh()
	l.tellNodes(s, alone)
	now := make(map[string]*live.Job, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.GPUs < 1 {
			continue
		}
		now[j.ID] = j
		was, known := l.before[j.ID]
		if alone {
			l.line.Jobs = append(l.line.Jobs, lineOf(j))
		}
		if !known {
			l.line.Arrived = append(l.line.Arrived, lineOf(j))
		}
		if known && was.Blocked != "" && j.Blocked == "" {
			l.line.Unblocked = append(l.line.Unblocked, j.ID)
		}
		again := known && was.State == live.Running && (j.State == live.Waiting || !j.Start.Equal(was.Start))
		if again {
			l.line.Requeued = append(l.line.Requeued, lineOf(j))
		}
		if j.State == live.Waiting {
			l.line.Waiting++
			continue
		}
		l.line.Running++
		delete(l.late, j.ID)
		l.line.Free -= j.GPUs
		if again || known && was.State == live.Waiting || !known && l.looked {
			x := lineOf(j)
			x.Chosen = l.chosen[j.ID]
			l.line.Started = append(l.line.Started, x)
		}
	}
	l.line.Free = max(0, l.line.Free)
	for i := range s.Ended {
		j := &s.Ended[i]
		if was, known := l.before[j.ID]; known {
			if was.State == live.Waiting && !j.Start.IsZero() {
				x := lineOf(j)
				x.Chosen = l.chosen[j.ID]
				l.line.Started = append(l.line.Started, x)
			}
			l.line.Ended = append(l.line.Ended, lineOf(j))
			delete(l.before, j.ID)
		}
	}
	var gone []string
	for id := range l.before {
		if _, there := now[id]; !there {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for _, id := range gone { // nobody has told when
		l.line.Ended = append(l.line.Ended, lineOf(l.before[id]))
		delete(l.refused, id)
		delete(l.unfit, id)
		delete(l.late, id)
	}
	l.before, l.looked = now, true
}

// tellNodes fills in the nodes, where they have changed or the line stands alone, and the GPUs of those that are up.
func (l *loop) tellNodes(s *live.Snapshot, alone bool) {
	var nodes []NodeLine
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.GPUs > 0 {
			nodes = append(nodes, NodeLine{n.Name, n.Rack, n.GPUType, n.GPUs, n.Down})
			if !n.Down {
				l.line.Free += n.GPUs
			}
		}
	}
	if alone {
		l.line.Log, l.order = Format, ""
	}
	if text := fmt.Sprint(nodes); text != l.nodes || alone {
		l.nodes, l.line.Nodes = text, nodes
	}
}

func lineOf(j *live.Job) JobLine {
	x := JobLine{
		ID: j.ID, User: j.User, VC: j.VC, GPUs: j.GPUs, Limit: j.Estimate.Seconds(), Submit: j.Submit, Start: j.Start,
		End:   j.End,
		Nodes: names(j.Places), Types: j.GPUTypes,
	}
	if j.State == live.Waiting {
		x.Blocked = j.Blocked
	}
	if len(j.Places) > 1 {
		for i := range j.Places {
			x.On = append(x.On, j.Places[i].GPUs)
		}
	}
	return x
}
