package boost

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/internal/rng"
)

var five = []float64{0.1, 0.25, 0.5, 0.75, 0.9}

// jobs makes rows of 25 features as a predictor of run times has them: small and round numbers, hours and weekdays,
// statistics of similar jobs that are not always known; and targets that depend on some of them.
func jobs(n int) (names []string, rows []float32, target []float64) {
	const features = 25
	src := rng.Stream(1, "boost/jobs")
	for f := range features {
		names = append(names, fmt.Sprintf("f%d", f))
	}
	for range n {
		gpus, hour, weekday := float64(int(1)<<src.IntN(5)), src.IntN(24), src.IntN(7)
		user := 6 + 2*src.NormFloat64()
		row := []float32{float32(gpus), float32(hour), float32(weekday), float32(3600 * (1 + src.IntN(48)))}
		for k := len(row); k < features; k++ {
			x := float32(user + float64(k)/10*src.NormFloat64())
			if k%3 == 0 {
				x = float32(src.IntN(200))
			}
			if src.IntN(8) == 0 {
				x = float32(math.NaN())
			}
			row = append(row, x)
		}
		rows = append(rows, row...)
		target = append(target, user+0.2*math.Log(gpus)+0.1*float64(hour%12)+(0.3+0.1*float64(weekday))*src.NormFloat64())
	}
	return names, rows, target
}

func BenchmarkFit(b *testing.B) {
	names, rows, target := jobs(60_000)
	for b.Loop() {
		if _, err := Fit(context.Background(), names, rows, target, five, DefaultOptions(), 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredict(b *testing.B) {
	names, rows, target := jobs(20_000)
	m, err := Fit(context.Background(), names, rows, target, five, DefaultOptions(), 2)
	if err != nil {
		b.Fatal(err)
	}
	dst, src := make([]float64, len(five)), rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		r := src.IntN(len(target))
		m.Predict(rows[r*len(names):][:len(names)], dst)
	}
}
