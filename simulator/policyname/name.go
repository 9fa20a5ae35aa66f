// Package policyname reads, writes and completes the names of policies:
//
//	[rollout:|hindsight:]ORDER[+ADMISSION][+BACKFILL]   over the whole queue, perhaps looking ahead
//	[rollout:]RULE@slots                                through the actions of an environment
//	PLANNER                                             over a whole instance at once
//	DIR, FILE.onnx                                      a run folder or checkpoint, a model
//
// An ORDER or RULE is a word, or is written out as expressions (Written): key: wait / (estimate * gpus).
//
// It is the only package that takes such a name apart. It has no list of orders, rules and planners: each place in
// which policies play describes in a Resolver which of them it has.
package policyname

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a policy decides over.
type Kind uint8

// The kinds of policies. Parse never returns Planner, which is spelled as an order is: a Resolver that has planners
// does.
const (
	Queue   Kind = iota // an order or another policy over the whole queue
	Rule                // acts through the actions of an environment
	Planner             // sees a whole instance at once
	Folder              // a run folder or checkpoint
	Model               // the file of a model
)

// Ahead is how a policy looks ahead.
type Ahead uint8

// The ways of looking ahead.
const (
	None      Ahead = iota
	Rollout         // plays the simulator on from the current state
	Hindsight       // knows all jobs of the window beforehand
)

// String returns what the names of such policies begin with.
func (a Ahead) String() string { return [...]string{"", "rollout:", "hindsight:"}[a] }

// slots ends the names of rules.
const slots = "@slots"

// RuleForm is how rules are named, for help and messages.
const RuleForm = "RULE" + slots

// Name is the name of a policy.
type Name struct {
	Kind  Kind
	Ahead Ahead
	Base  string // the order, the rule, the planner, or the path
	// Admission and Backfill are those of an order; "" = not named.
	Admission, Backfill string
}

// Admissions returns what can happen when the first job in line does not fit.
func Admissions() []string { return []string{"strict", "skip", "commit"} }

// Backfills returns the ways in which other jobs may start while the first in line waits.
func Backfills() []string { return []string{"none", "easy", "conservative"} }

// Parse takes a name apart. It does not check that the order or rule exists. String returns the same text again, and of
// a written order the same on one line, without comments.
func Parse(text string) (Name, error) {
	switch {
	case IsWritten(text):
		return parseWritten(text)
	case strings.HasSuffix(text, ".onnx"):
		return Name{Kind: Model, Base: text}, nil
	case strings.ContainsAny(text, `/\`):
		return Name{Kind: Folder, Base: text}, nil
	}
	ahead, base := cutAhead(text)
	base, rule := strings.CutSuffix(base, slots)
	parts := strings.Split(base, "+")
	n := Name{Ahead: ahead, Base: parts[0]}
	if rule {
		n.Kind = Rule
	}
	twice, _ := cutAhead(n.Base)
	switch {
	case twice != None:
		return Name{}, fmt.Errorf("%q looks ahead twice; a name has one %s or %s", text, Rollout, Hindsight)
	case n.Base == "":
		return Name{}, fmt.Errorf("%q names no policy", text)
	case rule && len(parts) > 1:
		return Name{}, fmt.Errorf("%q: a rule has neither admission nor back-filling; use %s", text, RuleForm)
	}
	for _, part := range parts[1:] {
		switch {
		case n.Admission+n.Backfill == "" && slices.Contains(Admissions(), part):
			n.Admission = part
		case n.Backfill == "" && slices.Contains(Backfills(), part):
			n.Backfill = part
		default:
			return Name{},
				fmt.Errorf("%q is unknown; use an order, then +strict, +skip or +commit, then +easy or +conservative, where needed",
					text)
		}
	}
	return n, nil
}

// cutAhead cuts off what a name begins with if the policy looks ahead.
func cutAhead(text string) (Ahead, string) {
	for _, a := range []Ahead{Rollout, Hindsight} {
		if base, ok := strings.CutPrefix(text, a.String()); ok {
			return a, base
		}
	}
	return None, text
}

// String returns the name as users write it.
func (n Name) String() string {
	text := n.Ahead.String() + n.Base
	if n.Kind == Rule {
		text += slots
	}
	for _, part := range []string{n.Admission, n.Backfill} {
		if part != "" {
			text += "+" + part
		}
	}
	return text
}

// Plain returns the name of the policy that n looks ahead with, n itself if it does not look ahead.
func (n Name) Plain() Name {
	n.Ahead = None
	return n
}

// Looking returns the name of the policy that looks ahead with n.
func (n Name) Looking(a Ahead) Name {
	n.Ahead = a
	return n
}

// AtSlots returns the name of the rule of this base, Slots as text.
func AtSlots(base string) Name { return Name{Kind: Rule, Base: base} }

// Slots returns the name of the rule of this base.
func Slots(base string) string { return base + slots }

// Rules returns the names of the rules of these bases.
func Rules(bases ...string) []string {
	names := make([]string, len(bases))
	for i, b := range bases {
		names[i] = Slots(b)
	}
	return names
}

// Of returns the parts of a name, and those of no policy for what is no name.
func Of(text string) Name {
	n, _ := Parse(text)
	return n
}
