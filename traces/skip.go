package traces

import "fmt"

// Skip counts the rows that a reader left out for one reason.
type Skip struct {
	Reason string // such as "never placed: scheduled_time is empty"
	Count  int
}

// Skips counts the rows left out by reason, so that no row is lost silently. The zero value is ready. Add searches the
// reasons linearly, as there are few. Not safe for concurrent use.
type Skips struct {
	all []Skip
	at  []int // the first line of each, 0 = not told
}

// Add counts one more row for reason.
func (s *Skips) Add(reason string) { s.AddN(reason, 1) }

// AddAt is Add for a row that is odd, which its user may look up: All ends the reason with the first line.
func (s *Skips) AddAt(reason string, line int) {
	s.AddN(reason, 1)
	for i := range s.all {
		if s.all[i].Reason == reason && s.at[i] == 0 {
			s.at[i] = line
		}
	}
}

// AddN counts n more rows for reason; n = 0 does not list the reason.
func (s *Skips) AddN(reason string, n int) {
	if n == 0 {
		return
	}
	for i := range s.all {
		if s.all[i].Reason == reason {
			s.all[i].Count += n
			return
		}
	}
	s.all, s.at = append(s.all, Skip{reason, n}), append(s.at, 0)
}

// All returns the reasons in the order in which they first occurred. The slice is a copy; it is nil if nothing was left
// out.
func (s *Skips) All() []Skip {
	all := append([]Skip(nil), s.all...)
	for i, line := range s.at {
		if line > 0 {
			all[i].Reason += fmt.Sprintf(" (first in line %d)", line)
		}
	}
	return all
}

// Total returns the number of rows left out.
func (s *Skips) Total() (n int) {
	for _, k := range s.all {
		n += k.Count
	}
	return n
}
