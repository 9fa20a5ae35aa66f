package report

import (
	"strings"

	"clustergym/agents"
)

// rules says by which rules the agents choose whose rows name one, a line for each.
func (r *Report) rules() string {
	names, greedy := make([]string, len(r.Policies)), make([]string, len(r.Policies))
	for i := range r.Policies {
		names[i], greedy[i] = r.Shown(r.Policies[i].Name), r.Policies[i].Greedy
	}
	return rulesBelow(names, greedy)
}

// rules is Report.rules for streams.
func (r *StreamReport) rules() string {
	names, greedy := make([]string, len(r.Policies)), make([]string, len(r.Policies))
	for i := range r.Policies {
		names[i], greedy[i] = r.Shown(r.Policies[i].Name), r.Policies[i].Greedy
	}
	return rulesBelow(names, greedy)
}

// rules is Report.rules for episodes.
func (r *EpisodeReport) rules() string {
	names, greedy := make([]string, len(r.Policies)), make([]string, len(r.Policies))
	for i := range r.Policies {
		names[i], greedy[i] = r.Policies[i].Name, r.Policies[i].Greedy
	}
	return rulesBelow(names, greedy)
}

// rulesBelow returns lines below a table.
func rulesBelow(names, greedy []string) string {
	text := ""
	for _, rule := range append(agents.Rules(), agents.AsGiven) {
		var of []string
		for i, name := range names {
			if greedy[i] == string(rule) {
				of = append(of, name)
			}
		}
		if len(of) > 0 {
			text += Wrapped(listed(of) + " " + chooses(rule, len(of) > 1) + ".")
		}
	}
	return text
}

// chooses is what a sentence says of agents that choose by a rule.
func chooses(r agents.Rule, several bool) string {
	verb := func(one, more string) string {
		if several {
			return more
		}
		return one
	}
	switch r {
	case agents.ByShare:
		return verb("chooses", "choose") + " by share: doing nothing only if it is likelier than all other actions together"
	case agents.ByArgMax:
		return verb("chooses", "choose") + " by argmax: the action of the largest number"
	case agents.BySample:
		return verb("draws its", "draw their") + " actions"
	}
	return verb("gives", "give") + " actions alone, which are taken as they are"
}

// listed joins names to one subject.
func listed(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return names[0]
}
