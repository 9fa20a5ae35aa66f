package options

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/simulator/policyname"
)

// PolicyListVar returns what adds a flag of names of policies that are joined by commas. The commas in an order that is
// written out, as in key: max(wait, 60) / gpus, separate nothing.
func PolicyListVar(f *pflag.FlagSet) func(p *[]string, name string, value []string, usage string) {
	return func(p *[]string, name string, value []string, usage string) {
		*p = value
		f.Var(&policyList{of: p}, name, usage)
	}
}

// policyList is a list of names of policies as the value of a flag. Like that of a StringSlice, it replaces the default
// when it is first set and grows when it is set again.
type policyList struct {
	of    *[]string
	given bool
}

// Set implements pflag.Value.
func (l *policyList) Set(list string) error {
	names := policyname.Split(list)
	if list == "" {
		names = nil
	}
	if l.given {
		names = append(*l.of, names...)
	}
	*l.of, l.given = names, true
	return nil
}

// Type implements pflag.Value.
func (l *policyList) Type() string { return "strings" }

// String implements pflag.Value.
func (l *policyList) String() string {
	if l.of == nil || len(*l.of) == 0 {
		return ""
	}
	return "[" + strings.Join(*l.of, ",") + "]"
}

// PolicyFiles are --policy-file: files with orders that are written out.
type PolicyFiles struct{ files []string }

// Flag adds --policy-file to c. list is the flag of names beside it.
func (p *PolicyFiles) Flag(c *cobra.Command, list string) {
	c.Flags().StringArrayVar(&p.files, "policy-file", nil,
		"order that is written out in `FILE` (repeatable); in --"+list+
			" it has the name of the file without its ending, as mine+skip for mine.expr")
	cli.Filled(c, "policy-file")
}

// mostFile bounds a file: an order and its comments.
const mostFile = 1 << 16

// Read returns list with the orders of the files: where list names one, perhaps with an admission, in its place, and at
// the end those that list does not name.
func (p *PolicyFiles) Read(list []string) ([]string, error) {
	for _, file := range p.files {
		n, label, err := readPolicy(file)
		if err != nil {
			return nil, err
		}
		named := false
		for i, name := range list {
			if policyname.IsWritten(name) {
				continue
			}
			m, err := policyname.Parse(name)
			if err != nil || m.Base != label || m.Kind > policyname.Rule {
				continue
			}
			m.Base, named = n.Base, true
			if m.Kind == policyname.Queue && m.Admission+m.Backfill == "" {
				m.Admission, m.Backfill = n.Admission, n.Backfill
			}
			list[i] = m.String()
		}
		if !named {
			list = append(list, n.String())
		}
	}
	return list, nil
}

// Given reports whether there are files.
func (p *PolicyFiles) Given() bool { return len(p.files) > 0 }

// One returns the order of the only file, for a verb with one policy; name is what it may be called besides, with an
// admission, "" = nothing.
func (p *PolicyFiles) One(name string) (string, error) {
	if len(p.files) > 1 {
		return "", fault.Mistakef("--policy-file: got %s; name one file", strings.Join(p.files, " and "))
	}
	var list []string
	if name != "" {
		list = []string{name}
	}
	list, err := p.Read(list)
	if err != nil {
		return "", err
	}
	if len(list) > 1 {
		return "", fault.Mistakef("--policy: got %q beside --policy-file %s; leave one of them out", name, p.files[0])
	}
	return list[0], nil
}

// readPolicy reads an order from a file. Its label is the one that stands before it, or else the name of the file.
func readPolicy(file string) (n policyname.Name, label string, err error) {
	b, err := ordinary.Read(file, mostFile)
	if err != nil {
		return n, "", fault.Mistakef("--policy-file: %s: %w", file, ordinary.Reason(err))
	}
	text := string(b)
	if !policyname.IsWritten(text) {
		return n, "",
			fault.Mistakef("--policy-file: %s is no order that is written out; begin it with key: and an expression, "+
				"as key: wait / gpus", file)
	}
	n, err = policyname.Parse(text)
	if err == nil && (n.Kind != policyname.Queue || n.Ahead != policyname.None) {
		err = fmt.Errorf("it begins with %s or ends with %s; leave that to --policy", policyname.Rollout,
			policyname.Slots(""))
	}
	if err != nil {
		return n, "", fault.Mistakef("--policy-file: %s: %w", file, err)
	}
	w, err := policyname.ReadWritten(n.Base)
	if err != nil {
		return n, "", err
	}
	base := filepath.Base(file)
	w.Label = cmp.Or(w.Label, strings.TrimSuffix(base, filepath.Ext(base)))
	n.Base = w.String()
	again, err := policyname.ReadWritten(n.Base)
	if err != nil || again.Label != w.Label {
		return n, "", fault.Mistakef("--policy-file: the name of %s is no name of a policy; begin the order with one, as "+
			"mine = key: wait", file)
	}
	return n, w.Label, nil
}
