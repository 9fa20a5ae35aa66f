package lwf

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/workload"
	peer "clustergym/peer/lwf"
	"clustergym/traces"
)

// sets are the recorded workloads and their clusters, nodes and GPUs of a node.
var sets = []struct {
	name        string
	nodes, gpus int
}{
	{"a2_alone", 16, 4}, {"b2_small_large", 3, 2}, {"d5_chain", 8, 2}, {"f20_queue", 1, 2}, {"h20_mixed", 4, 4},
	{"j60_dense", 8, 4},
	{"ms160_s1", 16, 4}, {"ms160_s3", 16, 4},
}

// recorded is a recorded workload with the results of the authors' program.
type recorded struct {
	name          string
	jobs, results string // paths
	sha           [2]string
	nodes, gpus   int
	like160       bool // it is one of the authors' generator
}

// findRecorded returns the recorded workloads in data/lwf or in ../groundtruth/lwf beside data, nil if data is "".
func findRecorded(data string) ([]recorded, error) {
	if data == "" {
		return nil, nil
	}
	var found []recorded
	for _, set := range sets {
		for _, dir := range []string{filepath.Join(data, "lwf"), filepath.Join(data, "..", "groundtruth", "lwf")} {
			o := recorded{
				name: set.name, jobs: filepath.Join(dir, set.name+".csv"), results: filepath.Join(dir, set.name+"_expected.csv.gz"),
				nodes: set.nodes, gpus: set.gpus, like160: strings.HasPrefix(set.name, "ms160"),
			}
			if _, err := os.Stat(o.jobs); err != nil {
				continue
			}
			for k, path := range []string{o.jobs, o.results} {
				var err error
				if o.sha[k], err = workload.HashFile(context.Background(), nil, path); err != nil {
					return nil, err
				}
			}
			found = append(found, o)
			break
		}
	}
	if len(found) == 0 {
		return nil,
			fault.Mistakef("data folder %s: it has none of the recorded workloads of this experiment, as lwf/ms160_s1.csv", data)
	}
	return found, nil
}

// load reads the workload.
func (o *recorded) load() ([]peer.Job, error) {
	f, err := ordinary.Open(o.jobs)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer f.Close() //nolint:errcheck // open for reading only
	jobs, err := peer.ReadJobs(f, o.jobs)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	return jobs, nil
}

// columns are those of a recorded result: rule, question, job, and what happened to it.
var columns = []string{"algo", "variant", "job", "placed_ms", "first_task_ms", "finish_ms", "gpus_in_worker_order"}

// read returns the results of the authors' program by run, and the runs in the order of the file.
func (o *recorded) read() (runs map[[2]string][][]string, order [][2]string, err error) {
	f, err := traces.OrdinaryFiles().Open(context.Background(), o.results)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // open for reading only
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return nil, nil, err
	}
	at := make([]int, len(columns))
	for k, c := range columns {
		if at[k] = slices.Index(header, c); at[k] < 0 {
			return nil, nil, fmt.Errorf("no column %s", c)
		}
	}
	runs = map[[2]string][][]string{}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return runs, order, nil
		}
		if err != nil {
			return nil, nil, err
		}
		row := make([]string, len(columns))
		for k := range columns {
			row[k] = fields[at[k]]
		}
		key := [2]string{row[0], row[1]}
		if runs[key] == nil {
			order = append(order, key)
		}
		runs[key] = append(runs[key], row)
	}
}

// compare plays every recorded run and counts the jobs that are equal: placement, first task and finish in the same
// millisecond, on the same GPUs.
func (o *recorded) compare(ctx context.Context) ([]study.Row, error) {
	jobs, err := o.load()
	if err != nil {
		return nil, err
	}
	runs, order, err := o.read()
	if err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", o.results, err)}
	}
	index := map[string]int{}
	for i := range jobs {
		index[jobs[i].Name] = i
	}
	all, equal := 0, 0
	for _, key := range order {
		cfg := peer.DefaultConfig()
		cfg.Nodes, cfg.GPUs, cfg.Question = o.nodes, o.gpus, key[1]
		if err := cfg.SetAlgorithm(key[0]); err != nil {
			return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", o.results, err)}
		}
		m, err := peer.NewMachine(cfg)
		if err != nil {
			return nil, err
		}
		given := make([][]int32, len(jobs))
		for _, row := range runs[key] {
			i, ok := index[row[2]]
			if !ok {
				return nil, fault.Mistakef("%s: job %q is not in %s", o.results, row[2], o.jobs)
			}
			if given[i], err = o.parse(row[6]); err != nil || len(given[i]) != jobs[i].Workers {
				return nil, fault.Mistakef("%s: job %s: got GPUs %q, want %d as NODE.GPU", o.results, row[2], row[6],
					jobs[i].Workers)
			}
		}
		if i := slices.IndexFunc(given, func(gpus []int32) bool { return gpus == nil }); i >= 0 {
			return nil, fault.Mistakef("%s: the run %s %s has no job %q, which is in %s", o.results, key[0], key[1],
				jobs[i].Name, o.jobs)
		}
		m.Give(func(job int) []int32 { return given[job] })
		r, err := m.Run(ctx, jobs, nil)
		if err != nil {
			return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", o.jobs, err)}
		}
		for _, row := range runs[key] {
			i := index[row[2]]
			got := r.Jobs[i]
			all++
			same := fmt.Sprint(got.Placed) == row[3] && fmt.Sprint(got.First) == row[4] && fmt.Sprint(got.Finish) == row[5]
			if same && slices.Equal(got.GPUs, given[i]) {
				equal++
			}
		}
	}
	return []study.Row{
		study.NewRow("equal", "runs", float64(len(order)), "set",
			o.name), study.NewRow("equal", "jobs", float64(all), "set", o.name),
		study.NewRow("equal", "equal", float64(equal), "set",
			o.name), study.NewRow("equal", "differ", float64(all-equal), "set", o.name),
	}, nil
}

// parse reads GPUs as NODE.GPU between blanks.
func (o *recorded) parse(text string) (gpus []int32, err error) {
	for word := range strings.FieldsSeq(text) {
		a, b, _ := strings.Cut(word, ".")
		node, err := strconv.ParseUint(a, 10, 16)
		if err != nil || int(node) >= o.nodes {
			return nil, fmt.Errorf("no node %s", a)
		}
		gpu, err := strconv.ParseUint(b, 10, 16)
		if err != nil || int(gpu) >= o.gpus {
			return nil, fmt.Errorf("no GPU %s", b)
		}
		gpus = append(gpus, int32(int(node)*o.gpus+int(gpu)))
	}
	return gpus, nil
}
