package dally

import (
	"strconv"
	"strings"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/traces"
	authors "clustergym/traces/dally"
	"clustergym/traces/profile"
	"clustergym/traces/synth"
)

// nets returns the names of the networks, from the fastest to the slowest.
func nets() []string { return []string{"published", "older", "slow", "ethernet"} }

// workloads returns the profiles of the generated workloads.
func workloads() []string { return []string{"dally", "dally-batch", "dally-multi", "helios"} }

// usual is the cluster of all tables but one: four racks of four machines of eight GPUs.
const usual = "4x4"

// gpusOf returns the number of GPUs of a cluster of racks of machines of eight, as "4x4"; 0 if size is nothing like
// that.
func gpusOf(size string) int {
	racks, machines, _ := strings.Cut(size, "x")
	r, err1 := strconv.Atoi(racks)
	m, err2 := strconv.Atoi(machines)
	if err1 != nil || err2 != nil || r < 1 || m < 1 || r > 1000 || m > 1000 {
		return 0
	}
	return r * m * 8
}

// clusterOn returns a cluster of racks of machines of eight GPUs, as "4x4", on a network. congestion is the share of
// the bandwidth between machines, and between racks, that others take.
func clusterOn(size, net string, congestion float64) (cluster.Spec, error) {
	spec, _, err := cluster.Parse("dally:" + size)
	if err != nil {
		return spec, err
	}
	up, nic := &spec.Racks[0].Uplink, &spec.Racks[0].Nodes[0].NIC
	switch net {
	case "older": // as in the authors' program: 12 GB/s and 50 ms between racks
		up.Gbps, up.Latency = 96, 50*time.Millisecond
	case "slow":
		nic.Gbps, up.Gbps = 200, 80
	case "ethernet": // 25 Gbit/s to each machine; four machines share an uplink of 100 Gbit/s
		nic.Gbps, nic.Latency, up.Gbps = 25, 50*time.Microsecond, 100
	}
	nic.Gbps *= 1 - congestion
	up.Gbps *= 1 - congestion
	spec.Name = net
	return spec, nil
}

// drawJobs returns the jobs of one draw of a workload.
func drawJobs(workload string, jobs, draw int) ([]traces.Job, error) {
	c := synth.DefaultConfig()
	c.Profile, c.Jobs, c.MaxGPUs = workload, jobs, 128
	list, err := synth.Generate(c, uint64(1000+draw))
	if err != nil {
		return nil, err
	}
	return modelled(list, uint64(draw))
}

// scaled returns jobs for a cluster of another number of GPUs, with as much work for each GPU in an hour: larger jobs
// than the cluster are left out, and submit times are stretched.
func scaled(jobs []traces.Job, gpus int) []traces.Job {
	of := float64(gpusOf(usual))
	var list []traces.Job
	for _, j := range jobs {
		if j.GPUs <= gpus {
			j.Submit = time.Duration(float64(j.Submit) * of / float64(gpus))
			list = append(list, j)
		}
	}
	return list
}

// modelled gives every job without a profile one of the six models, with their frequencies in the authors' workloads.
func modelled(jobs []traces.Job, seed uint64) ([]traces.Job, error) {
	mix, err := profile.Named("dally")
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		if jobs[i].Profile == nil {
			m, _ := mix.Draw(seed, jobs[i].ID)
			jobs[i].Model, jobs[i].Profile = m.Name, authors.Profile(m.Name)
		}
	}
	return jobs, nil
}
