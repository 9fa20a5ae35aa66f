package steer

import (
	"fmt"
	"strings"

	"clustergym/live"
)

// mostDown is how many nodes that have gone down are named at a time.
const mostDown = 5

// fallen names the nodes that have gone down since the last look, and what the cluster says of them.
func (l *loop) fallen(s *live.Snapshot) {
	var list []string
	n := 0
	for i := range s.Nodes {
		x := &s.Nodes[i]
		if was, known := l.up[x.Name]; known && was && x.Down && !x.Short && x.GPUs > 0 {
			if n++; n <= mostDown {
				list = append(list, strings.TrimSuffix(x.Name+": "+x.Why, ": "))
			}
		}
		l.up[x.Name] = !x.Down
	}
	if n > mostDown {
		list = append(list, fmt.Sprintf("and %d more", n-mostDown))
	}
	if n > 0 {
		l.Note("down: " + strings.Join(list, "; "))
	}
}

// steady gives nodes that show fewer GPUs than jobs hold there, or none where there were some, the GPUs that they had:
// such a node counts as drained until it shows them again, and the policy need not begin anew for it. It says so once.
func (l *loop) steady(s *live.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		was := l.whole[n.Name]
		if !n.Short && (n.GPUs > 0 || was.GPUs == 0) {
			l.whole[n.Name] = *n
			delete(l.short, n.Name)
			continue
		}
		shows := "no GPUs any more"
		if n.Short {
			shows = "fewer GPUs than jobs hold there"
		}
		n.Down, n.GPUs = true, max(n.GPUs, was.GPUs)
		if n.GPUType == "" {
			n.GPUType = was.GPUType
		}
		if !l.short[n.Name] {
			l.short[n.Name] = true
			l.Note(fmt.Sprintf("node %s shows %s; it counts as drained, with %d GPUs, until it shows them again", n.Name, shows,
				n.GPUs))
		}
	}
}
