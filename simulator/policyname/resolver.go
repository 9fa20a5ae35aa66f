package policyname

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/internal/nearest"
)

// Resolver says which policies can play in one place: an environment, the simulator, a cluster.
type Resolver struct {
	Orders   []string               // policies over the whole queue, which take an admission and back-filling
	Rules    []string               // rules that act through the actions of an environment
	Planners []string               // policies named by one word, which take nothing
	Ahead    []Ahead                // ways of looking ahead
	Folder   func(path string) bool // reports whether a path is that of a run folder or checkpoint; nil = none plays here
	// Written says in one sentence why a written order, or a rule by one, cannot play here; nil = none can.
	Written func(n Name) error
	// Check says in one sentence why a policy whose base exists cannot play here; nil = all can.
	Check func(n Name) error
}

// Resolve returns the parts of a name if the policy can play here, and otherwise why it cannot, in one sentence.
func (r *Resolver) Resolve(text string) (Name, error) {
	n, err := r.Find(text)
	if err == nil {
		err = r.check(n)
	}
	return n, err
}

func (r *Resolver) check(n Name) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(n)
}

// Find is Resolve without Check.
func (r *Resolver) Find(text string) (Name, error) {
	if IsWritten(text) {
		return r.written(text)
	}
	if r.Folder != nil && r.Folder(text) {
		return Name{Kind: Folder, Base: text}, nil
	}
	n, err := Parse(text)
	what, known, wrong := "policy", r.Orders, text
	switch {
	case n.Kind == Model:
		return Name{}, fmt.Errorf("%s is the file of a model, which is not named among policies", text)
	case n.Ahead != None && !slices.Contains(r.Ahead, n.Ahead):
		return Name{}, fmt.Errorf("%s looks ahead, which no policy can here; leave %s out", n, n.Ahead)
	case n.Kind == Rule:
		if known = r.Rules; len(known) > 0 {
			what, wrong = "rule", n.Base
		}
	case n.Kind == Queue && n.Admission+n.Backfill == "" && slices.Contains(r.Planners, n.Base):
		n.Kind, known = Planner, r.Planners
	}
	if err == nil && n.Kind != Folder && slices.Contains(known, n.Base) {
		return n, nil
	}
	if near := r.near(text); near != "" {
		return Name{}, fmt.Errorf("%s %q is unknown; did you mean %s?", what, wrong, near)
	} else if err != nil {
		return Name{}, err
	}
	if what == "policy" {
		known = slices.Concat(r.Orders, r.Planners)
	}
	return Name{}, fmt.Errorf("%s %q is unknown; use one of %s", what, wrong, strings.Join(known, ", "))
}

// written is Find for orders that are written out.
func (r *Resolver) written(text string) (Name, error) {
	n, err := Parse(text)
	switch {
	case r.Written == nil:
		return Name{}, fmt.Errorf("orders that are written out cannot play here; use %s", r.Forms())
	case err != nil:
	case n.Ahead != None && !slices.Contains(r.Ahead, n.Ahead):
		err = fmt.Errorf("no policy can look ahead here; leave %s out", n.Ahead)
	default:
		err = r.Written(n)
	}
	if err != nil {
		return Name{}, err
	}
	return n, nil
}

// near returns the name that was probably meant, each part corrected by itself, "" if none is near.
func (r *Resolver) near(text string) string {
	ahead, base := cutAhead(text)
	if rule, end, ok := strings.Cut(base, "@"); ok {
		rule = nearest.Name(rule, r.Rules)
		if rule == "" || nearest.Name("@"+end, []string{slots}) == "" {
			return ""
		}
		return AtSlots(rule).Looking(ahead).String()
	}
	parts := strings.Split(base, "+")
	for i, p := range parts {
		known := slices.Concat(r.Orders, r.Planners)
		if i > 0 {
			known = slices.Concat(Admissions(), Backfills())
		}
		if parts[i] = nearest.Name(p, known); parts[i] == "" {
			return ""
		}
	}
	for i := len(parts); i > 0; i-- { // without the last parts if they do not go with the order
		near := ahead.String() + strings.Join(parts[:i], "+")
		if n, err := Parse(near); err == nil && near != text && (slices.Contains(r.Planners, n.Base) || r.check(n) == nil) {
			return near
		}
	}
	return ""
}

// Compiles begins what is said to be right in place of a written order that is wrong: the reason follows.
const Compiles = "an expression that can be computed: "

// Wanted says what would be right in place of text, which Resolve or Find has refused with err.
func (r *Resolver) Wanted(text string, err error) string {
	if IsWritten(text) && r.Written != nil {
		return Compiles + err.Error()
	}
	return r.Forms() + ": " + err.Error()
}

// Forms says in words how the policies that play here are named.
func (r *Resolver) Forms() string {
	var forms []string
	if r.Folder != nil {
		forms = append(forms, "a run folder or checkpoint")
	}
	if len(r.Planners) == 1 {
		forms = append(forms, r.Planners[0])
	} else if len(r.Planners) > 1 {
		forms = append(forms, "a planner")
	}
	if len(r.Orders) > 0 {
		forms = append(forms, "ORDER", "ORDER+ADMISSION (sjf+skip)")
	}
	if r.Written != nil {
		forms = append(forms, "key: EXPRESSION")
	}
	if len(r.Rules) > 0 {
		forms = append(forms, RuleForm)
	}
	for _, a := range r.Ahead {
		forms = append(forms, a.String()+[...]string{Rollout: "POLICY", Hindsight: "ORDER+ADMISSION"}[a])
	}
	if last := len(forms) - 1; last > 0 {
		return strings.Join(forms[:last], ", ") + " or " + forms[last]
	}
	return strings.Join(forms, "")
}

// Complete returns the names that begin with word and can play here: orders alone and with one part, all their parts
// where word has a +, and policies that look ahead where word begins so. Rules are also those that other settings would
// allow.
func (r *Resolver) Complete(word string) []string {
	ahead, base := cutAhead(word)
	if !slices.Contains(r.Ahead, ahead) {
		ahead = None
	}
	var all []string
	add := func(n Name) {
		if text := n.String(); strings.HasPrefix(text, word) && (n.Kind != Queue && ahead == None || r.check(n) == nil) {
			all = append(all, text)
		}
	}
	for _, rule := range r.Rules {
		add(AtSlots(rule).Looking(ahead))
	}
	if ahead == None {
		for _, p := range r.Planners {
			add(Name{Kind: Planner, Base: p})
		}
		for _, a := range slices.Backward(r.Ahead) {
			if strings.HasPrefix(a.String(), word) {
				all = append(all, a.String())
			}
		}
	}
	for _, order := range r.Orders {
		for _, fill := range slices.Concat([]string{""}, Backfills()[1:]) { // without none
			for _, admission := range slices.Concat([]string{""}, Admissions()) {
				if admission == "" || fill == "" || strings.Contains(base, "+") {
					add(Name{Ahead: ahead, Base: order, Admission: admission, Backfill: fill})
				}
			}
		}
	}
	return all
}
