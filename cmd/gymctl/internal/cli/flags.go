package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

// flagMistake turns an error of the flag parser into one sentence: for an unknown flag it suggests the nearest one,
// for a value that cannot be read it says what would be right.
func flagMistake(c *cobra.Command, err error) error {
	verb := VerbName(c)
	var (
		missing *pflag.NotExistError
		value   *pflag.InvalidValueError
		without *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		if len(missing.GetSpecifiedShortnames()) > 0 {
			return fault.Mistakef("%sflag -%s is unknown; see %s --help", verb, name, c.CommandPath())
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := nearest.Name(name, names); near != "" {
			return fault.Mistakef("%sflag --%s is unknown; did you mean --%s?", verb, name, near)
		}
		return fault.Mistakef("%sflag --%s is unknown; see %s --help", verb, name, c.CommandPath())
	case errors.As(err, &value):
		f := value.GetFlag()
		want := WantOf(f)
		if _, own, says := strings.Cut(value.Unwrap().Error(), "want "); says {
			want = own
		}
		return fault.Mistakef("--%s: got %q, want %s", f.Name, value.GetValue(), want)
	case errors.As(err, &without):
		return fault.Mistakef("--%s: got nothing, want %s", without.GetFlag().Name, WantOf(without.GetFlag()))
	}
	return fault.Mistakef("%s%w", verb, err)
}

// VerbName returns the beginning of a message about c: its path without the program's name, "" for the program itself.
func VerbName(c *cobra.Command) string {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	if verb == "" {
		return ""
	}
	return verb + ": "
}

// WantOf describes the values that a flag accepts.
func WantOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "uint64", "uint", "int64":
		if f.Value.Type()[0] == 'u' {
			return "a whole number, 0 or more"
		}
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a time such as 90s, 40m or 72h"
	case "columns":
		return "NAME=COLUMN, joined by commas, as submit_time=Submit,duration=Elapsed"
	case "size":
		return "a size such as 4GiB, 500MB or 1073741824"
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" && name != "string" && name != "stringArray" {
		return name
	}
	return "a value"
}

// Choice adds a flag whose value is one of names. Its default is what value has.
func Choice(c *cobra.Command, value *string, flag, usage string, names ...string) {
	c.Flags().Var(&choice{value, names}, flag, usage)
	Complete(c, flag, names...)
}

type choice struct {
	value *string
	names []string
}

// Set implements pflag.Value.
func (v *choice) Set(s string) error {
	if slices.Contains(v.names, s) {
		*v.value = s
		return nil
	}
	if len(v.names) == 2 {
		return errors.New("want " + strings.Join(v.names, " or ") + nearest.Meant(s, v.names))
	}
	return errors.New("want " + nearest.OneOf(s, v.names))
}

// String implements pflag.Value.
func (v *choice) String() string { return *v.value }

// Type implements pflag.Value.
func (v *choice) Type() string { return "string" }

// FlagFaults rewrites every fault of a configuration to name the flag of c that sets the value. names holds the flags
// whose names differ from their keys; otherwise the flag is the last part of the key. A key without a flag is named as
// an argument of --set.
func FlagFaults(c *cobra.Command, err error, names map[string]string) error {
	return renamed(err, func(key string) string {
		name, ok := names[key]
		if !ok {
			name = strings.ReplaceAll(key[strings.LastIndexByte(key, '.')+1:], "_", "-")
			if c.Flags().Lookup(name) == nil && c.Flags().Lookup("set") != nil {
				name = "set " + key
			}
		}
		return "--" + name
	})
}

// GivenFaults rewrites faults of a configuration to name the flag that has set the value, if one has. names maps keys
// to flags.
func GivenFaults(c *cobra.Command, err error, names map[string]string) error {
	return renamed(err, func(key string) string {
		if name := names[key]; name != "" && c.Flags().Changed(name) {
			return "--" + name
		}
		return ""
	})
}

// renamed returns the faults of err with the names that of gives their keys, "" = the key itself. An error without
// faults stays as it is.
func renamed(err error, of func(key string) string) error {
	var l fault.List
	for _, f := range fault.All(err) {
		g := *f
		key, _, _ := strings.Cut(f.Key, "[") // for a list, the value shows which element it is
		g.Key = cmp.Or(of(key), f.Key)
		l.Join("", &g)
	}
	if l.Err() == nil {
		return err
	}
	return &fault.Mistake{Err: l.Err()}
}
