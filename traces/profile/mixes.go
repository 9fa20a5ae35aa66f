package profile

// mixes holds the built-in mixes. If a source does not say how often its models occur, they are equally likely.
var mixes = map[string]Mix{
	// Convolutional networks for ImageNet at their usual input size, as the group of TopDRL simulates them, with
	// batches of 32 to 256. Parameters (float32) and forward operations are those of Albanie's convnet-burden tables,
	// rounded as there. Those with a dense layer larger than all the rest are skewed.
	"topdrl-cnn": {
		Models: []Model{
			{Name: "alexnet", MB: 233, GFLOPs: 0.727, Skewed: true},
			{Name: "vgg16", MB: 528, GFLOPs: 16, Skewed: true},
			{Name: "vgg19", MB: 548, GFLOPs: 20, Skewed: true},
			{Name: "resnet50", MB: 98, GFLOPs: 4},
			{Name: "resnet101", MB: 170, GFLOPs: 8},
			{Name: "resnet152", MB: 230, GFLOPs: 11},
			{Name: "densenet121", MB: 31, GFLOPs: 3},
			{Name: "googlenet", MB: 51, GFLOPs: 2},
			{Name: "inception-v3", MB: 91, GFLOPs: 6},
			{Name: "squeezenet", MB: 5, GFLOPs: 0.837},
			{Name: "mobilenet", MB: 16, GFLOPs: 0.579},
			{Name: "senet", MB: 440, GFLOPs: 21},
		},
		Batches: []int{32, 64, 128, 256},
	},

	// The profiles of Dally's simulator (Sharma et al., arXiv 2401.16492): bytes of all all-reduces of an iteration,
	// and the sum of forward, input gradient and weight gradient; BERT (large) has only the readable part of its file,
	// 66 of 145 layers. VGG is VGG-11. Weights are the counts in the 500-job workload. The skewed models are those that
	// its Tiresias policy always consolidates.
	"dally": {
		Models: []Model{
			{Name: "AlexNet", MB: 244.361984, Ms: 60.7, Batch: 512, Skewed: true},
			{Name: "MobileNetV3", MB: 9.870144, Ms: 9.88, Batch: 512, Skewed: true},
			{Name: "ResNet18", MB: 46.715648, Ms: 147.3, Batch: 512},
			{Name: "ResNet50", MB: 102.011648, Ms: 348.2, Batch: 512},
			{Name: "VGG", MB: 531.405568, Ms: 247.7, Batch: 256, Skewed: true},
			{Name: "BERT", MB: 562.044928, Ms: 15267, Batch: 256},
		},
		Weights: []float64{53, 125, 38, 125, 34, 125},
	},

	// The four jobs of LWF (Wang et al., arXiv 2002.10105) as in its authors' code, forward and backward. Their
	// network's constants are in milliseconds for each of these MB.
	"lwf": {
		Models: []Model{
			{Name: "vgg16", MB: 526.4, Ms: 36 + 54, Batch: 16, MemMB: 4527, Skewed: true},
			{Name: "resnet50", MB: 99.2, Ms: 25 + 37, Batch: 16, MemMB: 3213},
			{Name: "inception-v3", MB: 103, Ms: 35 + 52, Batch: 16, MemMB: 3291},
			{Name: "lstm", MB: 251.8, Ms: 32 + 47, Batch: 64, MemMB: 2751},
		},
	},

	// The eight types of DL2 (Peng et al., TPDS 2021), equally likely; see DL2Models. Batch sizes are the totals of its
	// measurements, which do not depend on the number of workers.
	"dl2": {
		Models: []Model{
			{Name: "resnet-50", MB: 102.2, Ms: 449, Batch: 32},
			{Name: "vgg-16", MB: 553.4, Ms: 535, Batch: 32, Skewed: true},
			{Name: "resnext-110", MB: 6.92, Ms: 226, Batch: 128},
			{Name: "inception-bn", MB: 42.1, Ms: 815, Batch: 128},
			{Name: "seq2seq", MB: 36.5, Ms: 75, Batch: 64},
			{Name: "cnn-text-classification", MB: 24, Ms: 585, Batch: 50},
			{Name: "dssm", MB: 6, Ms: 567, Batch: 256},
			{Name: "wlm", MB: 19.2, Ms: 154, Batch: 160},
		},
	},

	// The networks of Tiresias (Gu et al., NSDI 2019): the sums of its tensors, which leave out those below 1 MB. Its
	// MB is 2^20 bytes (547.1 for vgg19 is 573.7 here). Operations are those of topdrl-cnn, except for vgg11 and
	// inception4, which have the usual figures. It names no batch sizes, so they are those of topdrl-cnn too.
	"tiresias-cnn": {
		Models: []Model{
			{Name: "vgg19", MB: 573.676, GFLOPs: 20, Skewed: true},
			{Name: "vgg16", MB: 552.39, GFLOPs: 16, Skewed: true},
			{Name: "vgg11", MB: 531.104, GFLOPs: 7.6, Skewed: true},
			{Name: "alexnet", MB: 247.254, GFLOPs: 0.727, Skewed: true},
			{Name: "resnet152", MB: 156.867, GFLOPs: 11},
			{Name: "resnet101", MB: 125.515, GFLOPs: 8},
			{Name: "resnet50", MB: 84.515, GFLOPs: 4},
			{Name: "inception4", MB: 139.251, GFLOPs: 12.3},
			{Name: "inception3", MB: 59.349, GFLOPs: 6},
		},
		Batches: []int{32, 64, 128, 256},
	},
}
