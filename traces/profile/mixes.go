package profile

// mixes are the known ones.
var mixes = map[string]Mix{
	// Convolutional networks for ImageNet at their usual input size, as the group of TopDRL simulates them, with
	// batches of 32 to 256. Parameters (float32) and forward operations are those of Albanie's convnet-burden
	// tables, rounded as there.
	"topdrl-cnn": {
		Models: []Model{
			{"alexnet", 233, 0.727},
			{"vgg16", 528, 16},
			{"vgg19", 548, 20},
			{"resnet50", 98, 4},
			{"resnet101", 170, 8},
			{"resnet152", 230, 11},
			{"densenet121", 31, 3},
			{"googlenet", 51, 2},
			{"inception-v3", 91, 6},
			{"squeezenet", 5, 0.837},
			{"mobilenet", 16, 0.579},
			{"senet", 440, 21},
		},
		Batches: []int{32, 64, 128, 256},
	},
}
