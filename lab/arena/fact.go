package arena

import "fmt"

// Fact is one line about a run or an arena. A fact without a key continues the one before it.
type Fact struct{ Key, Value string }

// Factf returns a fact whose value is formatted.
func Factf(key, format string, args ...any) Fact { return Fact{key, fmt.Sprintf(format, args...)} }

// Say prints facts as people read them: a line each, its value in the column of the others.
func Say(say func(format string, args ...any), facts ...Fact) {
	for _, f := range facts {
		say("%-9s %s", f.Key, f.Value)
	}
}
