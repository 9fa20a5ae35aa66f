package dally

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clustergym/internal/fault"
	"clustergym/lab/workload"
	peer "clustergym/peer/dally"
	"clustergym/traces"
	authors "clustergym/traces/dally"
)

// recorded is a recorded workload of --data.
type recorded struct {
	name  string
	sha   string
	jobs  func() ([]traces.Job, error)
	exact func() ([]peer.Job, error) // only for the authors' files: the jobs as the authors' program reads them
}

// saturns is the number of workloads of Saturn's jobs that are played.
const saturns = 3

// findRecorded returns the recorded workloads in the folder data: those of Dally's authors in dally/ (or in
// ../groundtruth/dally), and jobs of Helios' cluster Saturn in sia-workloads/saturn. It returns nil if data is "".
func findRecorded(data string) ([]recorded, error) {
	if data == "" {
		return nil, nil
	}
	var found []recorded
	for _, dir := range []string{filepath.Join(data, "dally"), filepath.Join(data, "..", "groundtruth", "dally")} {
		for _, name := range []string{"batch500", "multi411"} {
			path := filepath.Join(dir, name+".csv.gz")
			if _, err := os.Stat(path); err != nil ||
				slices.ContainsFunc(found, func(o recorded) bool { return o.name == name }) {
				continue
			}
			o, err := recordedFile(name, path, "")
			if err != nil {
				return nil, err
			}
			o.exact = func() ([]peer.Job, error) {
				f, err := traces.OrdinaryFiles().Open(context.Background(), path)
				if err != nil {
					return nil, err
				}
				defer f.Close() //nolint:errcheck // open for reading only
				return peer.ReadJobs(f, path)
			}
			found = append(found, o)
		}
	}
	// Jobs of Saturn as drawn by Sia's authors.
	for k := 1; k <= saturns; k++ {
		path := filepath.Join(data, "sia-workloads", "saturn", fmt.Sprintf("workload-%d.csv", k))
		if _, err := os.Stat(path); err != nil {
			continue
		}
		o, err := recordedFile(fmt.Sprintf("saturn-%d", k), path, filepath.Join(data, "profiles-sia"))
		if err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	if len(found) == 0 {
		return nil,
			fault.Mistakef("data folder %s: it has neither dally/batch500.csv.gz nor sia-workloads/saturn/workload-1.csv", data)
	}
	return found, nil
}

// recordedFile returns the workload of a file. profiles is the folder of the throughputs from which its run times
// follow, "" if the file has run times.
func recordedFile(name, path, profiles string) (recorded, error) {
	sha, err := workload.HashFile(context.Background(), nil, path)
	if err != nil {
		return recorded{}, err
	}
	return recorded{name: name, sha: sha, jobs: func() ([]traces.Job, error) {
		t := workload.DefaultTraceConfig()
		t.File, t.Profiles = path, profiles
		if profiles != "" {
			t.Reference = "aws" // the type of GPU for which run times are computed
		}
		list, _, err := workload.LoadTrace(t)
		if err != nil {
			return nil, err
		}
		for i := range list {
			// All GPUs are alike here. Models whose gradients are not known are replaced by Dally's.
			j := &list[i]
			j.GPUTypes, j.MinGPUs, j.MaxGPUs = nil, 0, 0
			if j.Profile == nil || authors.Profile(j.Profile.Name) == nil {
				j.Profile = nil
			}
		}
		return modelled(list, 1)
	}}, nil
}
