package topdrl

// A schedule has a selector, which chooses the next job, and a placement, which chooses its GPUs. drf is the precursor's
// name for smallest request first. variants are the placements that trained agents are played with.
var (
	selectors  = []struct{ name, order string }{{"fifo", "fifo"}, {"sjf", "sjf"}, {"drf", "smallest"}, {"random", "random"}}
	placements = []string{"first-available", "random", "load-balance", "closest-b"}
	variants   = []string{"closest-a", "closest-b", "closest-c", "optimal", "first-available"}
)

// rule is a selector with an admission and a placement, all by the names of heuristic.Config.
type rule struct {
	name      string
	order     string
	admission string
	placement string
}

// random reports whether the rule draws at random.
func (r *rule) random() bool { return r.order == "random" || r.placement == "random" }

// sixBaselines returns baselines of the precursor. They stand for the paper's six, which the paper does not name.
func sixBaselines(admission string) []rule {
	var rules []rule
	for _, sel := range selectors[:2] {
		for _, pl := range placements[:3] {
			rules = append(rules, newRule(sel.name, sel.order, admission, pl))
		}
	}
	return rules
}

// newRule returns a rule with the name that the tables give it.
func newRule(selector, order, admission, placement string) rule {
	name := selector + " + " + placement
	if admission == "skip" {
		name = selector + "+skip + " + placement
	}
	return rule{name, order, admission, placement}
}

// rules returns the schedules that the agents of a stage are compared with: the six with both admissions, and closest-b with
// skip; or the whole grid.
func (st *stage) rules() []rule {
	var rules []rule
	for _, admission := range []string{"strict", "skip"} {
		for i, sel := range selectors {
			for k, pl := range placements {
				if st.Whole || i < 2 && (k < 3 || admission == "skip") {
					rules = append(rules, newRule(sel.name, sel.order, admission, pl))
				}
			}
		}
	}
	return rules
}
