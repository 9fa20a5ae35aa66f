package tape

import (
	"fmt"
	
	
	"sort"
	"time"
)

func (p *Program) Profile(n int) {
	m := p.m32
	best := make([]time.Duration, len(m.steps))
	for i := range best {
		best[i] = time.Hour
	}
	for range n {
		for i := range m.steps {
			s := &m.steps[i]
			t := time.Now()
			s.run(s.out, s.in, m.scratch)
			if d := time.Since(t); d < best[i] {
				best[i] = d
			}
		}
	}
	sum := time.Duration(0)
	for _, d := range best {
		sum += d
	}
	ix := make([]int, len(best))
	for i := range ix {
		ix[i] = i
	}
	sort.Slice(ix, func(a, b int) bool { return best[ix[a]] > best[ix[b]] })
	fmt.Println("total", sum)
	for _, i := range ix[:min(30, len(ix))] {
		s := &m.steps[i]
		fmt.Println(best[i], Dbg[fmt.Sprintf("%p", &s.out[0])], len(s.out))
	}
}
var Dbg = map[string]string{}
