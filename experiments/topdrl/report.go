package topdrl

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
	"clustergym/simulator/policyname"
)

// order returns the order of policies in the tables of a stage.
func (st *stage) order() []string {
	all := slices.Clone(st.Agents)
	for _, t := range st.searches() {
		all = append(all, t.name, policyname.Slots(t.name))
	}
	all = slices.Concat(all, ruleNames(sixBaselines()), []string{"fifo" + learned}, ruleNames(skipping()),
		[]string{"sjf+skip" + learned}, others, stoppers, stoppersInSlots)
	for _, name := range foreseen {
		all = append(all, name+forecasting)
	}
	return append(all, best, bestOrder)
}

func ruleNames(rules []rule) (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// values returns what report.yaml names: of each stage what its policies are compared with, which is written short,
// and the agents that play there.
func (s *settings) values(study.Plan) map[string][]string {
	all := map[string][]string{
		"stage": nil, "stopping": nil, "six": ruleNames(sixBaselines()), "pickers": pickers,
		"noisy":  {fmt.Sprint(s.Hindsight.Noisy)},
		"picked": slices.Concat(pickers, []string{"optimal", "rack"}, gapPlacements),
	}
	for i := range s.Stages {
		st := &s.Stages[i]
		set := func(what string, values ...string) { all[what+" "+st.Name] = values }
		all["stage"] = append(all["stage"], st.Name)
		for _, a := range st.Agents {
			for _, place := range variants {
				all["variants of "+st.Name] = append(all["variants of "+st.Name], a+" + "+place)
			}
		}
		set("agents of", st.Agents...)
		set("first of", st.Agents[0])
		set("policies of", st.order()...)
		set("reference of", "sjf+skip")
		set("rival in", stronger)
		set("placed in")
		set("stops of")
		if st.Placed {
			set("placed in", "yes")
		}
		if st.Preempt {
			all["stopping"] = append(all["stopping"], st.Name)
			set("stops of", stops)
			set("reference of", stops)
			set("rival in", stops)
		}
		for _, a := range []string{"ppo", "clone"} {
			set(a + " in")
			if !st.Preempt && slices.Contains(st.Agents, a) {
				set(a+" in", a)
			}
		}
	}
	return all
}
