package profile

import "slices"

// DL2Model is one of the eight job types of DL2 (Peng et al., "DL2: A Deep Learning-driven Scheduler for Deep
// Learning Clusters", TPDS 2021; the figures are those of its authors' simulator): training with workers and
// parameter servers.
type DL2Model struct {
	Name       string
	Step       float64 // seconds that a worker computes in one step
	MB         float64 // model size
	EpochSteps int     // steps of all workers together in one epoch
	InterMBps  float64 // bandwidth between nodes, MB a second
	IntraMBps  float64 // bandwidth inside a node, MB a second
	Epochs     float64 // length of a training, as a part of the longest
	WorkerCPUs int
	WorkerGPUs int // 0 = trains on CPUs; one GPU is four slots of the simulator
	PSCPUs     int
}

var dl2 = []DL2Model{
	{"resnet-50", 0.449, 102.2, 115, 91.875, 306.5, 0.30, 2, 1, 2},
	{"vgg-16", 0.535, 553.4, 115, 233, 427.75, 0.96, 2, 1, 2},
	{"resnext-110", 0.226, 6.92, 390, 59.5, 63, 0.05, 2, 1, 2},
	{"inception-bn", 0.815, 42.1, 120, 145.875, 1082.125, 0.54, 2, 1, 2},
	{"seq2seq", 0.075, 36.5, 780, 120.125, 181.125, 0.95, 2, 1, 2},
	{"cnn-text-classification", 0.585, 24, 193, 60.75, 159.625, 0.46, 2, 0, 2},
	{"dssm", 0.567, 6, 349, 92.125, 65.625, 0.33, 2, 0, 2},
	{"wlm", 0.154, 19.2, 165, 10.375, 22.875, 0.23, 2, 1, 2},
}

// DL2Models returns the eight types in the order of their numbers. The slice is a copy.
func DL2Models() []DL2Model { return slices.Clone(dl2) }

// PSSpeed returns the speed of a synchronous job under a placement, in steps a second of all workers together. Node i
// has workersPerNode[i] workers and psPerNode[i] parameter servers. The speed is 0 without workers or without servers.
// Each server holds an equal part of the model, which every worker fetches and sends back in each step. On a node with
// w of W workers and p of P servers a step takes
//
//	Step + max(2 MB/P / inter, 2 MB/P / intra)
//	intra = IntraMBps / max(p, w)
//	inter = min(InterMBps / (P - p), InterMBps / (W - v)), v = fewest workers on any node with a server
//	inter = InterMBps where p = P
//
// and the job makes W steps in the time of the slowest node. This is the model of the authors' simulator, including
// three oddities: a node without servers also pays intra, a node with all servers still pays inter once, and v does not
// depend on the node. PSSpeed allocates nothing. Both slices must have the same length.
func PSSpeed(model DL2Model, workersPerNode, psPerNode []int) float64 {
	workers, servers, fewest := 0, 0, -1
	for i, w := range workersPerNode {
		p := psPerNode[i]
		workers, servers = workers+w, servers+p
		if p > 0 && (fewest < 0 || w < fewest) {
			fewest = w
		}
	}
	if workers == 0 || servers == 0 {
		return 0
	}
	slowest := 0.0
	for i, w := range workersPerNode {
		if w == 0 {
			continue
		}
		p := psPerNode[i]
		intra := model.IntraMBps / float64(max(p, w))
		inter := model.InterMBps
		if p < servers {
			inter = min(model.InterMBps/float64(servers-p), model.InterMBps/float64(workers-fewest))
		}
		part := 2 * (model.MB / float64(servers))
		slowest = max(slowest, model.Step+max(part/inter, part/intra))
	}
	return float64(workers) / slowest
}
