package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clustergym/env/sched"
	"clustergym/internal/plain"
)

// Thousands returns n with commas between groups of three digits.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Percent returns a share from 0 to 1 in per cent, with a decimal below 20 % and where it is almost everything.
func Percent(share float64) string {
	p := 100 * share
	switch {
	case p > 0 && p < 0.1:
		return "less than 0.1 %"
	case p > 99 && p < 100:
		return strconv.FormatFloat(math.Floor(p*10)/10, 'f', 1, 64) + " %"
	case p > 0 && p < 20:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// Part says in words how many of a workload's jobs something concerns and what share of its GPU time is theirs: "454 of
// 4,000 jobs (11.4 %), 39 % of the GPU time,".
func Part(n, of int, share float64) string {
	return fmt.Sprintf("%s of %s (%s), %s of the GPU time,", Thousands(n), jobsWord(of),
		Percent(float64(n)/float64(max(1, of))), Percent(share))
}

func jobsWord(n int) string {
	if n == 1 {
		return "1 job"
	}
	return Thousands(n) + " jobs"
}

// LeftOut returns a sentence for each reason for which jobs were left out. key is that of the largest gang.
func LeftOut(l *sched.LeftOut, cluster, key string) []string {
	var all []string
	if l.Large > 0 {
		all = append(all,
			fmt.Sprintf("%s %s for more than %s (%s)", Part(l.Large, l.Of, l.LargeShare), verb(l.Large, "asks", "ask"),
				plain.Count(l.MaxGPUs, "GPU", "GPUs"), key))
	}
	if l.Never > 0 {
		ids := strings.Join(l.NeverIDs, ", ")
		if more := l.Never - len(l.NeverIDs); more > 0 {
			ids += fmt.Sprintf(" and %s more", Thousands(more))
		}
		all = append(all,
			fmt.Sprintf("%s can never fit cluster %s: %s", Part(l.Never, l.Of, l.NeverShare), cluster,
				strings.Join(append([]string{ids}, l.NeverWhy...), "; ")))
	}
	of := func(n int) string {
		return fmt.Sprintf("%s of %s (%s)", Thousands(n), jobsWord(l.Of), Percent(float64(n)/float64(max(1, l.Of))))
	}
	if n := l.Workless - l.CPUOnly; n > 0 {
		all = append(all, of(n)+verb(n, " has no run time", " have no run time"))
	}
	if n := l.CPUOnly; n > 0 {
		all = append(all, of(n)+verb(n, " asks for no GPU (CPU only)", " ask for no GPU (CPU only)"))
	}
	return all
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
