package dally

import (
	"time"

	"clustergym/traces"
)

// Models are the six networks, with what one iteration exchanges and how long that program reckons it to compute: the
// sum of the profile that lies beside it (forward and both gradients, see traces/profile's mix dally) times the factor
// by which it scales each. The profiles must not be changed.
func Models() []*traces.Profile { return models }

var models = []*traces.Profile{
	{Name: "AlexNet", GradientBytes: 244361984, Compute: 1207200 * time.Nanosecond, Skewed: true},
	{Name: "MobileNetV3", GradientBytes: 9870144, Compute: 63200 * time.Nanosecond, Skewed: true},
	{Name: "ResNet18", GradientBytes: 46715648, Compute: 180200 * time.Nanosecond},
	{Name: "ResNet50", GradientBytes: 102011648, Compute: 11823000 * time.Nanosecond},
	{Name: "VGG", GradientBytes: 531405568, Compute: 3837100 * time.Nanosecond, Skewed: true},
	{Name: "BERT", GradientBytes: 562044928, Compute: 1711400 * time.Nanosecond},
}

// Profile is that of the model called name, nil if it is none of the six.
func Profile(name string) *traces.Profile {
	for _, m := range models {
		if m.Name == name {
			return m
		}
	}
	return nil
}
