package gbdt

import (
	"container/heap"
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

// Replay shows p jobs, which are in order of submit, as if each started when it was submitted. It calls ends for each job
// before p learns that it has finished; number is the job's.
func Replay(jobs []traces.Job, p predict.Predictor, ends func(end time.Duration, number int, j *traces.Job)) {
	p.Reset(0)
	var running running
	var spare []int
	finish := func() {
		r := heap.Pop(&running).(run)
		ends(r.end, r.number, &jobs[r.job])
		p.Finished(r.end, r.number, jobs[r.job].Work)
		spare = append(spare, r.number)
	}
	next := 0
	for i := range jobs {
		j := &jobs[i]
		for len(running) > 0 && running[0].end <= j.Submit {
			finish()
		}
		number := next
		if n := len(spare); n > 0 {
			number, spare = spare[n-1], spare[:n-1]
		} else {
			next++
		}
		p.Predict(j.Submit, number, j)
		p.Started(j.Submit, number)
		heap.Push(&running, run{j.Submit + j.Work, i, number})
	}
	for len(running) > 0 {
		finish()
	}
}

// running is a heap of jobs, those that end first on top; jobs that end together are in order of the trace.
type running []run

type run struct {
	end         time.Duration
	job, number int
}

func (r running) Len() int { return len(r) }
func (r running) Less(a, b int) bool {
	return r[a].end < r[b].end || r[a].end == r[b].end && r[a].job < r[b].job
}
func (r running) Swap(a, b int) { r[a], r[b] = r[b], r[a] }
func (r *running) Push(x any)   { *r = append(*r, x.(run)) }
func (r *running) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
