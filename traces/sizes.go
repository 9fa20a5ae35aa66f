package traces

import "fmt"

// Cut is how a workload is cut into windows: their length, the number of jobs before each that fill the machine, and
// the number of jobs after each.
type Cut struct{ Length, Warm, Next int }

// Bounds of the windows that Fit chooses.
const (
	// fewestJobs is the length below which a window says nothing: the share of a job is then a tenth.
	fewestJobs = 10
	// usefulJobs is the length that longer windows do not go below for the sake of more windows.
	usefulJobs = 16
	// lengthStep is the step in which lengths above usefulJobs are tried.
	lengthStep = 8
	// warmSteps is the number of steps in which the warm-up gets shorter.
	warmSteps = 16
)

// FewestJobs is the number of jobs below which Fit finds no windows, unless they are kept.
const FewestJobs = 10 * fewestJobs

// windowGoals are the numbers of windows of the validation and the test part that are wanted, the best first.
var windowGoals = [...]struct{ validation, test int }{{4, 8}, {2, 4}, {1, 2}, {1, 1}}

// Fit returns how n jobs are cut so that every part has windows: four for validation and eight for the test where that
// is possible, otherwise fewer. Windows are as long as they can be then, and not longer than most says; the warm-up
// keeps its share of the window where it can. keepLength and keepWarm mean that most.Length and most.Warm are not to be
// changed. ok is false if no cut gives every part a window.
func Fit(n int, most Cut, keepLength, keepWarm bool) (c Cut, ok bool) {
	c.Next = most.Next
	for _, shortest := range [...]int{usefulJobs, fewestJobs} {
		shortest = min(shortest, most.Length)
		for _, goal := range windowGoals {
			for share := warmSteps; share >= 0; share-- {
				for c.Length = most.Length; c.Length >= max(1, shortest); c.Length = shorter(c.Length) {
					if c.Warm = most.Warm; !keepWarm {
						c.Warm = most.Warm * c.Length / max(1, most.Length) * share / warmSteps
					}
					if c.windows(Validation, n) >= goal.validation && c.windows(Test, n) >= goal.test && c.windows(Training, n) > 0 {
						return c, true
					}
					if keepLength {
						break
					}
				}
			}
		}
	}
	return most, false
}

// shorter returns the next length to try.
func shorter(length int) int {
	if length > usefulJobs {
		return max(usefulJobs, (length-1)/lengthStep*lengthStep)
	}
	return length - 1
}

// windows returns how many disjoint windows part p of n jobs has.
func (c Cut) windows(p Part, n int) int {
	lo, hi := p.Bounds(n)
	return max(0, hi-lo-c.Warm-c.Next) / c.Length
}

// TooFewError says that a part of a workload has no window.
type TooFewError struct {
	Part       Part
	Jobs, Have int // of the workload and of the part
	Cut        Cut
	Need       int // jobs that would give every part a window
}

func (e *TooFewError) Error() string {
	share := [...]int{7, 1, 2}[e.Part]
	return fmt.Sprintf(
		"too few jobs: the %s part (%d0 %%) has %d of the %d; one window of %d with %d before it in every part needs %d "+
			"jobs in all; %s",
		e.Part, share, e.Have, e.Jobs, e.Cut.Length, e.Cut.Warm, e.Need, e.want())
}

// want says what would be right.
func (e *TooFewError) want() string {
	c, ok := e.Fit()
	switch {
	case !ok:
		return fmt.Sprintf("want at least %d jobs", FewestJobs)
	case c.Length < fewestJobs && c.Length < e.Cut.Length:
		return fmt.Sprintf("want at least %d jobs, or window %d%s", FewestJobs, c.Length, c.warmWord(e))
	default:
		return fmt.Sprintf("want window %d%s, or less", c.Length, c.warmWord(e))
	}
}

// warmWord names the warm-up if e's workload has one.
func (c Cut) warmWord(e *TooFewError) string {
	if e.Cut.Warm == 0 {
		return ""
	}
	return fmt.Sprintf(" and warm %d", c.Warm)
}

// Fit returns windows that e's jobs are enough for; ok is false if there are none.
func (e *TooFewError) Fit() (c Cut, ok bool) {
	if c, ok = Fit(e.Jobs, e.Cut, false, false); ok {
		return c, true
	}
	c = Cut{Length: e.Jobs/10 - e.Cut.Next, Next: e.Cut.Next} // the smallest part
	return c, c.Length > 0
}
