package plain

import "strconv"

// Count returns a number and what it counts: "1 job", "2 jobs", "0 jobs".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
