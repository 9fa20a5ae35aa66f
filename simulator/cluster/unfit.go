package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"clustergym/internal/plain"
	"clustergym/traces"
)

// Unfit counts why jobs can never fit a cluster: each under the first reason that holds of it, in the order of the
// fields. The zero value is ready.
type Unfit struct {
	Large int            // ask for more GPUs than the cluster has, or for no possible share of one
	VCs   map[string]int // belong to a virtual cluster that the cluster does not have, by its name
	Quota int            // ask for more than the quota of their virtual cluster
	Types map[string]int // ask for GPU types that the cluster does not have, by the types that they take, joined by "|"
	Shape int            // would fit if their GPUs were on any nodes: no nodes have as many as they take on each of theirs
	Rooms int            // ask for more GPUs of their type, or more cores or memory, than nodes that they may use have
}

// Count adds j, which can never fit c: Request has said so.
func (u *Unfit) Count(c *Cluster, j *traces.Job) {
	r, _ := c.Request(j)
	vc := int32(0)
	if c.vcs.index != nil {
		vc = c.vcs.index[j.VC]
	}
	switch {
	case r.GPUs != 0 && (r.GPUs < 0 || r.Milli < 1 || r.Milli > 1000 || r.GPUs > c.total):
		u.Large++
	case c.vcs.index != nil && vc == 0:
		count(&u.VCs, j.VC)
	case c.vcs.index != nil && r.GPUs*r.Milli > c.vcs.quota[vc]:
		u.Quota++
	case !c.pool && len(j.GPUTypes) > 0 && r.GPUs > 0 && r.Types == 0:
		count(&u.Types, strings.Join(j.GPUTypes, "|"))
	default:
		if r.Each > 0 {
			if r.Each = 0; c.everFits(&r) {
				u.Shape++
				return
			}
		}
		u.Rooms++
	}
}

func count(of *map[string]int, key string) {
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[key]++
}

// namedKinds is how many types of GPU or virtual clusters a message names at most.
const namedKinds = 3

// Reasons says for each reason how many jobs can never fit c for it, and for types of GPU what to change. The most jobs
// come first. It is nil if all ask for more GPUs than the cluster has, which needs no words.
func (u *Unfit) Reasons(c *Cluster) []string {
	type reason struct {
		n    int
		says string
	}
	var all []reason
	add := func(n int, one, many, format string, args ...any) {
		if n > 0 {
			all = append(all, reason{n, plain.Count(n, one, many) + " " + fmt.Sprintf(format, args...)})
		}
	}
	add(u.Large, "asks", "ask", "for more than its %s", plain.Count(c.GPUs(), "GPU", "GPUs"))
	add(u.Quota, "asks", "ask", "for more than the quota of the virtual cluster")
	add(u.Shape, "asks", "ask", "for more GPUs on each of their nodes, or for more such nodes, than it has")
	add(u.Rooms, "asks", "ask", "for more GPUs of a type, or more cores or memory, than its nodes have")
	if named := slices.DeleteFunc(slices.Clone(c.Types()), func(t string) bool { return t == "" }); len(named) == 0 &&
		len(u.Types) > 0 {
		n, asked, example := 0, []string(nil), ""
		for _, of := range u.Types {
			n += of
		}
		kinds(u.Types, func(of int, types string) {
			switch {
			case of > 0 && types == "":
				asked = append(asked, fmt.Sprintf("others (%d)", of))
			case of > 0:
				asked = append(asked, fmt.Sprintf("%s (%d)", plain.Clip(strings.ReplaceAll(types, "|", " or "), 60), of))
				if example == "" {
					example, _, _ = strings.Cut(types, "|")
				}
			}
		})
		add(n, "asks", "ask",
			"for a GPU type, %s, and its GPUs have none: gpu_type: %s at the nodes of a cluster file names it",
			strings.Join(asked, ", "), plain.Clip(example, 40))
	} else {
		u.mistyped(c, add)
	}
	has := "has none of that name"
	if names := c.VCs(); len(names) <= 2*namedKinds {
		has = "has " + strings.Join(names, ", ")
	}
	kinds(u.VCs, func(n int, name string) {
		if name == "" {
			add(n, "belongs", "belong", "to no virtual cluster, or to others, and the cluster %s", has)
			return
		}
		add(n, "belongs", "belong", "to virtual cluster %s, and the cluster %s", plain.Clip(name, 60), has)
	})
	if len(all) == 0 || u.Large > 0 && len(all) == 1 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b reason) int { return -cmp.Compare(a.n, b.n) })
	says := make([]string, len(all))
	for i := range all {
		says[i] = all[i].says
	}
	return says
}

// mistyped adds a reason for each type of GPU that c does not have, where it has others.
func (u *Unfit) mistyped(c *Cluster, add func(n int, one, many, format string, args ...any)) {
	kinds(u.Types, func(n int, types string) {
		if types == "" {
			add(n, "asks", "ask", "for other GPU types")
			return
		}
		asked := strings.Split(types, "|")
		add(n, "asks", "ask", "for GPU type %s, and %s", plain.Clip(strings.Join(asked, " or "), 60), hint(asked, c.Types()))
	})
}

// kinds calls each with the most frequent of counts, and with "" for the others together.
func kinds(counts map[string]int, each func(n int, name string)) {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	rest := 0
	for i, name := range names {
		if i < namedKinds && name != "" {
			each(counts[name], name)
		} else {
			rest += counts[name]
		}
	}
	each(rest, "")
}

// slice is a slice of a GPU by its profile, as MIG calls them.
var slice = regexp.MustCompile(`^(?:mig-?)?\d+g\.\d+gb`)

// hint says which types a cluster has in place of those asked for, and what to write if one of them is meant.
func hint(asked, types []string) string {
	var named []string
	for _, t := range types {
		if t != "" {
			named = append(named, t)
		}
	}
	slices.Sort(named)
	for _, same := range []func(a, t string) bool{strings.EqualFold, func(a, t string) bool {
		a, t = letters(a), letters(t)
		return a != "" && t != "" && (strings.Contains(a, t) || strings.Contains(t, a))
	}} {
		for _, a := range asked {
			if slice.MatchString(strings.ToLower(a)) {
				continue
			}
			for _, t := range named {
				if same(a, t) {
					return fmt.Sprintf("it has %s: write gpu_type: %s in the cluster file, or %s in the trace, if they are the same",
						plain.Clip(t, 40), plain.Clip(a, 40), plain.Clip(t, 40))
				}
			}
		}
	}
	has := strings.Join(named[:min(2*namedKinds, len(named))], ", ")
	if more := len(named) - 2*namedKinds; more > 0 {
		has += fmt.Sprintf(" and %d more", more)
	}
	if slice.MatchString(strings.ToLower(asked[0])) {
		return fmt.Sprintf("it has %s: a slice of a GPU (MIG) is a GPU of its own type, gpu_type: %s in a cluster file",
			plain.Clip(has, 80), plain.Clip(asked[0], 40))
	}
	return "it has " + plain.Clip(has, 80)
}

// letters returns the letters and digits of s in small letters.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
