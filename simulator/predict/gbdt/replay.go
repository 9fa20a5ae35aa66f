package gbdt

import (
	"cmp"
	"slices"
	"time"

	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Said returns what a predictor of maker says of each of jobs when it is submitted, as Replay shows them.
func Said(jobs []traces.Job, maker predict.Maker) []predict.Forecast {
	p := &noting{Predictor: maker.New(), said: make([]predict.Forecast, 0, len(jobs))}
	Replay(jobs, p, func(time.Duration, int, *traces.Job) {})
	return p.said
}

// noting is a predictor that writes down what it says.
type noting struct {
	predict.Predictor
	said []predict.Forecast
}

// Predict implements predict.Predictor.
func (n *noting) Predict(now time.Duration, number int, j *traces.Job) predict.Forecast {
	f := n.Predictor.Predict(now, number, j)
	n.said = append(n.said, f)
	return f
}

// Replay shows p jobs, which are in order of submit, as if each started when it was submitted. It calls ends for each
// job before p learns that it has finished; number is the job's.
func Replay(jobs []traces.Job, p predict.Predictor, ends func(end time.Duration, number int, j *traces.Job)) {
	p.Reset(0)
	// Jobs finish in order of their ends; those that end together, in the order of the trace.
	end := func(i int) time.Duration { return jobs[i].Submit + jobs[i].Work }
	order, numbers := make([]int, len(jobs)), make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	var spare []int
	finish := func(i int) {
		ends(end(i), numbers[i], &jobs[i])
		p.Finished(end(i), numbers[i], jobs[i].Work)
		spare = append(spare, numbers[i])
	}
	next := 0
	for i := range jobs {
		j := &jobs[i]
		for ; order[0] < i && end(order[0]) <= j.Submit; order = order[1:] {
			finish(order[0])
		}
		numbers[i] = next
		if n := len(spare); n > 0 {
			numbers[i], spare = spare[n-1], spare[:n-1]
		} else {
			next++
		}
		p.Predict(j.Submit, numbers[i], j)
		p.Started(j.Submit, numbers[i])
	}
	for _, i := range order {
		finish(i)
	}
}
