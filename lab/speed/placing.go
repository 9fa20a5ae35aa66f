package speed

import (
	"context"
	"math/rand/v2"

	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// placing measures placements alone. As in the experiments of the paper on FGD (Weng et al., USENIX ATC 2023), pods for
// 130 % of the GPUs fill the empty nodes with GPUs of the cluster openb-1523.
func (b *bench) placing(ctx context.Context) error {
	spec, err := workload.ClusterSpec("openb-1523")
	if err != nil {
		return err
	}
	gpuNodes := cluster.Spec{Name: "openb-1213", Racks: []cluster.RackSpec{{}}}
	for _, n := range spec.Racks[0].Nodes {
		if n.GPUs > 0 {
			gpuNodes.Racks[0].Nodes = append(gpuNodes.Racks[0].Nodes, n)
		}
	}
	c, err := cluster.New(gpuNodes)
	if err != nil {
		return err
	}
	pods := openbPods(c, 1.3)
	for _, k := range []struct {
		placement string
		mark      float64
	}{{"fgd", 20_000}, {"best-fit", 0}} {
		rule, err := cluster.NewPlacement(k.placement)
		if err != nil {
			return err
		}
		if f, ok := rule.(*cluster.FGD); ok {
			f.SetClasses(cluster.Classes(pods))
		}
		row := Row{Group: "simulator", What: "pods like openb's until it is full", Jobs: len(pods), Cluster: gpuNodes.Name,
			Policy: k.placement, Unit: "pods/s", Mark: k.mark}
		var gpus []cluster.GPU
		err = b.measure(ctx, row, func(ctx context.Context) (int, error) {
			c.Reset()
			for i := range pods {
				if i%1000 == 0 && ctx.Err() != nil {
					return i, ctx.Err()
				}
				var ok bool
				if gpus, ok = rule.Place(c, &pods[i], gpus); ok {
					if err := c.Allocate(&pods[i], gpus); err != nil {
						return i, err
					}
				}
			}
			return len(pods), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// openbPods draws pods until they ask for share times c's GPUs. The numbers of GPUs are distributed as in the paper's
// Table 1. Shares of a GPU and cores are made up in the same range, so that there are some hundred kinds of requests.
func openbPods(c *cluster.Cluster, share float64) (pods []cluster.Request) {
	r := rng.Stream(1, "bench/pods")
	for milli := 0; ; {
		j := traces.Job{GPUs: 1, GPUMilli: 1000, CPUMilli: int64(4+4*r.IntN(4)) * 1000, MemBytes: int64(8+8*r.IntN(3)) << 30}
		switch x := r.Float64(); {
		case x < .133:
			j.GPUs, j.CPUMilli = 0, 2*j.CPUMilli
		case x < .133+.378:
			j.GPUMilli = shareOf(r)
		case x < .133+.378+.480:
		case x < .133+.378+.480+.002:
			j.GPUs, j.CPUMilli = 2, 2*j.CPUMilli
		case x < .133+.378+.480+.004:
			j.GPUs, j.CPUMilli = 4, 4*j.CPUMilli
		default:
			j.GPUs, j.CPUMilli = 8, 64000
		}
		p, ok := c.Request(&j)
		if !ok {
			continue
		}
		if milli += p.GPUs * p.Milli; float64(milli) > share*1000*float64(c.GPUs()) {
			return pods
		}
		pods = append(pods, p)
	}
}

// shareOf draws a share of a GPU in thousandths: two of three are below a half.
func shareOf(r *rand.Rand) int {
	if r.IntN(3) == 0 {
		return 500 + 50*r.IntN(10)
	}
	return 50 + 50*r.IntN(9)
}
