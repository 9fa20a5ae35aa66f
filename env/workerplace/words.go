package workerplace

import "strconv"

func words(n int) string { return strconv.Itoa(n) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
