package slurm

import (
	"fmt"
	"testing"

	"clustergym/live"
)

// However many lines of an action Slurm has been told when we are killed, the next release takes back what was done,
// and leaves what owners and administrators have written.
func TestNothingIsStrandedWhereverWeAreKilled(t *testing.T) {
	histories := [][]live.Action{
		{{Op: live.HoldJob}},
		{{Op: live.HoldJob}, {Op: live.StartJob}},
		{{Op: live.HoldJob}, {Op: live.StartJob, Nodes: []string{"g7", "g8"}}},
		{{Op: live.HoldJob}, {Op: live.StartJob, Nodes: []string{"g7"}}, {Op: live.HoldJob},
			{Op: live.StartJob, Nodes: []string{"g7", "g9"}}},
		{{Op: live.StartJob, Nodes: []string{"g7"}}, {Op: live.HoldJob}},
		{{Op: live.StartJob, Nodes: []string{"g7"}}, {Op: live.HoldJob}, {Op: live.StartJob}, {Op: live.HoldJob}},
		{{Op: live.HoldJob}, {Op: live.ReleaseJob}, {Op: live.HoldJob}, {Op: live.StartJob, Nodes: []string{"g7"}},
			{Op: live.ReleaseJob}},
	}
	for _, admin := range []bool{true, false} {
		for _, start := range []record{
			{id: 5, task: -1, user: "bob", states: []string{"PENDING"}, priority: 1},
			{id: 5, task: -1, user: "bob", states: []string{"PENDING"}, priority: 1, required: "g7", excluded: "g[1-2]",
				admin: "see ticket", comment: "mine: a=b"},
			{id: 5, task: -1, user: "bob", states: []string{"PENDING"}, priority: 1, het: 5},
		} {
			for _, h := range histories {
				for kill := 0; ; kill++ {
					r, told := start, 0
					c := New(nil, Options{})
					c.user, c.admin = "bob", admin
					do := func(a live.Action, most int) (all bool) {
						a.Job = "5"
						lines, err := c.lines(a, &r, nil, []string{"g1", "g2", "g7", "g8", "g9"})
						if err != nil {
							t.Fatalf("%v: %v", a, err)
						}
						for _, l := range lines {
							if told++; told > most {
								return false
							}
							r.told(l)
						}
						return true
					}
					alive := true
					for _, a := range h {
						if alive = do(a, kill); !alive {
							break
						}
					}
					name := fmt.Sprintf("admin %v, job %+v, %v, killed after %d lines", admin, start, h, kill)
					m := r.mark(c.owner())
					if r.held() && m.kind == "" {
						t.Fatalf("%s: held without a mark: %+v", name, r)
					}
					if r.excluded != start.excluded && (!m.pinned || m.excluded != start.excluded) {
						t.Fatalf("%s: pinned without a mark: %+v", name, r)
					}
					do(live.Action{Op: live.ReleaseJob}, 1<<20)
					if r.held() || r.excluded != start.excluded || r.required != start.required || r.admin != start.admin ||
						r.comment != start.comment {
						t.Fatalf("%s: %+v", name, r)
					}
					if alive {
						break
					}
				}
			}
		}
	}
}
