package lookahead

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
	"clustergym/lab/report"
	"clustergym/simulator/policyname"
	weights "clustergym/simulator/schedulers/tuned"
)

// values returns what report.yaml names: of each scenario its policies, which of them are ours and which are rivals.
func (s *settings) values(p study.Plan) map[string][]string {
	_, absent, _ := s.given(p) // Cells reports the fault
	all := map[string][]string{"scenario": nil, "weight": weightNames(), "tuning": nil,
		"workloads": {fmt.Sprint(s.Seeds)}, "absent": absent}
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		set := func(what string, values ...string) { all[what+" "+c.Name] = values }
		known, words := "", strings.ReplaceAll(c.Name, "-", " ")
		if cfg, err := c.config(&agent{}, 0, ""); err == nil {
			known = cfg.Estimates().Label()
		}
		all["scenario"] = append(all["scenario"], c.Name)
		set("words of", words)
		set("title of", fmt.Sprintf("%s; %s: %s", words, report.EstimatesKey, known))
		set("players of", c.players()...)
		set("ours of", c.ours()...)
		first := min(1, len(c.Versus))
		last := max(first, len(c.Versus)-2)
		set("first rival of", c.Versus[:first]...)
		set("rivals of", c.Versus[first:last]...)
		set("last rivals of", c.Versus[last:]...)
		set("few in", "yes")
		set("many in")
		if len(c.Versus) > 2 {
			set("few in")
			set("many in", "yes")
		}
		if len(c.Tuned) > 0 {
			all["tuning"] = []string{"yes"}
		}
	}
	return all
}

// ours returns the agents, and the tuned orders that are no controls, with what plays them.
func (c *scenario) ours() (names []string) {
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	for _, t := range c.Tuned {
		if len(t.Set) == 0 { // others are controls
			names = append(names, t.Name, searching+t.Name, policyname.Slots(t.Name))
		}
	}
	return names
}

// weightNames returns the names of the weights of hold, then those that index has beside them.
func weightNames() []string {
	names := weights.HoldNames()
	for _, n := range weights.IndexNames() {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
